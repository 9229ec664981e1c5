"""Who may read a store while it is open, and what a query gives back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from tests.durable.test_stores import OPEN_TO_OTHERS, PAIRS, events, prepared

from cepheid.cli.failure import FileProblem
from cepheid.cli.host.opened import asked
from cepheid.cli.host.reading import matches, open_
from cepheid.cli.host.routing import dead_letters, subscriptions
from cepheid.errors import ConditionError, StoreError
from cepheid.host import open_host

QUERY = "SELECT name, status FROM patterns"
BROKEN = {"n": "cast(a.what AS int)"}
"""A promoted column that fails on every event."""


@pytest.mark.parametrize("kind", OPEN_TO_OTHERS)
def test_while_a_program_has_it_open(url: str) -> None:
    """Commands that read ask SQLite and PostgreSQL also while a program has the store open; it goes on writing."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        with asked(url) as ask:
            assert ask(QUERY).to_pylist() == [{"name": "pairs", "status": "running"}]
            host.feed(events("b", after=1), input="events")
            assert ask("SELECT * FROM matches_pairs").num_rows == 1
        subscriptions(url)
        dead_letters(url)


def test_while_nobody_has_it_open(url: str) -> None:
    """They ask any store, and change nothing: the next host is the same writer."""
    prepared(url).close()
    for _ in range(2):
        with asked(url) as ask:
            assert ask(QUERY).num_rows == 1
            with pytest.raises(StoreError):
                ask("DELETE FROM patterns")
    with open_host(url) as host:
        assert host.sql(QUERY).num_rows == 1


