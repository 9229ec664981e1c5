"""Stores that fail, that have something else in them, or that two hosts want."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from tests.durable.postgres import Server

import cepheid
from cepheid.errors import StoreError
from cepheid.host import Host, open_host
from cepheid.hosts.durable import lock

SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("user", pa.string()), ("what", pa.string())]
)
START = datetime(2024, 3, 4, 10, tzinfo=UTC)
PAIRS = (
    cepheid.Pattern.begin("a", name="pairs")
    .where("what = 'a'")
    .followed_by("b")
    .where("what = 'b'")
    .within("10 minutes")
)


SECOND_HOST = """
import sys
from cepheid.host import open_host
from cepheid.hosts.durable import lock
lock.PATIENCE = 0.1
open_host(sys.argv[1])
"""
OPEN_TO_OTHERS = ("sqlite", "postgresql")
"""DuckDB lets nobody else in while the host has the file open."""


def events(*kinds: str, after: int = 0) -> pa.Table:
    """Events of one user, a minute apart."""
    rows = [
        {"id": after + i, "at": START + timedelta(minutes=after + i), "user": "u", "what": what}
        for i, what in enumerate(kinds)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def prepared(url: str, **how: Any) -> Host:
    host = open_host(url)
    host.input("events", SCHEMA, time="at", sequence="id")
    host.deploy(PAIRS, input="events", key="user", **how)
    return host


def count(host: Host, table: str) -> int:
    return int(host.sql(f"SELECT count(*) AS n FROM {table}").column(0)[0].as_py())


def test_lost_connection(postgres: Server) -> None:
    """A host whose connection breaks refuses the step, and goes on when the server answers again: nothing is lost."""
    with prepared(postgres.url("lost_connection")) as host:
        host.feed(events("a"), input="events", position=1)
        end_sessions(postgres, "lost_connection")
        with pytest.raises(StoreError, match="cannot be"):
            host.feed(events("b", after=1), input="events", position=2)
        host.feed(events("b", after=1), input="events", position=2)
        assert count(host, "matches_pairs") == 1


def test_server_killed(postgres: Server) -> None:
    """The host goes on behind a crash of the server."""
    with prepared(postgres.url("server_killed")) as host:
        host.feed(events("a"), input="events", position=1)
        postgres.kill()
        with pytest.raises(StoreError, match="cannot be"):
            host.feed(events("b", after=1), input="events", position=2)
        with pytest.raises(StoreError, match="cannot be opened"):
            host.feed(events("b", after=1), input="events", position=2)
        postgres.start()
        host.feed(events("b", after=1), input="events", position=2)
        assert count(host, "matches_pairs") == 1


def test_another_host_took_over(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose connection broke may not write once another one has opened the store."""
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    url = postgres.url("took_over")
    first = prepared(url)
    first.feed(events("a"), input="events", position=1)
    end_sessions(postgres, "took_over")
    with open_host(url) as second:
        second.feed(events("b", after=1), input="events", position=2)
        for _ in range(2):
            with pytest.raises(StoreError):
                first.feed(events("a", "b", after=2), input="events", position=4)
    first.feed(events("a", "b", after=2), input="events", position=4)
    assert count(first, "matches_pairs") == 2
    first.close()


def test_two_hosts(url: str) -> None:
    """A second host is refused while the first one is open, also in another process."""
    with prepared(url) as host:
        done = subprocess.run([sys.executable, "-c", SECOND_HOST, url], capture_output=True, text=True, check=False)
        assert "another host has" in done.stderr, done
        host.feed(events("a"), input="events")


@pytest.mark.parametrize("kind", ["file", *OPEN_TO_OTHERS])
def test_fenced(url: str, kind: str) -> None:
    """Whoever has an older epoch cannot write, even without any lock."""
    with prepared(url) as host:
        _raise_epoch(url, kind)
        with pytest.raises(StoreError, match="another host has opened this store since"):
            host.feed(events("a"), input="events", position=1)
        assert count(host, "inputs WHERE position IS NOT NULL") == 0


def test_other_types(url: str) -> None:
    """A later version may add columns to its tables, but not change their types."""
    with prepared(url, promote={"first": "a.id"}) as host:
        second = PAIRS.within("5 minutes")
        with pytest.raises(StoreError, match=r"'first' is .* there, not .*Give these columns other names"):
            host.deploy(_version(second, "2"), input="events", key="user", promote={"first": "a.what"}, old="drop")
        host.deploy(_version(second, "2"), input="events", key="user", promote={"what": "a.what"}, old="drop")
        host.feed(events("a"), input="events")
        assert host.sql("SELECT first, what FROM open_pairs").to_pylist() == [{"first": None, "what": "a"}]


def test_duration(url: str) -> None:
    """A duration may be a promoted column, too."""
    schema = SCHEMA.append(pa.field("lasted", pa.duration("us")))
    with open_host(url) as host:
        host.input("calls", schema, time="at", sequence="id")
        host.deploy(PAIRS, input="calls", promote={"lasted": "a.lasted"})
        host.feed(events("a").append_column("lasted", pa.array([timedelta(hours=1)], pa.duration("us"))), input="calls")
        assert count(host, "open_pairs WHERE lasted IS NOT NULL") == 1


