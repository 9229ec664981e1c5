"""What queries, URLs and roles may not do."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from tests.durable.postgres import Server
from tests.durable.test_stores import PAIRS, SCHEMA, count, events, prepared

from cepheid.errors import StoreError
from cepheid.host import Host, open_host
from cepheid.hosts.durable.remote.client import RemoteHost, connect
from cepheid.hosts.durable.remote.place import socket_of
from cepheid.hosts.durable.remote.server import HostServer
from cepheid.hosts.durable.stores.postgresql_rights import grants

ON_ALL = [
    "INSERT INTO matches_pairs SELECT * FROM matches_pairs",
    "UPDATE patterns SET status = 'retired'",
    "DELETE FROM outbox",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMPORARY TABLE x AS SELECT 1",
    "ALTER TABLE outbox ADD COLUMN x INTEGER",
    "SELECT 1; DROP TABLE outbox",
    "COMMIT; DELETE FROM outbox",
    "SELECT 1) AS q; DELETE FROM outbox; SELECT (1",
    "BEGIN",
    "ROLLBACK",
    "EXPLAIN ANALYZE DELETE FROM outbox",
    "-- nothing",
    "VACUUM",
]
ON = {
    "sqlite": [
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = 0",
        "SELECT * FROM pragma_table_info('outbox')",
        "ATTACH '{folder}/other.db' AS other",
        "SELECT load_extension('{folder}/x')",
        "VACUUM INTO '{folder}/copy.db'",
        "SELECT writefile('{folder}/x', 'y')",
        "SELECT readfile('/etc/passwd')",
        "SELECT length(zeroblob(900000000))",
    ],
    "duckdb": [
        "COPY outbox TO '{folder}/x.csv'",
        "COPY (SELECT 1) TO '{folder}/x.csv'",
        "EXPORT DATABASE '{folder}/x'",
        "ATTACH '{folder}/other.db' AS other",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM query('DELETE FROM outbox')",
        "SET enable_external_access = true",
        "PRAGMA database_list; SELECT 1",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL force_checkpoint()",
        "SELECT * FROM known",
    ],
    "postgresql": [
        "COPY outbox TO '{folder}/x.csv'",
        "COPY (SELECT 1) TO PROGRAM 'touch {folder}/x'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT U&\"pg\\005fread_file\"('/etc/passwd')",
        "SELECT * FROM pg_ls_dir('.')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_creat(-1)",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT set_config('role', 'postgres', true), query_to_xml('SELECT 1', true, true, '')",
        "SELECT 1 FROM outbox ORDER BY pg_terminate_backend(pg_backend_pid())",
        "WITH x AS (SELECT pg_reload_conf()) SELECT * FROM x",
        "SELECT (SELECT count(*) FROM generate_series(1, 2) WHERE pg_sleep(0) IS NULL)",
        "SELECT sum(1) OVER (ORDER BY nextval('x')) FROM outbox",
        "SELECT 1 /* (\n */ FROM outbox WHERE pg_notify('a', 'b') IS NULL",
        "VALUES (pg_advisory_lock(1))",
        "SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t(x INTEGER)",
        "SELECT 1 INTO x",
        "SELECT * FROM outbox FOR UPDATE",
        "DO $$ BEGIN DELETE FROM outbox; END $$",
        "CALL x()",
        "SET ROLE postgres",
        "LISTEN x",
        "LOCK TABLE outbox",
        "SHOW data_directory",
    ],
}

ENDLESS = "WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x)"


def test_attacks(url: str, kind: str, tmp_path: Path) -> None:
    """A query only reads the host's tables: each attack is refused, and has done nothing."""
    known = events("a")
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events")
        before = sorted(path.name for path in tmp_path.iterdir())
        for query in (*ON_ALL, *ON["duckdb" if kind == "file" else kind]):
            with pytest.raises(StoreError, match=r"refuses the query|one SELECT"):
                host.sql(query.replace("{folder}", str(tmp_path)))
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert count(host, "matches_pairs") == count(host, "outbox") == known.num_rows
        assert host.sql("SELECT status FROM patterns").to_pylist() == [{"status": "running"}]


def test_queries(url: str) -> None:
    """What reads is allowed: functions, subqueries, unions and several columns of one name."""
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events")
        query = "WITH x AS (SELECT lower(kind) AS k FROM outbox) SELECT k, count(*) AS n FROM x GROUP BY k -- so many"
        assert host.sql(query).to_pylist() == [{"k": "match", "n": 1}]
        assert host.sql("SELECT 1 AS a UNION ALL SELECT 2 ORDER BY 1 DESC").column("a").to_pylist() == [2, 1]
        assert host.sql("SELECT abs(-1), abs(-2)").num_columns == 2


