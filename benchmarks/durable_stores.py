"""Stores for the benchmark of durable hosts, and the same rows written to their databases without Cepheid."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa

sys.path.append(str(Path(__file__).parent.parent))
from tests.durable.postgres import find_programs, running_server

NAMES = ["id", "series", "key_id", "version", "status", "stage", "stages", "device", "started", "wakeup"]
TYPES = [*("TEXT" for _ in range(7)), "BIGINT", "TIMESTAMPTZ", "TIMESTAMPTZ"]
INDEXES = ("key_id", "status, wakeup", "device")


@contextmanager
def stores(wanted: str | None) -> Iterator[dict[str, Callable[[str], str]]]:
    """A function for each kind of store, which gives the URL of a new, empty one by its name."""
    folder = Path(tempfile.mkdtemp(prefix="durable-", dir="/tmp"))
    try:
        files = {kind: _in_file(kind, folder) for kind in ("sqlite", "duckdb") if wanted in (None, kind)}
        if wanted not in (None, "postgresql"):
            yield files
            return
        assert find_programs() is not None, "there is no PostgreSQL server: scripts/postgresql.sh installs one"
        (folder / "server").mkdir()
        folder.chmod(0o755)
        with running_server(folder / "server") as server:
            yield {**files, "postgresql": server.url}
    finally:
        shutil.rmtree(folder)


def _in_file(kind: str, folder: Path) -> Callable[[str], str]:
    return lambda name: f"{kind}:///{folder}/{name}.{kind}"


def raw_changes(kind: str, url: str, rows: pa.Table) -> Callable[[], None]:
    """Replaces all rows by others, in one transaction, by the fastest means of each database's driver: the least that
    changing as many open partial matches costs. `rows` have the columns of NAMES.
    """
    ways: dict[str, tuple[Callable[[str], Any], Callable[[Any, Any], None]]] = {
        "sqlite": (_sqlite, _into_sqlite),
        "duckdb": (duckdb.connect, _into_duckdb),
        "postgresql": (lambda _: psycopg.connect(url, autocommit=True), _into_postgresql),
    }
    connect, replace = ways[kind]
    given = rows if kind == "duckdb" else [tuple(row.values()) for row in rows.to_pylist()]

    def change() -> None:
        with closing(connect(url.partition(":///")[2])) as database:
            _make(database.execute, kind)
            database.execute("BEGIN")
            database.execute("DELETE FROM raw")
            replace(database, given)
            database.execute("COMMIT")

    return change


def _sqlite(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def _into_sqlite(database: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    database.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * len(NAMES))})", rows)


def _into_duckdb(database: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
    database.register("given", rows)
    database.execute("INSERT INTO raw SELECT * FROM given")


def _into_postgresql(database: psycopg.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    with database.cursor() as cursor, cursor.copy("COPY raw FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types([{"TEXT": "text", "BIGINT": "int8"}.get(type_, "timestamptz") for type_ in TYPES])
        for row in rows:
            copy.write_row([str(value) if type_ == "TEXT" else value for value, type_ in zip(row, TYPES, strict=True)])


def _make(execute: Callable[[str], object], kind: str) -> None:
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip(NAMES, TYPES, strict=True))
    execute(f"CREATE TABLE IF NOT EXISTS raw ({columns}{'' if kind == 'duckdb' else ', PRIMARY KEY (id)'})")
    if kind != "duckdb":
        for number, indexed in enumerate(INDEXES):
            execute(f"CREATE INDEX IF NOT EXISTS raw_{number} ON raw ({indexed})")
