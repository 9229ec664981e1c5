"""Subscriptions on each store: in order, by their conditions, with dead letters, and across crashes."""

from __future__ import annotations

import sys
from threading import Event
from typing import Any

import pytest
from tests.durable.postgres import Server
from tests.durable.routing.hosts import find, opened, subscriptions
from tests.durable.test_stores import end_sessions, execute

from cepheid.errors import PatternError, SchemaError
from cepheid.host import Letter, open_host
from cepheid.hosts.durable.stores.layout import TABLES
from cepheid.hosts.durable.tables import KINDS

QUICK: dict[str, Any] = {"pause": "1 millisecond", "attempts": 3}
CALLED: list[int] = []


def collect(letter: Letter) -> None:
    """A function that subscriptions name by its module."""
    CALLED.append(letter.row["id"])


def test_in_order_by_condition(url: str) -> None:
    """A function gets the rows for which the condition is true, in their order, from the subscription on."""
    got: list[int] = []
    with opened(url) as host:
        find(host, 1)
        host.subscribe("big", where="id > 3 AND kind = 'match'", to=lambda letter: got.append(letter.row["id"]))
        find(host, 3, 5, 7)
        assert host.deliver()
        assert got == [5, 7]
        assert subscriptions(host)["big"] == {
            "name": "big",
            "pattern": "*",
            "condition": "id > 3 AND kind = 'match'",
            "target": "function of the program",
            "delivered": 4,
            "status": "active",
            "problem": None,
        }
        assert host.delivered_up_to == 4
        host.unsubscribe("big")
        find(host, 9)
        assert host.deliver()
        assert got == [5, 7]
        assert host.subscriptions.num_rows == 0


def test_from_the_beginning(url: str) -> None:
    """A subscription may begin at any number of the outbox."""
    got: list[int] = []
    with opened(url) as host:
        find(host, 1, 3, 5)
        host.subscribe("all", after=1, to=lambda letter: got.append(letter.number))
        assert host.deliver()
        assert got == [2, 3]


def test_letters(url: str) -> None:
    """A letter has the id of its match, which stays the same, and the whole row."""
    got: list[Letter] = []
    with opened(url) as host:
        host.subscribe("all", pattern="pairs", to=got.append)
        find(host, 1)
        assert host.deliver()
        (row,) = host.sql("SELECT match_id, id FROM matches_pairs").to_pylist()
        assert (got[0].id, got[0].row["id"]) == (row["match_id"], row["id"])
        assert (got[0].pattern, got[0].version, got[0].kind, got[0].out_of_order) == ("pairs", "1", "match", False)


def test_dead_letters(url: str) -> None:
    """A letter that was tried often enough becomes a dead letter, and the next one goes on. It can be sent again, out
    of order, and is forgotten once it has arrived.
    """
    got: list[Letter] = []
    broken = {3}

    def receive(letter: Letter) -> None:
        if letter.row["id"] in broken:
            raise RuntimeError("not this one")
        got.append(letter)

    with opened(url) as host:
        host.subscribe("all", to=receive, **QUICK)
        find(host, 1, 3, 5)
        assert host.deliver()
        assert [one.row["id"] for one in got] == [1, 5]
        (dead,) = host.dead_letters.to_pylist()
        assert (dead["number"], dead["attempts"], dead["status"]) == (2, 3, "dead")
        assert dead["problem"] == subscriptions(host)["all"]["problem"] == "RuntimeError: not this one"
        assert subscriptions(host)["all"]["status"] == "active"
        with pytest.raises(SchemaError, match=r"'all' has no dead letter 1\. It has: 2"):
            host.resend("all", [1])
        assert host.resend("all") == 1
        assert host.deliver()
        assert host.dead_letters.column("attempts").to_pylist() == [6]
        assert host.resend("all", [2]) == 1
    broken.clear()
    with opened(url) as host:  # that it is to be sent again is stored
        host.subscribe("all", to=receive, **QUICK)
        assert host.deliver()
        assert [(one.row["id"], one.out_of_order) for one in got] == [(1, False), (5, False), (3, True)]
        assert host.dead_letters.num_rows == 0