def test_table_that_does_not_exist(url: str) -> None:
    """A query of a table that does not exist is answered with the tables that do."""
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events")
        there = "dead_letters, inputs, matches_pairs, open_pairs, outbox, patterns, scripts, subscriptions"
        with pytest.raises(StoreError, match=rf"match_pairs.*\. There are: {there}$") as caught:
            host.sql("SELECT * FROM match_pairs")
        assert "!" not in str(caught.value)
        with pytest.raises(StoreError) as caught:
            host.sql("SELECT nothing FROM matches_pairs")
        assert "There are" not in str(caught.value)


PLANTED = [
    "CREATE EXTENSION tablefunc",
    "CREATE FUNCTION reads() RETURNS text LANGUAGE sql STABLE AS $$ SELECT pg_read_file('/etc/hostname') $$",
    "CREATE FUNCTION reads(outbox) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT reads()'",
    "CREATE FUNCTION reads(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT reads()'",
    "CREATE OPERATOR @@@ (FUNCTION = reads, LEFTARG = text, RIGHTARG = text)",
    "CREATE AGGREGATE all_of(text) (SFUNC = reads, STYPE = text)",
    "CREATE TYPE chosen AS ENUM ('a')",
    "CREATE FUNCTION chosen_of(bigint) RETURNS chosen LANGUAGE sql IMMUTABLE AS $$ SELECT 'a'::chosen FROM reads() $$",
    "CREATE CAST (bigint AS chosen) WITH FUNCTION chosen_of(bigint)",
    "CREATE VIEW inner_view AS SELECT pg_read_file('/etc/hostname') AS text",
    "CREATE VIEW outer_view AS SELECT * FROM inner_view",
    "CREATE VIEW harmless AS SELECT lower(kind) AS k FROM outbox",
    "CREATE RULE redirected AS ON INSERT TO harmless DO INSTEAD SELECT pg_sleep(1)",
]
BY_PLANTED = [
    "SELECT * FROM crosstab('SELECT pg_read_file(''/etc/hostname''), 1, 1') AS t(a text, b int)",
    "SELECT reads()",
    "SELECT * FROM reads() AS text",
    "SELECT outbox.reads FROM outbox",
    "SELECT kind @@@ version FROM outbox",
    "SELECT kind FROM outbox ORDER BY kind @@@ version",
    "SELECT all_of(kind) FROM outbox",
    "SELECT number::chosen FROM outbox",
    "SELECT * FROM inner_view",
    "SELECT number FROM outbox WHERE EXISTS (TABLE outer_view)",
    "SELECT table_to_xml('outer_view', true, true, '')",
    "SELECT schema_to_xml_and_xmlschema('public', true, true, '')",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM pg_file_settings",
]


def test_what_others_have_made(postgres: Server) -> None:
    """A query reaches no function that was added to the server, or that is volatile, by a view, an operator, a cast or
    the attribute of a row, and none that runs queries. Views of what may be called are allowed.
    """
    url = postgres.url("planted")
    with prepared(url) as host:
        host.feed(events("a", "b"), input="events")
        with psycopg.connect(url, autocommit=True) as admin:
            for statement in PLANTED:
                admin.execute(statement)
        for query in BY_PLANTED:
            with pytest.raises(StoreError, match="PostgreSQL refuses the query: it calls "):
                host.sql(query)
        for _ in range(2):
            assert host.sql("SELECT * FROM harmless").to_pylist() == [{"k": "match"}]
        assert host.sql("SELECT count(*) AS n FROM pg_stat_activity").column("n").to_pylist() > [0]


