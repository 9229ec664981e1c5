"""Wrong URLs, arguments and databases: each error says what is wrong and what to do, and the store is as it was."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.durable.postgres import Server
from tests.durable.test_stores import OPEN_TO_OTHERS, PAIRS, SCHEMA, count, events, execute, prepared

from cepheid.errors import EventError, PatternError, SchemaError, StoreError, did_you_mean
from cepheid.host import Host, open_host
from cepheid.hosts.durable import lock
from cepheid.hosts.durable.state import MatchesOf
from cepheid.hosts.durable.stores.layout import FORMAT

DATABASES = ("sqlite", "duckdb", "postgresql")
ARGUMENTS = ("sqlite",)
"""Arguments are checked before any store has to do with them, so one store is enough."""
A_POSITION = (
    "position: a number that is not negative, a map with one for each partition as in {'0': 17}, or a name is expected"
)
NO_RIGHTS = "A host's user needs USAGE and CREATE on the schema, and all rights on the tables that hosts made there"


def contents(host: Host) -> list[list[dict[str, Any]]]:
    """What the host's tables have."""
    tables = ("inputs", "patterns", "outbox", "open_pairs", "matches_pairs")
    return [host.sql(f"SELECT * FROM {table}").to_pylist() for table in tables]


@pytest.mark.parametrize(
    ("url", "begins"),
    [("mysql:///alerts", "mysql"), ("alerts.db", "alerts.db"), ("postgresql:ann:secret@here/alerts", "postgresql")],
)
def test_unknown_scheme(url: str, begins: str) -> None:
    """The error has the schemes that are known, and nothing of a password."""
    with pytest.raises(StoreError, match=r"^a store is named by a URL that begins with one of .*sqlite://") as error:
        open_host(url)
    assert str(error.value).endswith(f"; this one begins with {begins!r}")


