"""Brings stores of earlier formats to the present one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa

from cepheid.hosts.durable.documents import deployment_from_json
from cepheid.hosts.durable.stores.database import Database, create_table
from cepheid.hosts.durable.stores.layout import HEADS, KEYS, PATTERNS, SCRIPTS, SNAPSHOTS, TABLES
from cepheid.hosts.durable.stores.script_rows import save_scripts


def _to_2(database: Database) -> None:
    """Heads say where their snapshot and log are, so that the next snapshot may be written beside them. Patterns have
    scripts, problems and a position.
    """
    for column in ("first_part", "parts", "first_entry"):
        database.execute(f"ALTER TABLE {HEADS} ADD COLUMN {column} BIGINT")
    parts = f"(SELECT count(*) FROM {SNAPSHOTS} WHERE {SNAPSHOTS}.deployment = {HEADS}.deployment)"
    database.execute(f"UPDATE {HEADS} SET first_part = 0, parts = {parts}, first_entry = 1")
    for column in ("problems", "position"):
        database.execute(f"ALTER TABLE {PATTERNS} ADD COLUMN {column} {database.type_name(pa.string())}")
    create_table(database, SCRIPTS, TABLES[SCRIPTS], KEYS[SCRIPTS])
    for (content,) in database.rows(f"SELECT content FROM {PATTERNS}"):
        save_scripts(database, deployment_from_json(json.loads(content)))


MIGRATIONS: tuple[Callable[[Database], None], ...] = (_to_2,)
"""Migration i brings format i + 1 to the next one. Each runs within the transaction that opens the store."""
