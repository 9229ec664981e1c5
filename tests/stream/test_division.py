"""Matchers whose state is divided by key, and joined again in another way, go on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.intervals.strategies import forbidding_patterns, patterns, tables
from tests.live.events import T, events
from tests.occurrences.shop import START, shop
from tests.occurrences.strategies import expressions
from tests.occurrences.test_live import PATTERNS as OF_OCCURRENCES
from tests.occurrences.test_semantic_equals_reference import KNOWN, MAPPING
from tests.occurrences.test_semantic_equals_reference import Row as Stated
from tests.occurrences.test_semantic_equals_reference import expressions as semantic_expressions
from tests.occurrences.test_semantic_equals_reference import rows as statements
from tests.occurrences.test_semantic_equals_reference import table as stated
from tests.searching import share
from tests.stream.divided import Shards
from tests.stream.test_shard import Stream
from tests.stream.test_shard_trees import (
    OF_INTERVALS,
    IntervalStream,
    OccurrenceStream,
    interval_stream,
    never_certain,
)
from tests.stream.test_tree_streams import spans

from cepheid import Occurrence, OccurrencePattern, Pattern, SnapshotError
from cepheid.intervals import interval_pattern
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.matchers.protocols import LiveMatcher
from cepheid.matchers.snapshot import from_bytes, to_bytes

pytestmark = [
    pytest.mark.filterwarnings("ignore:policy 'recent' with the condition"),
    pytest.mark.filterwarnings("ignore:a matcher keeps what is open"),
]
SECOND = 1_000_000
KEYS = list("pqrstu")
numbers_of_shards = st.lists(st.integers(1, 3), min_size=3, max_size=3)


def is_b(event: Any) -> bool:
    return bool(event["x"] == "b")


A, B = "x = 'a'", "x = 'b'"
OF_STAGES = {
    "sets": Pattern.begin("a")
    .where(A)
    .followed_by_any("b")
    .where(B)
    .followed_by_any("c")
    .where("x = 'c'")
    .within("9 seconds"),
    "one by one": Pattern.begin("a").where(A).followed_by("b").where(f"{B} AND id > a.id + 1").within("9 seconds"),
    "loops": Pattern.begin("a").where(A).followed_by("b").where(B).one_or_more().greedy().within("9 seconds"),
    "longest": Pattern.begin("a").where(A).next("b").where(B).one_or_more().consecutive().longest().within("9 seconds"),
    "in python": Pattern.begin("a").where(A).followed_by("b").where(is_b).within("9 seconds"),
}
"""Each has another representation of what is open, or other parts of it."""


def go_on(
    stream: Stream, fed: Sequence[tuple[pa.Table, int]], shards: Sequence[int], keys: Sequence[str] = KEYS
) -> None:
    """Asserts that shards which are divided after each of these events and times (microseconds) find what one matcher
    finds, in the same order for each key.
    """
    undivided, divided = Shards(stream), Shards(stream)
    for step, (rows, now) in enumerate(fed):
        for matchers in (undivided, divided):
            matchers.feed(rows, now)
        divided.divide(shards[step % len(shards)], keys)
        assert divided.open == undivided.open
    assert divided.rows == undivided.rows
    assert divided.counts == undivided.counts


def microseconds(moment: Any, seconds: int) -> int:
    return int((moment + timedelta(seconds=seconds)).timestamp()) * SECOND


def stream_of_stages(pattern: Pattern) -> Stream:
    return Stream(pattern, events().schema, {"key": "k", "time": "at", "sequence": "id"}, timedelta(0))


BATCH = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 6), st.sampled_from("abc")), max_size=12)


@pytest.mark.parametrize("name", OF_STAGES)
@share(10)
@given(batches=st.lists(BATCH, min_size=2, max_size=5), shards=numbers_of_shards)
def test_stages(name: str, batches: list[list[tuple[str, int, str]]], shards: list[int]) -> None:
    """Whatever the numbers of shards before and after, the same rows come, with the same ids, late ones among them."""
    fed, number = [], 0
    for step, batch in enumerate(batches):
        rows = [(number := number + 1, key, 3 * step + second, x) for key, second, x in batch]
        fed.append((events(*rows), microseconds(T, 3 * step)))
    go_on(stream_of_stages(OF_STAGES[name]), [*fed, (events(), microseconds(T, 100))], shards)


SHOP = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from("ABC"), st.sampled_from(KEYS), st.integers(0, 2)), max_size=14
)
written = st.sampled_from(OF_OCCURRENCES).map(lambda one: OccurrencePattern.of(one[0]).policy(one[1]))


@share(20)
@given(pattern=written | expressions, batches=st.lists(SHOP, min_size=2, max_size=5), shards=numbers_of_shards)
def test_occurrences(pattern: OccurrencePattern, batches: list[list[Any]], shards: list[int]) -> None:
    """The same for occurrences of any expression and policy: equal late events have the ids that they would have."""
    options = {"key": "user", "time": "at", "columns": ["price"]}
    fed = [
        (shop([(3 * step + second, *rest) for second, *rest in batch]), microseconds(START, 3 * step))
        for step, batch in enumerate(batches)
    ]
    fed.append((shop([]), microseconds(START, 100)))
    go_on(OccurrenceStream(pattern.taxonomy("type"), shop([]).schema, options, timedelta(0)), fed, shards)


@share(10)
@given(expression=semantic_expressions(), given_=statements, cuts=st.sets(st.integers(1, 6)), shards=numbers_of_shards)
def test_occurrences_with_knowledge(
    expression: Occurrence, given_: list[Stated], cuts: set[int], shards: list[int]
) -> None:
    """What the events of a key have said, and what follows from it, goes along with the key."""
    rows, keys = stated(given_), ["ann", "bob"]
    pattern = OccurrencePattern.of(expression, knowledge=KNOWN, mapping=MAPPING)
    borders = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    fed = [
        (rows.slice(begin, end - begin), microseconds(START, given_[begin].time - 1) if begin < len(rows) else 0)
        for begin, end in pairwise(borders)
    ]
    fed.append((rows.slice(0, 0), microseconds(START, 100)))
    options = {"key": "user", "time": "at", "sequence": "number"}
    go_on(OccurrenceStream(pattern, rows.schema, options, timedelta(0)), fed, shards, keys)


@share(20)
@given(
    pattern=patterns() | forbidding_patterns(),
    table=tables(least=6, most=24),
    data=st.data(),
    lateness=st.sampled_from(End),
    shards=numbers_of_shards,
)
def test_intervals(
    pattern: IntervalPattern, table: pa.Table, data: st.DataObject, lateness: End, shards: list[int]
) -> None:
    """The same for intervals: matches that wait, and in real time retractions of those emitted before."""
    keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=len(table), max_size=len(table)))
    rows = table.append_column("k", pa.array(keys, pa.string()))
    stream = interval_stream(pattern, rows, lateness, 0)
    assume(pattern.consistency is Consistency.REALTIME or not never_certain(stream))
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, len(rows) - 1), min_size=1, max_size=5))), len(rows)]
    late_by = data.draw(st.integers(0, 6))
    fed = [
        (rows.slice(begin, end - begin), SECOND * (3 * number - late_by))
        for number, (begin, end) in enumerate(pairwise(cuts))
    ]
    fed.append((rows.slice(0, 0), 1000 * SECOND))
    go_on(stream, fed, shards)


def test_intervals_that_still_have_a_former_consistency() -> None:
    """Where one shard has emitted its matches in real time, and another was not called since the pattern does so, the
    joined one emits only the other's.
    """
    pattern = interval_pattern("EVENT PAL(A a before B b) WITHIN 20 seconds").taxonomy("type")
    pairs = [spans([(1, "A", key, 0, 1), (2, "B", key, 8, 9)]) for key in "pq"]
    former, now = (
        Shards(IntervalStream(one.emitting(to), pairs[0].schema, OF_INTERVALS, timedelta(0), time="start"))
        for one, to in ((pattern, "conservative"), (pattern, "realtime"))
    )
    snapshots = []
    for pair in pairs:
        shards = Shards(former.stream)
        shards.feed(pair, 0)
        assert not shards.rows
        snapshots.append(shards.shards[0].snapshot({}, {}))
    called = now.restored(snapshots[0])
    assert [row["k"] for row in emitted_by(called)] == ["p"]
    joined = now.restored(now.stream.runner.joined([called.snapshot({}, {}), snapshots[1]]))
    assert [row["k"] for row in emitted_by(joined)] == ["q"]


def emitted_by(matcher: LiveMatcher) -> list[dict[str, Any]]:
    """The rows that result from the pattern's consistency."""
    rows = matcher.renewed()
    assert rows is not None
    return rows.to_pylist()


def test_shards_of_different_versions() -> None:
    """Shards that make ids in different ways are not joined."""
    former, new = (Shards(stream_of_stages(OF_STAGES["sets"])) for _ in range(2))
    parts = [from_bytes(one.shards[0].snapshot({}, {})) for one in (former, new)]
    parts[0].header["ids"] = 1
    with pytest.raises(SnapshotError, match=r"^its shards make ids in different ways, as they began with different"):
        new.stream.runner.joined([to_bytes(part) for part in parts])