@pytest.mark.parametrize("has_zone", [True, False])
def test_matches_since(url: str, has_zone: bool, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: FBT001
    """`--since` is an instant, or a local time in the zone of the input, whether the events have a zone or not."""
    type_ = pa.timestamp("us", "UTC" if has_zone else None)
    schema = pa.schema([("at", type_), ("what", pa.string())])
    hour = 8 if has_zone else 10  # in UTC, and what clocks show in Berlin
    zone = UTC if has_zone else None
    times = [datetime(2024, 7, 1, hour + more, minute, tzinfo=zone) for more in (0, 1) for minute in (0, 5)]
    with open_host(url) as host:
        host.input("events", schema, time="at", time_zone="Europe/Berlin")
        host.deploy(PAIRS, input="events")
        host.feed(pa.table({"at": pa.array(times, type_), "what": ["a", "b", "a", "b"]}), input="events")
        host.advance_time("2024-07-01T12:00:00Z")
    for since, count in {
        "2024-07-01T08:05:00Z": 2,
        "2024-07-01T08:05:01Z": 1,
        "2024-07-01T10:05:00": 2,
        "2024-07-01T10:05:01": 1,
        "2024-07-01T11:05:01": 0,
    }.items():
        matches(url, "pairs", since=since)
        assert len(capsys.readouterr().out.splitlines()) == count
    with pytest.raises(typer.Exit):
        matches(url, "pairs", since="2024-10-27T02:30:00")
    assert "--since: the local time 2024-10-27 02:30:00 is ambiguous in Europe/Berlin" in capsys.readouterr().err


def test_events_in_json(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands print the events of rows as JSON values, not as text with JSON; texts of users stay texts."""
    with prepared(url, measures={"text": "concat('[', a.what, ']')"}) as host:
        host.deploy(PAIRS.named("whole"), input="events", key="user")
        host.feed(events("a", "b", "a"), input="events")
    for as_json in (True, False):
        found = []
        for command in (open_, matches):
            for name in ("pairs", "whole"):
                command(url, name, as_json=as_json)
                printed = json.loads(capsys.readouterr().out)
                found.append(printed["rows"][0] if as_json else printed)
        assert [found[i]["stages"]["a"][0]["id"] for i in (0, 1, 3)] == [2, 2, 0]
        assert found[2]["text"] == "[a]"


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_a_step_whose_rows_cannot_be_listed(url: str) -> None:
    """A promoted column that fails is an error of its pattern, and the step has changed nothing."""
    with prepared(url) as host:
        host.deploy(PAIRS.named("broken"), input="events", key="user", promote=BROKEN)
        with pytest.raises(ConditionError, match="pattern 'broken'"):
            host.feed(events("a"), input="events")
        assert host.inputs["events"].events == 0


@pytest.mark.parametrize("kind", ["file"])
def test_rows_that_cannot_be_listed_when_asked(url: str) -> None:
    """A promoted column that fails is an error of its pattern, and costs the others nothing."""
    with prepared(url) as host:
        host.deploy(PAIRS.named("broken"), input="events", key="user", promote=BROKEN)
        host.deploy(PAIRS.named("last"), input="events", key="user")
        host.feed(events("a"), input="events")
        for _ in range(2):
            with pytest.raises(ConditionError, match="pattern 'broken'"):
                host.sql("SELECT * FROM open_last")
        host.retire("broken", how="drop")
        for name in ("pairs", "last"):
            assert host.sql(f"SELECT * FROM open_{name}").num_rows == 1


@pytest.mark.parametrize("query", ["DELETE FROM patterns", "DROP TABLE outbox", "VACUUM"])
def test_no_select(url: str, query: str) -> None:
    """What is no SELECT is refused with what a query is."""
    with prepared(url) as host, pytest.raises(StoreError, match=r"[aA] query is one SELECT"):
        host.sql(query)


def test_no_store(tmp_path: Path) -> None:
    """Where there is no store, none is made."""
    with (
        pytest.raises(FileProblem, match=r"there is no store .*: make it with `cepheid"),
        asked(f"sqlite:///{tmp_path}/no"),
    ):
        pass
    (tmp_path / "empty.db").touch()
    url = f"sqlite:///{tmp_path}/empty.db"
    with pytest.raises(StoreError, match="no store of a host can be read there: SQLite"), asked(url):
        pass
    assert (tmp_path / "empty.db").stat().st_size == 0


ASKED_BY_A_READER = """
import os, sys
from pathlib import Path
from cepheid.hosts.durable.stores.sqlite_reader import SqliteReader
reader = SqliteReader(Path(sys.argv[1]))
reader.query("SELECT 1")  # imports all that it needs, while this user may
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
for query in ("SELECT name FROM inputs", "SELECT * FROM inptus"):
    try:
        print(reader.query(query).to_pylist())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def folder_to_read() -> Iterator[Path]:
    """A folder in which no user may write, as soon as the test says so; all may enter it."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_folder_that_may_only_be_read(folder_to_read: Path) -> None:
    """The right to read is enough, also when no host runs: SQLite needs files beside a store, and cannot make them
    there. What a killed host has left beside it must not be overlooked.
    """
    store = folder_to_read / "host.db"

    def asked_by_a_reader() -> list[str]:
        folder_to_read.chmod(0o555)
        command = [sys.executable, "-c", ASKED_BY_A_READER, str(store)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        folder_to_read.chmod(0o755)
        return done.stdout.splitlines()

    host = prepared(f"sqlite:///{store}")
    host.close()
    rows, problem = asked_by_a_reader()
    assert rows == "[{'name': 'events'}]"
    assert problem.startswith("StoreError: SQLite refuses the query: no such table: inptus. There are: ")
    assert sorted(path.name for path in folder_to_read.iterdir()) == ["host.db", "host.db-host-lock"]
    (folder_to_read / "host.db-wal").write_bytes(b"\0" * 32)
    for line in asked_by_a_reader():
        assert line.startswith(f"StoreError: {store} was not closed by its host, and only a user who may write in its")


def test_values_of_several_types(tmp_path: Path) -> None:
    """A column of a result has values of one type. In SQLite it may have others."""
    with (
        prepared(f"sqlite:///{tmp_path}/host.db") as host,
        pytest.raises(StoreError, match="column 'x' of the result has values of several types"),
    ):
        host.sql("SELECT 1 AS x UNION ALL SELECT 'a'")