def test_resent_twice(url: str) -> None:
    """A dead letter that is on its way already is not sent twice, and a replaced function gets it, too."""
    got: list[int] = []

    def broken(letter: Letter) -> None:
        got.append(letter.number)
        raise RuntimeError("not now")

    with opened(url) as host:
        host.subscribe("all", to=broken, attempts=2, pause="1 millisecond")
        find(host, 1, 3)
        assert host.deliver()
        assert got == [1, 1, 2, 2]
        for _ in range(3):
            host.resend("all", [1])
        host.subscribe("all", to=lambda letter: got.append(-letter.number), attempts=2, pause="1 millisecond")
        assert host.deliver()
        assert host.deliver()
        assert got == [1, 1, 2, 2, -1]
        assert host.dead_letters.column("number").to_pylist() == [2]


def test_lost_connection(postgres: Server) -> None:
    """After the connection to the store was lost, deliveries go on: nothing is lost, and nothing is sent twice."""
    got: list[int] = []
    with opened(postgres.url("lost_subscriber")) as host:
        host.subscribe("all", to=lambda letter: got.append(letter.row["id"]))
        host.subscribe("to_table", to="table://alerts")
        find(host, 1)
        assert host.deliver()
        find(host, 3)
        end_sessions(postgres, "lost_subscriber")
        assert host.deliver()
        assert "cannot be written" in subscriptions(host)["to_table"]["problem"]
        find(host, 5)
        assert host.deliver()
        assert got == [1, 3, 5]
        assert host.sql("SELECT id FROM alerts ORDER BY id").column("id").to_pylist() == [1, 3, 5]
        assert {one["delivered"] for one in subscriptions(host).values()} == {3}


def test_problem_with_strange_characters(url: str) -> None:
    """A problem is stored whatever its text is: no receiver can break the store by it."""

    def receive(_: Letter) -> None:
        raise RuntimeError("\0 \x1b[31m \ud800 " + "x" * 1000)

    with opened(url) as host:
        host.subscribe("all", to=receive, attempts=1)
        find(host, 1)
        assert host.deliver()
        (problem,) = host.dead_letters.column("problem").to_pylist()
        assert problem.startswith("RuntimeError:    [31m   xxx")
        assert len(problem) == 500


def test_condition_that_fails(url: str) -> None:
    """A row on which the condition fails becomes a dead letter; the others go on."""
    got: list[int] = []
    with opened(url) as host:
        host.subscribe("all", where="10 / (id - 3) < 100", to=lambda letter: got.append(letter.row["id"]))
        find(host, 1, 3, 5)
        assert host.deliver()
        assert got == [1, 5]
        (dead,) = host.dead_letters.to_pylist()
        assert dead["problem"].startswith("where: ")
        assert "10 / (id - 3)" in dead["problem"]


def test_one_that_hangs(url: str) -> None:
    """A subscriber that hangs stops neither the others nor the matching, nor the end of the host."""
    got: list[int] = []
    goes_on = Event()
    with opened(url) as host:
        host.subscribe("hangs", to=lambda _: goes_on.wait(60))
        host.subscribe("works", to=lambda letter: got.append(letter.row["id"]))
        for number in (1, 3, 5):
            find(host, number)
            assert not host.deliver("300 milliseconds")
        assert got == [1, 3, 5]
        assert subscriptions(host)["works"]["delivered"] == 3
        assert subscriptions(host)["hangs"]["delivered"] == 0
        assert host.delivered_up_to == 0
        assert host.figures().subscriptions["hangs"].behind == 3
        goes_on.set()
        assert host.deliver()


def test_table(url: str) -> None:
    """A table in the same store gets each row once, with typed columns, also if the host crashes between two steps."""
    with opened(url) as host:
        host.subscribe("to_table", where="id > 1", to="table://alerts")
        find(host, 1, 3)
        assert host.deliver()
        find(host, 5)
    with opened(url) as host:
        find(host, 7)
        assert host.deliver()
        assert host.sql("SELECT number, id, half FROM alerts ORDER BY number").to_pylist() == [
            {"number": 2, "id": 3, "half": 1.5},
            {"number": 3, "id": 5, "half": 2.5},
            {"number": 4, "id": 7, "half": 3.5},
        ]
        assert subscriptions(host)["to_table"]["delivered"] == 4


