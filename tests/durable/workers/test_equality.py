"""With workers a host finds and stores what it does without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.durable.cases import Case, read_cases, run_case
from tests.durable.test_many_patterns import EVENTS, PATTERNS, SCHEMA, tables

from cepheid import Pattern
from cepheid.errors import ConditionError, EventError, LimitExceeded, SchemaError
from cepheid.host import Host, MatchesOf, open_host
from cepheid.plan.limits import Limits

CASES = [case for case in read_cases() if case["name"].startswith(("e8", "e9", "e10"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: Case, opened: Callable[[str], Host], tmp_path: Path) -> None:
    """A case of hosts, with versions, draining and tiers, is as without workers."""
    assert run_case(case, f"file://{tmp_path}/store", opened=opened) == []


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(feeds=st.lists(EVENTS, min_size=1, max_size=5))
def test_tables(feeds: list[list[tuple[int, int, int]]], opened: Callable[[str], Host]) -> None:
    """What is open and what is found is the same, in the same order."""
    numbers = [*range(len(PATTERNS))]
    assert tables(numbers, feeds, opened) == tables(numbers, feeds)


def many(first: int, count: int) -> pa.Table:
    """Events a second apart."""
    rows = [{"id": n, "at": n * 1_000_000, "key": n % 3, "x": (n * 7919 >> 3) % 4} for n in range(first, first + count)]
    return pa.Table.from_pylist(rows, SCHEMA)


def prepared(host: Host) -> Host:
    """A host with patterns of several kinds, and a tier."""
    host.input("events", SCHEMA, time="at", sequence="id")
    for number, pattern in enumerate(one for one in PATTERNS if one.name != "any"):
        host.deploy(pattern, input="events", key="key", measures={"id": "a.id"} if number == 0 else None)
    host.deploy(PATTERNS[0].named("tier", version="1"), input=MatchesOf(("pair",), raw="events"), key="key")
    return host


@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_outbox(store: str, opened: Callable[[str], Host], tmp_path: Path) -> None:
    """The outbox has the same rows in the same order, also if many events come at once, and after a restart."""
    found = []
    for number, opens in enumerate((open_host, opened)):
        url = f"{store}:///{tmp_path}/store{number}"
        with prepared(opens(url)) as host:
            host.feed(many(0, 3000), input="events")
        with opens(url) as host:
            host.feed(many(3000, 30), input="events")
            host.retire("pair", how="drain")
            host.retire("other", how="drop")
            host.feed(many(3030, 30), input="events")
            host.advance_time("2024-03-04T00:00:00Z")
            outbox = host.sql("SELECT number, pattern, kind, match_id, content FROM outbox ORDER BY number")
            found.append((outbox, host.figures().patterns, host.figures().no_match))
    assert found[0] == found[1]
    assert found[0][0].num_rows > 100


def feed_zero(host: Host) -> None:
    host.feed(pa.Table.from_pylist([{"id": 9, "at": 1_000_000, "key": 1, "x": 0}], SCHEMA), input="events")


@pytest.mark.parametrize(
    ("limits", "row", "error"),
    [
        (None, {"id": 1, "at": 2_000_000, "key": 1, "x": 2**62}, ConditionError),
        (Limits(max_partial_matches=1), {"id": 1, "at": 2_000_000, "key": 1, "x": 0}, LimitExceeded),
        (None, {"id": 1, "at": None, "key": 1, "x": 0}, EventError),
    ],
)
def test_errors(
    limits: Limits | None,
    row: dict[str, Any],
    error: type[Exception],
    opened: Callable[[str], Host],
    tmp_path: Path,
) -> None:
    """An error in a worker is raised as without workers, and the host is as before the call."""
    pattern = Pattern.begin("a", name="a").where("x = 0").followed_by_any("b").where("x * 4 > a.x").within("1 hour")
    messages = []
    for number, opens in enumerate((open_host, opened)):
        with opens(f"sqlite:///{tmp_path}/store{number}") as host:
            host.input("events", SCHEMA, time="at", sequence="id")
            host.deploy(PATTERNS[0], input="events", key="key")
            host.deploy(pattern, input="events", key="key", limits=limits)
            feed_zero(host)
            before = host.sql("SELECT * FROM open_a"), host.sql("SELECT * FROM open_pair")
            with pytest.raises(error) as raised:
                host.feed(pa.Table.from_pylist([row], SCHEMA), input="events")
            messages.append(str(raised.value))
            assert (host.sql("SELECT * FROM open_a"), host.sql("SELECT * FROM open_pair")) == before
            assert host.inputs["events"].events == 1
    assert messages[0] == messages[1]


@pytest.mark.parametrize("given", [0, True, "all", 1.5, 1000])
def test_refused(given: Any, tmp_path: Path) -> None:
    """A number of workers that is none is refused, and no store is made."""
    with pytest.raises(
        SchemaError, match=rf"workers: a whole number from 1 to 256, or 'auto', is expected, got {given!r}"
    ):
        open_host(f"sqlite:///{tmp_path}/store", workers=given)
    assert not any(tmp_path.iterdir())