def test_one_thread_after_another(url: str) -> None:
    """A host may be used by a thread that has not opened it, as in a web server, while no other one calls it."""
    with prepared(url) as host, ThreadPoolExecutor(1) as other:
        host.feed(events("a"), input="events", position=1)
        other.submit(host.feed, events("b", after=1), input="events", position=2).result()
        assert other.submit(count, host, "matches_pairs").result() == 1
        host.feed(events("a", after=2), input="events", position=3)
        other.submit(host.close).result()
    with open_host(url) as host:
        assert host.inputs["events"].position == 3


LEFT_OPEN = """
import sys
from tests.durable.test_stores import events, prepared
host = prepared(sys.argv[1])
host.subscribe("calls", to=lambda letter: None)
host.feed(events("a", "b"), input="events", position=2)
print(host.deliver())
"""


def test_left_open(url: str) -> None:
    """A program may end without closing a host: nothing is printed, and the next one continues."""
    command = [sys.executable, "-c", LEFT_OPEN, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
    with open_host(url) as host:
        assert host.inputs["events"].position == 2


def test_full_disk(url: str, kind: str, request: pytest.FixtureRequest) -> None:
    """On a full disk a step fails whole, and is repeated when there is room."""
    many = 20_000
    rows = {"id": range(many), "at": [START] * many, "user": [f"u{i}" for i in range(many)], "what": ["a"] * many}
    table = pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in rows.items()})
    with prepared(url) as host:
        host.feed(events("a"), input="events", position=1)
        server: Server | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
        room = 100_000 if kind == "file" else 400_000  # it needs less
        full = largest_file(room) if server is None else server.full_disk(_session_of(url))
        with full, pytest.raises(StoreError, match=r"cannot be.*\. Make room on the disk, then repeat the step"):
            host.feed(table, input="events", position=1 + many)
        assert count(host, "open_pairs") == 1
        host.feed(table, input="events", position=1 + many)
        assert count(host, "open_pairs") == 1 + many
    with open_host(url) as host:
        assert count(host, "open_pairs") == 1 + many


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM matches_pairs",
        "SELECT 1; DELETE FROM matches_pairs",
        "COMMIT; DELETE FROM matches_pairs",
        "BEGIN READ WRITE; DELETE FROM matches_pairs",
        "WITH x AS (DELETE FROM matches_pairs RETURNING match_id) SELECT * FROM x",
        "DROP TABLE matches_pairs",
        "ATTACH '/tmp/other.db' AS other",
        "SELECT nothing FROM matches_pairs",
        "",
    ],
)
def test_query_changes_nothing(url: str, query: str) -> None:
    """A query reads, whatever it is."""
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events")
        with pytest.raises(StoreError, match=r"refuses the query|one SELECT"):
            host.sql(query)
        assert count(host, "matches_pairs") == 1


def test_not_a_store(tmp_path: Path) -> None:
    """A file that is no store is refused, and left as it was."""
    path = tmp_path / "notes"
    path.write_text("These are notes, and no database. " * 100)
    for scheme in ("file", "sqlite", "duckdb"):
        with pytest.raises(StoreError, match="is a file of another kind, and no store of a host"):
            open_host(f"{scheme}:///{path}")
    assert path.read_text().startswith("These are notes")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files of this process cannot grow beyond so many bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _session_of(url: str) -> int:
    """The server's process for the host of this store."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'cepheid host'"
    with psycopg.connect(url) as connection:
        ((process,),) = connection.execute(query).fetchall()
        return int(process)


def _version(pattern: cepheid.Pattern, version: str) -> cepheid.Pattern:
    return pattern.named(pattern.name, version=version)


def end_sessions(server: Server, database: str) -> None:
    with psycopg.connect(server.address("postgres"), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database,))


def _raise_epoch(url: str, kind: str) -> None:
    """Another host takes the store over."""
    if kind == "file":
        (Path(url.removeprefix("file://")) / "lock").unlink()
        open_host(url).close()
        return
    execute(url, kind, "UPDATE cepheid_host SET epoch = epoch + 1")


def execute(url: str, kind: str, statement: str) -> None:
    """Executes the statement as another program does. DuckDB lets it in only while no host has the store open."""
    if kind == "duckdb":
        with duckdb.connect(url.removeprefix("duckdb:///")) as database:
            database.execute(statement)
    elif kind == "postgresql":
        with psycopg.connect(url) as other:
            other.execute(statement)
    else:
        other = sqlite3.connect(url.removeprefix("sqlite:///"))
        other.execute(statement)
        other.commit()
        other.close()


def test_text_with_nul(postgres: Server) -> None:
    """PostgreSQL has no NUL in texts: its rows have U+FFFD in its place, and what is found is the same."""
    users = ["u\0", "u\0", "\\u0000", "\\u0000"]
    rows = [
        {"id": i, "at": START + timedelta(minutes=i), "user": user, "what": "ab"[i % 2]} for i, user in enumerate(users)
    ]
    with prepared(postgres.url("with_nul")) as host:
        host.feed(pa.Table.from_pylist(rows[:1], SCHEMA), input="events")
        assert host.sql('SELECT "user" FROM open_pairs').column(0).to_pylist() == ["u\N{REPLACEMENT CHARACTER}"]
        found = host.feed(pa.Table.from_pylist(rows[1:], SCHEMA), input="events").rows["pairs"]
        assert found.column("user").to_pylist() == [users[0], users[2]]
        query = "SELECT stages->'a'->0->>'user' AS inside FROM matches_pairs ORDER BY match_start"
        assert host.sql(query).column(0).to_pylist() == ["u\N{REPLACEMENT CHARACTER}", "\\u0000"]