@pytest.mark.parametrize("place", ["", "/", "alerts.db"])
@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_no_file(scheme: str, place: str) -> None:
    """A URL without a path, or with two slashes before it, is refused."""
    message = f"a file comes after three slashes, .*; here after the first two comes {place!r}"
    with pytest.raises(StoreError, match=message):
        open_host(f"{scheme}://{place}")


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_in_memory(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database in memory is refused, as nothing of it survives, and no file is left."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"^:memory: is no file, and a host stores what survives a crash: name a file"):
        open_host(f"{scheme}:///:memory:")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("scheme", ["file", "sqlite", "duckdb"])
def test_more_than_a_path(scheme: str, tmp_path: Path) -> None:
    """Options, and the input of a target, do not become part of the name of a new store. A store that has such a name
    can be opened.
    """
    for end, what in (("?mode=ro", "options"), ("#alerts", "an input")):
        with pytest.raises(
            StoreError, match=f"has {what} at its end, which would be in a file's name: leave '\\{end}'"
        ):
            open_host(f"{scheme}:///{tmp_path}/alerts{end}")
    assert not [*tmp_path.iterdir()]
    open_host(f"{scheme}:///{tmp_path}/alerts").close()
    (tmp_path / "alerts").rename(tmp_path / "alerts#1")
    open_host(f"{scheme}:///{tmp_path}/alerts#1").close()


@pytest.mark.parametrize("url", [None, Path("alerts.db"), b"sqlite:///alerts.db"])
def test_no_text(url: Any) -> None:
    """A URL is a text."""
    with pytest.raises(StoreError, match=r"^a store is named by a URL, as in 'sqlite:///alerts\.db'; got "):
        open_host(url)


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_no_folder(scheme: str) -> None:
    """The folder of a file must exist."""
    with pytest.raises(StoreError, match=r"/nowhere/alerts\.db cannot be opened: there is no folder /nowhere"):
        open_host(f"{scheme}:////nowhere/alerts.db")


@pytest.mark.parametrize(("kind", "other"), [("sqlite", "duckdb"), ("duckdb", "sqlite")])
def test_file_of_another_database(url: str, other: str, kind: str) -> None:
    """A file of another database is refused as it is: nothing is downloaded that could read it."""
    prepared(url).close()
    path = Path(url.removeprefix(f"{kind}:///"))
    before = path.read_bytes()
    name = {"sqlite": "SQLite", "duckdb": "DuckDB"}[kind]
    with pytest.raises(StoreError, match=rf"^{path} is a database of {name}: its URL begins with {kind}://$"):
        open_host(f"{other}:///{path}")
    assert path.read_bytes() == before


@pytest.mark.parametrize("scheme", ["file", "sqlite", "duckdb"])
def test_place_of_something_else(scheme: str, tmp_path: Path) -> None:
    """A place that has no store is refused with what is there, and nothing is made beside it. A new or an empty file
    becomes a store.
    """
    (tmp_path / "events.csv").write_text("id,at\n1,2024-03-04\n")
    (tmp_path / "dump").write_bytes(b"PGDMP" + bytes(100))
    (tmp_path / "empty").touch()
    open_host(f"file://{tmp_path}/folder").close()
    instead = {
        "events.csv": "a file of another kind, and no store of a host: name another place",
        "dump": rf"a dump of PostgreSQL: `cepheid host restore {tmp_path}/dump postgresql:///DATABASE` makes a store",
        "folder": "a folder of a host in files: its URL begins with file://",
    }
    for name, message in instead.items():
        if (scheme, name) != ("file", "folder"):
            with pytest.raises(StoreError, match=f"^{tmp_path}/{name} is {message}"):
                open_host(f"{scheme}:///{tmp_path}/{name}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump", "empty", "events.csv", "folder"]
    if scheme == "sqlite":
        open_host(f"{scheme}:///{tmp_path}/empty").close()


def test_no_driver() -> None:
    """Without psycopg the error has the line that installs it."""
    code = "import sys; sys.modules['psycopg'] = None; from cepheid.host import open_host; open_host('postgresql:///x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("StoreError: PostgreSQL needs the package psycopg: pip install 'cepheid[postgresql]'")


@pytest.mark.parametrize("scheme", ["file", "sqlite", "duckdb"])
def test_a_path_that_no_disk_has(scheme: str, tmp_path: Path) -> None:
    """What the disk refuses before anything is opened is an error of the store, too."""
    with pytest.raises(StoreError, match=r"cannot be opened: File name too long"):
        open_host(f"{scheme}:///{tmp_path}/{'x' * 300}")


def test_no_rights(postgres: Server) -> None:
    """A role that may not make tables, or may not write them, is refused, and leaves nothing."""
    url, refused = postgres.url("rights"), pytest.raises(StoreError, match=NO_RIGHTS)
    execute(url, "postgresql", "CREATE ROLE guest LOGIN")
    guest = url.replace("user=postgres", "user=guest")
    with refused:
        open_host(guest)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    with prepared(url) as host:
        host.feed(events("a"), input="events", position=1)
    execute(url, "postgresql", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    with refused:
        open_host(guest)
    execute(url, "postgresql", "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest")
    with open_host(guest) as host:
        before = contents(host)
        with pytest.raises(StoreError, match=f"permission denied for schema public. {NO_RIGHTS}"):
            host.deploy(PAIRS.named("others"), input="events", key="user")
        assert contents(host) == before
        host.feed(events("b", after=1), input="events", position=2)
        assert count(host, "matches_pairs") == 1


@pytest.mark.parametrize("kind", DATABASES)
def test_newer_format(url: str, kind: str) -> None:
    """A store of a newer version is refused, and not changed."""
    prepared(url).close()
    execute(url, kind, "UPDATE cepheid_host SET format = 99, epoch = 7")
    message = r"a newer version of Cepheid wrote this store: it has format 99 and ids 2, .* Upgrade Cepheid"
    with pytest.raises(StoreError, match=message):
        open_host(url)
    execute(url, kind, f"UPDATE cepheid_host SET format = {FORMAT} WHERE format = 99 AND epoch = 7")
    with open_host(url) as host:
        assert count(host, "patterns") == 1


@pytest.mark.parametrize("kind", DATABASES)
def test_tables_of_another_program(url: str, kind: str) -> None:
    """A database that has tables with a host's names is refused, and nothing is added to it."""
    execute(url, kind, "CREATE TABLE patterns (x INTEGER)")
    with pytest.raises(StoreError, match=r"no host made them: patterns\. Give the host a database or a schema"):
        open_host(url)
    execute(url, kind, "DROP TABLE patterns")
    with open_host(url) as host:
        assert count(host, "patterns") == 0


@pytest.mark.parametrize("kind", DATABASES)
def test_table_of_another(url: str, kind: str) -> None:
    """A table of a pattern's name that no host has made is left alone."""
    with open_host(url) as host:
        host.input("events", SCHEMA, time="at", sequence="id")
    execute(url, kind, "CREATE TABLE open_pairs (x INTEGER)")
    execute(url, kind, "INSERT INTO open_pairs VALUES (1)")
    with open_host(url) as host:
        with pytest.raises(StoreError, match=r"'open_pairs' that no host has made\. Rename it, or give the host"):
            host.deploy(PAIRS, input="events", key="user")
        assert count(host, "patterns") == 0
        assert host.sql("SELECT x FROM open_pairs").to_pylist() == [{"x": 1}]


def test_two_hosts_in_a_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program may not open a store twice either; the first host goes on."""
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    with prepared(url) as host:
        with pytest.raises(StoreError, match=r"another host .* open"):
            open_host(url)
        host.feed(events("a", "b"), input="events", position=2)
        assert count(host, "matches_pairs") == 1


@pytest.mark.parametrize("kind", OPEN_TO_OTHERS)
@pytest.mark.parametrize("statement", ["DELETE FROM open_pairs", "UPDATE open_pairs SET stage = 'b', wakeup = NULL"])
def test_rows_changed_by_others(url: str, kind: str, statement: str) -> None:
    """Rows of open partial matches are never read back: what is found is the same after others change them."""
    with prepared(url) as host:
        host.feed(events("a"), input="events", position=1)
        execute(url, kind, statement)
        host.feed(events("x", after=1), input="events", position=2)
    with open_host(url) as host:
        host.feed(events("b", after=2), input="events", position=3)
        assert count(host, "matches_pairs") == 1
        assert count(host, "open_pairs") == 0


def test_positions(url: str) -> None:
    """What is stored already is skipped, also if the position goes back; what is stored in part is refused."""
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events", position=2)
        before = contents(host)
        assert host.feed(events("a", "b"), input="events", position=2).skipped
        assert host.feed(events("a"), input="events", position=1).skipped
        with pytest.raises(EventError, match="up to 2 are stored already, and some of these 2 events, up to 3"):
            host.feed(events("b", "a", after=1), input="events", position=3)
        with pytest.raises(EventError, match=r"was 2 and is \{'0': 3\}: use numbers, or maps from partition to number"):
            host.feed(events("a", after=2), input="events", position={"0": 3})
        assert contents(host) == before
        assert not host.feed(events("a", after=2), input="events", position=3).skipped


def test_positions_of_partitions(url: str) -> None:
    """A partition that goes back while another one advances is refused."""
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events", position={"0": 1, "1": 1})
        before = contents(host)
        assert host.feed(events("a"), input="events", position={"1": 1}).skipped
        with pytest.raises(EventError, match=r"are among them. Feed the events after the stored position"):
            host.feed(events("a", after=2), input="events", position={"0": 2, "1": 0})
        assert contents(host) == before
        assert not host.feed(events("a", after=2), input="events", position={"1": 2}).skipped


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize("position", [-1, 2.5, True, [1], {}, {"0": -1}, {"0": "1"}, {0: 1}])
def test_no_position(url: str, position: Any) -> None:
    """What is no position is refused."""
    with prepared(url) as host:
        before = contents(host)
        with pytest.raises(SchemaError, match=re.escape(f"{A_POSITION}, got {position!r}")):
            host.feed(events("a"), input="events", position=position)
        assert contents(host) == before


def test_promoted_columns(url: str) -> None:
    """All problems of promoted columns are reported at once, and nothing is deployed."""
    with prepared(url) as host:
        before = contents(host)
        with pytest.raises(PatternError) as error:
            host.deploy(
                PAIRS.named("others"),
                input="events",
                key="user",
                promote={"first": "a.nothing", "second": "c.id", "Status": "a.id", "user": "a.id", "FIRST": "a.id"},
            )
        message = str(error.value)
        for problem in (
            "no column named 'nothing' (promoted column 'first', column 3)",
            "no column or stage named 'c' (promoted column 'second', column 1)",
            "promoted column 'Status' has the name of another column of the output",
            "promoted column 'user' has the name of another column of the output",
            "two promoted columns are named 'FIRST', as case does not count",
        ):
            assert problem in message
        assert contents(host) == before


def test_columns_of_another_version(url: str) -> None:
    """A promoted column that differs from one of an earlier version in case alone is refused: most databases have one
    of them only.
    """
    with prepared(url, promote={"first": "a.id"}) as host:
        before = contents(host)
        second = PAIRS.named("pairs", version="2")
        with pytest.raises(StoreError, match=r"'first' and 'First' differ in case alone\. Give these columns other"):
            host.deploy(second, input="events", key="user", promote={"First": "a.id"}, old="drop")
        assert contents(host) == before


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"key": "id"},
            "key: the tables of a pattern have a column 'id' of their own. Rename the column of the events",
        ),
        ({"key": "usr"}, "key: no column named 'usr'. Did you mean 'user'?"),
        ({"measures": {"Version": "a.id"}}, "measure 'Version' has the name of another column of the table of matches"),
        ({"measures": "a.id"}, "measures: names and their SQL are expected"),
        ({"promote": {"first": 1}}, "promote: names and their SQL are expected"),
        ({"old": "stop"}, "old: 'stop' is not one of 'drain', 'drop'"),
        ({"limits": 5}, "limits: a value such as Limits(max_partial_matches=100_000) is expected, got 5"),
        ({"input": 5}, "input: the name of an input, or matches as in MatchesOf(('carts', 'visits')), is expected"),
        ({"input": MatchesOf("pairs")}, "input: the name of an input, or matches as in MatchesOf"),  # type: ignore[arg-type]
        ({"input": MatchesOf(())}, "input: the name of an input, or matches as in MatchesOf"),
        ({"input": MatchesOf(("more",))}, "pattern 'more', whose matches are the input, is not deployed"),
        ({"pattern": PAIRS.named("")}, "a deployed pattern needs a name: its tables are named after it"),
        ({"input": MatchesOf(("pairs",), raw="others")}, "there is no input 'others'. The host has: events"),
        ({"input": "others"}, "there is no input 'others'. The host has: events"),
        ({"pattern": "a -> b"}, "a pattern is made with Pattern.begin(…)"),
        ({"pattern": {"pairs": PAIRS}}, "deploy takes one pattern: deploy several one after another"),
    ],
)
def test_deploy(url: str, arguments: dict[str, Any], message: str) -> None:
    """A wrong argument of `deploy` is refused, and changes nothing."""
    with prepared(url) as host:
        before = contents(host)
        given = {"pattern": PAIRS.named("others"), "input": "events", "key": "user", **arguments}
        with pytest.raises((SchemaError, PatternError), match=re.escape(message)):
            host.deploy(given.pop("pattern"), **given)
        assert contents(host) == before


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_retire(url: str) -> None:
    """A pattern ends in one of two ways."""
    with prepared(url) as host:
        before = contents(host)
        with pytest.raises(SchemaError, match="how: 'keep' is not one of 'drain', 'drop'"):
            host.retire("pairs", how="keep")  # type: ignore[arg-type]
        with pytest.raises(SchemaError, match=r"no pattern 'pears' runs\. Did you mean 'pairs'\?$"):
            host.retire("pears", how="drop")
        assert contents(host) == before


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_input(url: str) -> None:
    """All problems of an input are reported at once, and it is not added."""
    twice = pa.schema([*SCHEMA, pa.field("what", pa.int64())])
    with open_host(url) as host:
        with pytest.raises(SchemaError) as error:
            host.input("", SCHEMA, time="user", sequence="number", lateness="soon", time_zone="Mars", keep="long")
        for problem in (
            "name: an input needs a name",
            "lateness: not a length of time: 'soon'",
            "time_zone: 'Mars' is not known",
            "keep: not a length of time: 'long'",
            "time: 'user' is of type STRING; event time is a TIMESTAMP",
            "sequence: no column named 'number'",
        ):
            assert problem in str(error.value)
        with pytest.raises(SchemaError, match="the events have several columns 'what'"):
            host.input("events", twice, time="at")
        with pytest.raises(SchemaError, match=r"^schema: a pyarrow schema, or a table with its columns, is expected"):
            host.input("events", "id BIGINT, at TIMESTAMP", time="at")
        with pytest.raises(SchemaError, match=r"^name: an input needs a name, got 5$"):
            host.input(5, SCHEMA, time="at")  # type: ignore[arg-type]
        assert count(host, "inputs") == 0


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_events_with_other_columns(url: str) -> None:
    """Events that do not fit are refused with the name of the input and all that is wrong."""
    with prepared(url) as host:
        wrong = events("a").drop_columns("user").set_column(0, "id", pa.array(["1"]))
        with pytest.raises(SchemaError, match=r"^events have no column 'user', which input 'events' was made with$"):
            host.feed(wrong, input="events")
        wrong = events("a").set_column(0, "id", pa.array(["1"]))
        with pytest.raises(SchemaError, match=r"^column 'id' is of type string; input 'events' was made for int64$"):
            host.feed(wrong, input="events")


def test_many_names() -> None:
    """A hint does not list the names of thousands of patterns."""
    names = [f"number{i}" for i in range(1_000)]
    assert did_you_mean("x", names).endswith(", number99, and 900 more")
    assert did_you_mean("x", names[:100]).endswith(", number99")


def test_closed(url: str) -> None:
    """A closed host does nothing any more, and leaves the store to others."""
    host = prepared(url)
    host.close()
    host.close()
    for call in (
        lambda: host.feed(events("a"), input="events"),
        lambda: host.advance_time("2024-03-05"),
        lambda: host.sql("SELECT 1"),
        lambda: host.inputs,
    ):
        with pytest.raises(StoreError, match="this host is closed: open_host opens its store again"):
            call()
    with open_host(url) as other:
        assert count(other, "inputs WHERE position IS NOT NULL") == 0