@pytest.mark.parametrize("query", [f"{ENDLESS} SELECT max(i % 2) FROM x", f"{ENDLESS} SELECT NULL AS n FROM x"])
def test_query_that_does_not_end(url: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that takes too long is ended, also while it gives rows."""
    for module in ("sqlite_reader", "duckdb", "postgresql_reader"):
        monkeypatch.setattr(f"cepheid.hosts.durable.stores.{module}.LONGEST_QUERY", 1)
    with prepared(url) as host:
        begun = time.monotonic()
        with pytest.raises(
            StoreError, match=r"refuses the query: .*\. A query may take 60 seconds: aggregate less, or"
        ):
            host.sql(query)
        assert time.monotonic() - begun < 20
        assert count(host, "patterns") == 1


@pytest.mark.parametrize("is_remote", [False, True])
def test_result_that_is_too_large(url: str, kind: str, is_remote: bool) -> None:  # noqa: FBT001 - a parameter
    """A result is refused when it has too many bytes, though the query would go on; in this process and on the socket.
    What is smaller comes whole.
    """
    long_text = "printf('%100000s', 'x')" if kind == "sqlite" else "repeat('x', 100000)"
    query = f"{ENDLESS} SELECT {long_text} AS t FROM x"
    with prepared(url) as host, ExitStack() as stack:
        asked: Host | RemoteHost = host
        if is_remote:
            stack.enter_context(closing(HostServer(socket_of(url), host)))
            client = connect(url)
            assert client is not None
            asked = stack.enter_context(client)
        with pytest.raises(StoreError, match=r"^the result has more than 536,870,912 bytes: aggregate it, or ask for"):
            asked.sql(query)
        rows = asked.sql(f"{query} LIMIT 100")
        assert (rows.num_rows, rows.column("t").nbytes // 100_000) == (100, 100)


def test_types_of_a_long_result(url: str, kind: str) -> None:
    """The type of a column is that of all its values, also if the first rows have only NULL or whole numbers."""
    numbers = {"sqlite": "WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x LIMIT 30000)"}
    numbers["postgresql"] = "WITH x(i) AS (SELECT * FROM generate_series(1, 30000))"
    first = numbers.get(kind, "WITH x(i) AS (SELECT * FROM range(1, 30001))")
    select = (
        "SELECT CASE WHEN i > 29990 THEN i END AS a, CASE WHEN i > 29990 THEN 0.5 ELSE 1 END AS b FROM x ORDER BY i"
    )
    with prepared(url) as host:
        rows = host.sql(f"{first} {select}")
        assert rows.column("a").to_pylist() == [None] * 29990 + [*range(29991, 30001)]
        assert [float(value) for value in rows.column("b").to_pylist()[29989:29991]] == [1, 0.5]
        assert host.sql("SELECT kind FROM outbox").num_rows == 0
        if kind == "sqlite":
            with pytest.raises(StoreError, match="column 'a' of the result has values of several types: cast it"):
                host.sql(f"{first} SELECT CASE WHEN i > 29990 THEN 'x' ELSE i END AS a FROM x")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@server/alerts",
        "postgresql://server/alerts?user=me&password=hunter2",
        "postgresql:///alerts?pass%77ord=hunter2",
        "postgresql:///alerts?sslpassword=hunter2",
    ],
)
def test_password_in_a_url(url: str) -> None:
    """A password in the URL is refused, and not repeated."""
    with pytest.raises(StoreError, match="the URL has a password") as caught:
        open_host(url)
    assert "hunter2" not in str(caught.value)


def test_roles(postgres: Server) -> None:
    """The owner runs the host; a deployer deploys, and drops nothing; a reader reads, and writes nothing."""
    url = postgres.url("roles")
    with psycopg.connect(url, autocommit=True) as admin:
        for _ in range(2):
            admin.execute(grants('ale"rts'))
    owner, deployer, reader = (url.replace("user=postgres", f"user=ale%22rts_{role}") for role in _ROLES)
    with prepared(owner) as host:
        host.feed(events("a", "b"), input="events")
    with open_host(deployer) as host:
        host.deploy(PAIRS.named("others"), input="events", key="user")
        new = {"input": "events", "key": "user", "measures": {"first": "a.id"}, "old": "drop"}
        with pytest.raises(
            StoreError, match=r"must be owner of table .*_pairs\. .* deploy such a version as that role$"
        ):
            host.deploy(PAIRS.named("pairs", version="2"), **new)
        assert count(host, "patterns WHERE version = '2'") == 0
        host.deploy(PAIRS.named("pairs", version="3"), input="events", key="user", old="drop")
        host.feed(events("a", "b", after=2), input="events")
    with psycopg.connect(deployer) as other, pytest.raises(psycopg.errors.InsufficientPrivilege):
        other.execute("DROP TABLE matches_pairs")
    with open_host(owner) as host:
        host.deploy(
            PAIRS.named("others", version="2"), input="events", key="user", promote={"first": "a.id"}, old="drop"
        )
        host.feed(events("a", "b", after=4), input="events")
        assert count(host, "matches_others") == 2
    with psycopg.connect(reader, autocommit=True) as other:
        assert other.execute("SELECT count(*) FROM matches_others").fetchall() == [(2,)]
        for statement in (
            "DELETE FROM matches_pairs",
            "INSERT INTO patterns (number) VALUES (9)",
            "UPDATE cepheid_host SET epoch = 0",
            "CREATE TABLE x (y INTEGER)",
            "DROP TABLE matches_others",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(statement)
    with pytest.raises(StoreError, match="permission denied"):
        open_host(reader)


_ROLES = ("owner", "deployer", "reader")


def test_no_rights(postgres: Server) -> None:
    """A user without rights in the schema is refused, and nothing is left behind."""
    url = postgres.url("no_rights")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE nobody_here LOGIN")
    with pytest.raises(StoreError, match="permission denied for schema public"):
        open_host(url.replace("user=postgres", "user=nobody_here"))
    with open_host(url) as host:
        host.input("events", SCHEMA, time="at")