def test_table_and_number_in_one_transaction(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the number cannot be written, the table's rows are not written either, and the next step writes them."""
    with opened(url) as host:
        host.subscribe("to_table", to="table://alerts")
        find(host, 1)
        host.deliver()
        find(host, 3)
        with monkeypatch.context() as broken:
            broken.setattr("cepheid.hosts.durable.routing.table.save", _fails)
            with pytest.raises(OSError, match="no more"):
                host.deliver()
        assert host.sql("SELECT id FROM alerts").num_rows == 1
        assert host.deliver()
        assert host.sql("SELECT id FROM alerts ORDER BY id").column("id").to_pylist() == [1, 3]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_table_that_is_gone(url: str, kind: str) -> None:
    """A table that cannot be written any more makes its own subscription fail, and nothing else."""
    got: list[int] = []
    with opened(url) as host:
        host.subscribe("to_table", to="table://alerts")
        host.subscribe("works", to=lambda letter: got.append(letter.row["id"]))
        host.deliver()
        execute(url, kind, "DROP TABLE alerts")
        find(host, 1)
        assert not host.deliver("1 second")
        assert got == [1]
        assert subscriptions(host)["to_table"]["status"] == "failing"
        assert "no such table" in subscriptions(host)["to_table"]["problem"]


def _fails(*_: object) -> None:
    raise OSError("no more")


def test_named_functions(url: str) -> None:
    """A function is stored by its name, and called only by a host that is allowed to."""
    name = f"{__name__}:collect"
    sys.modules[__name__] = sys.modules[collect.__module__]
    CALLED.clear()
    with opened(url) as host, pytest.raises(SchemaError, match=f"the host may not reach {name}: open or run it with"):
        host.subscribe("named", to=name)
    with opened(url, name) as host:
        host.subscribe("named", to=name)
    with opened(url) as host:
        find(host, 1)
        assert host.deliver()
        assert subscriptions(host)["named"]["status"] == "waiting"
        assert "may not reach" in subscriptions(host)["named"]["problem"]
    assert CALLED == []
    with opened(url, name) as host:
        assert host.deliver()
        assert subscriptions(host)["named"]["status"] == "active"
    assert CALLED == [1]


def test_functions_of_the_program(url: str) -> None:
    """Without the program's function the subscription waits, and loses nothing."""
    got: list[int] = []

    def receive(letter: Letter) -> None:
        got.append(letter.row["id"])

    with opened(url) as host:
        host.subscribe("own", to=receive)
    with opened(url) as host:
        find(host, 1)
        assert host.deliver()
        assert "has not given the function" in subscriptions(host)["own"]["problem"]
        assert host.delivered_up_to == 0
        host.subscribe("own", to=receive)
        assert host.deliver()
    assert got == [1]


def test_later_patterns(url: str) -> None:
    """A subscription to all patterns also has those that are deployed later; a column that one lacks is NULL."""
    from tests.durable.test_stores import PAIRS

    got: list[tuple[str, Any]] = []
    with opened(url) as host:
        host.subscribe("all", where="id IS NULL OR id > 3", to=lambda one: got.append((one.pattern, one.row.get("id"))))
        host.subscribe("table", to="table://alerts")
        find(host, 1)
        host.deliver()
        host.deploy(PAIRS.named("others"), input="events", key="user", measures={"first": "a.id"})
        find(host, 5)
        assert host.deliver()
        assert got == [("pairs", 5), ("others", None)]
        rows = host.sql("SELECT id, first FROM alerts ORDER BY number").to_pylist()
        assert rows == [{"id": 1, "first": None}, {"id": 5, "first": None}, {"id": None, "first": 4}]


def test_later_pattern_that_does_not_fit(url: str) -> None:
    """A condition that a later pattern's columns make ambiguous stops its own subscription, which says why, and nothing
    else; what was found until then is delivered.
    """
    from tests.durable.test_stores import PAIRS

    got: list[int] = []
    with opened(url) as host:
        host.subscribe("by_id", where="id > 1", to=lambda letter: got.append(letter.number))
        host.subscribe("all", to=lambda letter: got.append(-letter.number))
        find(host, 1, 3)
        assert host.deliver()
        host.deploy(PAIRS.named("others"), input="events", key="user", measures={"ID": "b.id"})
        find(host, 5)
        assert host.deliver()
        assert sorted(got) == [-4, -3, -2, -1, 2]
        one = subscriptions(host)["by_id"]
        assert (one["status"], one["delivered"]) == ("waiting", 2)
        assert "ambiguous column 'id'" in one["problem"]


def test_problems_are_reported_at_once(url: str) -> None:
    """Wrong arguments are refused with all their problems, and nothing has changed."""
    with opened(url) as host:
        with pytest.raises(PatternError) as caught:
            host.subscribe(
                "",
                pattern="pears",
                where="amount > 3 AND ident = 2",
                to="ftp://x",
                secret="hunter2",  # noqa: S106 - it is refused
                timeout="soon",
                attempts=0,
                after=9,
            )
        message = str(caught.value)
        for expected in (
            "name: 1 to 100 printable characters of ASCII are expected, got ''",
            "pattern: no pattern 'pears' was deployed. Did you mean 'pairs'?",
            "no column named 'amount'",
            "no column named 'ident'",
            "to: 'ftp://x' is none of https://",
            "secret: the name of an environment variable",
            "timeout: ",
            "attempts: a whole number from 1 on",
            "after: the last number in the outbox is 0, got 9",
        ):
            assert expected in message
        assert "hunter2" not in message
        for where, problem in {
            "id + 1": "a condition must be BOOLEAN, this is BIGINT",
            "count(id) > 1": "no stage named 'id'",
            "id > 1; DELETE FROM outbox": "a second statement is refused",
            "id IN (SELECT 1)": "subquer",
            "rand() > 0.5": "rand",
        }.items():
            with pytest.raises(PatternError, match=problem.replace("'", ".")):
                host.subscribe("x", where=where, to="table://alerts")
        assert host.subscriptions.num_rows == 0


def test_other_arguments(url: str) -> None:
    """A subscription of the same name with other arguments is refused; with the same ones it is left as it is."""
    with opened(url) as host:
        host.subscribe("x", where="id > 1", to="table://alerts")
        host.subscribe("x", where="id > 1", to="table://alerts")
        with pytest.raises(SchemaError, match=r"'x' is there already, with where 'id > 1', not 'id > 2'"):
            host.subscribe("x", where="id > 2", to="table://alerts")
        with pytest.raises(SchemaError, match=r"^there is no subscription 'y'\. Known here: x$"):
            host.unsubscribe("y")
        host.unsubscribe("x")
        for change in (host.unsubscribe, host.resend):
            with pytest.raises(
                SchemaError, match=r"^there is no subscription 'x'\. The host has none: add one with sub"
            ):
                change("x")


def test_before_any_pattern(url: str) -> None:
    """A host without patterns says that a condition has no columns yet, and that a pattern must be deployed first."""
    with open_host(url) as host:
        with pytest.raises(SchemaError, match=r"^where: none of the patterns runs, so there are no columns to compare"):
            host.subscribe("x", where="id > 1", to="table://alerts")
        with pytest.raises(SchemaError, match=r"^pattern: no pattern 'pairs' was deployed\. Deploy it first$"):
            host.subscribe("x", pattern="pairs", to="table://alerts")


@pytest.mark.parametrize("kind", ["sqlite"])  # arguments are checked before any store has to do with them
def test_tables_of_the_host(url: str) -> None:
    """No table of the host, of a pattern, or beside those of a store in files is a target: its rows would get into
    theirs.
    """
    of_patterns = [f"{prefix}_x" for prefix in ("Open", *KINDS)]
    names = [*TABLES, *of_patterns, "subscriptions", "DEAD_letters", "recent_alerts", "gone_alerts", "sqlite_x"]
    with opened(url) as host:
        for name in names:
            with pytest.raises(
                SchemaError, match=rf"^to: the name '{name}' is kept for the host: give the table anoth"
            ):
                host.subscribe("x", to=f"table://{name}")
        host.subscribe("x", to="table://opened")
