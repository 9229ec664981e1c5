"""Many patterns in one host: each has the rows that it would have alone."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid import Pattern
from cepheid.host import Host, open_host

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("key", pa.int64()), ("x", pa.int64())])
PATTERNS = [
    Pattern.begin("a", name="pair").where("x = 0").followed_by("b").where("x = 1").within("10 seconds"),
    Pattern.begin("b", name="other").where("x = 0").followed_by("c").where("x = 2").within("4 seconds"),
    Pattern.begin("a", name="any").where("x <= 1").followed_by_any("b").where("x >= 1").followed_by("c").where("x = 3"),
    Pattern.begin("a", name="loop").where("x = 1").one_or_more().followed_by("end").where("x = 3").within("5 seconds"),
    Pattern.begin("a", name="late_one").where("x > 1").followed_by("b").where("x < a.x").within("6 seconds"),
]
DEPLOYED: list[dict[str, Any]] = [
    {"key": "key", "columns": "id"},
    {"key": "key", "columns": "id"},
    {"key": "key", "columns": "id"},
    {"key": "key", "columns": "id", "promote": {"first": "a.id"}},
    {"columns": ["id", "x"]},
]
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), max_size=8)


def tables(
    deployed: list[int], feeds: list[list[tuple[int, int, int]]], opened: Callable[[str], Host] = open_host
) -> dict[str, list[dict[str, Any]]]:
    """What a host of these patterns has stored after the feeds of events: key, seconds since the one before, x."""
    with TemporaryDirectory() as folder, opened(f"duckdb:///{folder}/events.duckdb") as host:
        host.input("events", SCHEMA, time="at", sequence="id", lateness="1 second")
        for number in deployed:
            host.deploy(PATTERNS[number], input="events", outputs=["matches", "timeouts"], **DEPLOYED[number])
        time = fed = 0
        for events in feeds:
            rows = []
            for key, seconds, x in events:
                time, fed = time + seconds, fed + 1
                rows.append({"id": fed, "at": time * 1_000_000, "key": key, "x": x})
            host.feed(pa.Table.from_pylist(rows, SCHEMA), input="events")
        names = [PATTERNS[number].name for number in deployed]
        return {
            table: host.sql(f"SELECT * FROM {table} ORDER BY 1").to_pylist()
            for name in names
            for table in (f"open_{name}", f"matches_{name}", f"timeouts_{name}")
        }


@settings(max_examples=8, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=5))
def test_patterns_do_not_matter_to_one_another(feeds: list[list[tuple[int, int, int]]]) -> None:
    """What is open and what is found of each pattern is the same in a host of all of them and in a host of its own."""
    numbers = [*range(len(PATTERNS))]
    alone: dict[str, list[dict[str, Any]]] = {}
    for number in numbers:
        alone |= tables([number], feeds)
    assert tables(numbers, feeds) == alone
