"""Backups, and stores made from them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.durable.postgres import Server
from tests.durable.test_stores import count, events, execute, prepared

from cepheid.errors import StoreError
from cepheid.host import open_host, restore_host


def test_backup(new_store: Callable[[], str], tmp_path: Path) -> None:
    """A store made from a backup goes on where the backup was made, beside the one that went on."""
    before, after = new_store(), new_store()
    with prepared(before) as host:
        host.feed(events("a"), input="events", position=1)
        host.backup(tmp_path / "backup")
        host.feed(events("b", after=1), input="events", position=2)
    restore_host(tmp_path / "backup", after)
    with open_host(after) as host:
        assert count(host, "open_pairs") == 1
        assert count(host, "matches_pairs") == 0
        host.feed(events("b", after=1), input="events", position=2)
        assert count(host, "matches_pairs") == 1
        with open_host(before) as other:
            query = "SELECT match_id FROM matches_pairs"
            assert host.sql(query) == other.sql(query)


def test_nothing_is_overwritten(new_store: Callable[[], str], tmp_path: Path) -> None:
    """Neither a backup nor a store is replaced by another one."""
    url = new_store()
    with prepared(url) as host:
        host.backup(tmp_path / "backup")
        with pytest.raises(StoreError, match="is there already"):
            host.backup(tmp_path / "backup")
    with pytest.raises(StoreError, match="already"):
        restore_host(tmp_path / "backup", url)
    assert not [*tmp_path.glob(".*")]


def test_backup_of_another_kind(new_store: Callable[[], str], kind: str, tmp_path: Path) -> None:
    """A backup of another kind of store is refused with what it is and which URL it needs, and nothing is made."""
    made = {
        "file": ("a folder of a host in files", "file:///FOLDER"),
        "sqlite": ("a database of SQLite", "sqlite:///FILE"),
        "duckdb": ("a database of DuckDB", "duckdb:///FILE"),
        "postgresql": ("a dump of PostgreSQL", "postgresql:///DATABASE"),
    }
    with prepared(new_store()) as host:
        host.backup(tmp_path / "backup")
    noun, url = made[kind]
    before = sorted(tmp_path.iterdir())
    for other in made.keys() - {kind}:
        message = f"^{tmp_path}/backup is {noun}, and a backup is restored to a store of the same kind: give .* {url}$"
        with pytest.raises(StoreError, match=message):
            restore_host(tmp_path / "backup", f"{other}:///{tmp_path}/new")
    assert sorted(tmp_path.iterdir()) == before


def test_schema_of_a_backup(postgres: Server, tmp_path: Path) -> None:
    """A backup of PostgreSQL goes to a schema of the same name. For another one the error says how to get there, and
    nothing is made, also where such a schema exists.
    """
    before, after = postgres.url("schema_before"), postgres.url("schema_after")
    execute(before, "postgresql", 'CREATE SCHEMA "ale rts"')
    in_schema = "&options=-csearch_path%3D%22ale%5C%20rts%22"
    with prepared(before + in_schema) as host:
        host.feed(events("a"), input="events")
        host.backup(tmp_path / "backup")
    for _ in range(2):
        message = (
            f"has the tables of schema 'ale rts', and .* The URL's is 'public': .* and add {in_schema} to the URL$"
        )
        with pytest.raises(StoreError, match=message):
            restore_host(tmp_path / "backup", after)
        with psycopg.connect(after) as connection:
            assert connection.execute("SELECT count(*) FROM pg_tables WHERE tablename ~ 'cepheid'").fetchone() == (0,)
            connection.execute('CREATE SCHEMA IF NOT EXISTS "ale rts"')
    restore_host(tmp_path / "backup", after + in_schema)
    with open_host(after + in_schema) as host:
        assert count(host, "open_pairs") == 1


def test_dump_of_another_program(postgres: Server, tmp_path: Path) -> None:
    """A dump without a host's tables is refused, and nothing of it is made."""
    url, other = postgres.url("other_dump"), postgres.url("other_dump_2")
    execute(url, "postgresql", "CREATE TABLE patterns (x INTEGER)")
    subprocess.run([postgres.programs / "pg_dump", "--format=custom", f"--file={tmp_path}/d", url], check=True)
    with pytest.raises(StoreError, match="d is no backup of a host: it has no table cepheid_host"):
        restore_host(tmp_path / "d", other)
    with psycopg.connect(other) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_no_backup(new_store: Callable[[], str], tmp_path: Path) -> None:
    """What is no backup is refused, and makes no store."""
    url, notes = new_store(), tmp_path / "notes"
    with pytest.raises(StoreError, match="there is no backup"):
        restore_host(notes, url)
    notes.write_text("These are notes, and no database. " * 100)
    message = f"{notes} is no backup of a host, as `cepheid host backup` writes them: it is a file of another kind"
    with pytest.raises(StoreError, match=message):
        restore_host(notes, url)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(StoreError, match=f"{folder} is no backup of a host, as .*: this folder has no store.json"):
        restore_host(folder, url)
    with open_host(url) as host:
        assert count(host, "inputs") == 0
