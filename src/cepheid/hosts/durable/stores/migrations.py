"""Brings stores of earlier formats to the present one."""

from __future__ import annotations

from collections.abc import Callable

from cepheid.hosts.durable.stores.database import Database
from cepheid.hosts.durable.stores.layout import HEADS, SNAPSHOTS


def _parts_of_snapshots(database: Database) -> None:
    """To format 2: heads say where their snapshot and log are, so that the next snapshot may be written beside them."""
    for column in ("first_part", "parts", "first_entry"):
        database.execute(f"ALTER TABLE {HEADS} ADD COLUMN {column} BIGINT")
    parts = f"(SELECT count(*) FROM {SNAPSHOTS} WHERE {SNAPSHOTS}.deployment = {HEADS}.deployment)"
    database.execute(f"UPDATE {HEADS} SET first_part = 0, parts = {parts}, first_entry = 1")


MIGRATIONS: tuple[Callable[[Database], None], ...] = (_parts_of_snapshots,)
"""Migration i brings format i + 1 to the next one. Each runs within the transaction that opens the store."""
