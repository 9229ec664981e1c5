"""Shards of occurrences and of intervals, called in the way Spark calls them, emit what detect finds for all events in
time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import microseconds
from tests.intervals.running import batch_of
from tests.intervals.strategies import SECOND, forbidding_patterns, patterns, tables
from tests.searching import share
from tests.stream.test_shard import Stream

from cepheid import LimitExceeded, Limits, OccurrencePattern, PatternError, SnapshotError, detect, event
from cepheid.events.batch import MASK, VALUE_PREFIX
from cepheid.hosts.shards.log import MatcherCache
from cepheid.intervals import interval_pattern
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.semantic import semantic
from cepheid.plan.intervals.constants import Guard
from cepheid.plan.intervals.growth import interval_growth
from cepheid.plan.lifted import OutputName
from occurrences.shop import shop
from occurrences.test_live import PATTERNS, events
from occurrences.test_semantic_equals_reference import KNOWN, MAPPING, Row
from occurrences.test_semantic_equals_reference import table as statements

FAR = 10**9
"""Milliseconds: after all times of intervals."""
OF_OCCURRENCES: dict[str, Any] = {"key": "user", "time": "at", "sequence": "type"}
OF_INTERVALS: dict[str, Any] = {"key": "k", "time": ("start", "end"), "columns": ["id"]}


@dataclass
class OccurrenceStream(Stream):
    """A stream for a pattern of occurrences."""

    outputs: tuple[OutputName, ...] = ("matches", "late")


@dataclass
class IntervalStream(Stream):
    """A stream for an interval pattern; `time` is the column, start or end, that decides whether an event is late."""

    outputs: tuple[OutputName, ...] = ("matches", "late")

    def _lifted(self, rows: pa.Table) -> pa.RecordBatch:
        batch = batch_of(self.plan, rows).data
        values = [name for name in batch.schema.names if name.startswith(VALUE_PREFIX)]
        return batch.select([*(n for n in batch.schema.names if n not in (MASK, *values)), *values, MASK])


def cuts(draw: st.DrawFn, count: int) -> Iterator[tuple[int, int]]:
    """The borders of a few micro-batches."""
    return pairwise(sorted(draw(st.sets(st.integers(1, max(1, count - 1)), max_size=5)) | {0, count}))


def in_fixed_order(rows: pa.Table) -> list[dict[str, Any]]:
    """The rows in a fixed order."""
    return sorted(rows.to_pylist(), key=lambda row: json.dumps(row, default=str))


@share(20)
@given(data=st.data(), drawn=events, case=st.sampled_from(PATTERNS), lateness=st.sampled_from([0, 1, 4]))
def test_occurrences_in_any_micro_batches(
    data: st.DataObject, drawn: list[Any], case: tuple[str, str], lateness: int
) -> None:
    """Any order of arrival, any micro-batches, workers and sizes of the log: events before the watermark are late, and
    for all others the occurrences are those of a finite input. No timers are left at the end.
    """
    text, policy = case
    pattern = OccurrencePattern.of(text).taxonomy("type").policy(policy)
    stream = OccurrenceStream(pattern, shop([]).schema, OF_OCCURRENCES, timedelta(seconds=lateness))
    stream.small_log = data.draw(st.sampled_from([0, 5000]))
    order = sorted(drawn, key=lambda row: row[0] + data.draw(st.integers(0, lateness + 2)))
    found, late, in_time = [], [], []
    workers = MatcherCache(), MatcherCache()
    for start, end in cuts(data.draw, len(order)):
        rows = shop(order[start:end])
        for row, time in zip(order[start:end], rows.column("at").to_pylist(), strict=True):
            (late if microseconds(time) < stream.watermark * 1000 else in_time).append(row)
        stream.cache = data.draw(st.sampled_from([MatcherCache(), *workers]))
        found.append(stream.batch(rows))
    stream.watermark += 1_000_000
    found.append(stream.batch(shop([])))
    given_ = [row for part in found for row in part.to_pylist()]
    expected = detect(shop(sorted(in_time)), pattern, **OF_OCCURRENCES)
    matches = [row["match_id"] for row in given_ if row["kind"] == "match"]
    assert sorted(matches) == sorted(expected.column("match_id").to_pylist())
    assert sorted(row["event"]["price"] for row in given_ if row["kind"] == "late") == sorted(row[3] for row in late)
    assert not stream.timers
    assert stream.counts.get("late", 0) == len(late)


def test_idle_keys_of_occurrences() -> None:
    """The state of a key is removed when it is too old for the pattern, without another event of that key."""
    pattern = OccurrencePattern.of("(A; B)_3s").taxonomy("type").policy("recent")
    stream = OccurrenceStream(pattern, shop([]).schema, OF_OCCURRENCES, timedelta(0), shards=1)
    stream.batch(shop([(1, "A", "u", 1), (2, "A", "v", 1), (4, "C", "w", 1)]))
    stream.batch(shop([]))
    assert stream.states[0].stored_head is not None
    stream.watermark += 1001
    stream.batch(shop([]))
    assert (stream.states, stream.timers) == ({}, {})


def test_what_events_said_is_remembered() -> None:
    """A shard stores what the events of its keys said, also while nothing is open and no event waits."""
    by_vip = event("Event").named("v0").where(semantic("by(?v0, ?x) ∧ Vip(?x)"))
    pattern = OccurrencePattern.of(by_vip, knowledge=KNOWN, mapping=MAPPING)
    rows = statements([Row(0, "ann", (":p1 a :Vip .",)), Row(5, "ann", ("{e} a :Read .", "{e} :by :p1 ."))])
    options = {"key": "user", "time": "at", "sequence": "number"}
    stream = OccurrenceStream(pattern, rows.schema, options, timedelta(0), shards=1)
    found = list[dict[str, Any]]()
    for number in range(2):
        stream.batch(rows.slice(number, 1))
        stream.watermark += 2000
        found += stream.batch(rows.slice(0, 0)).to_pylist()
    assert [row["match_id"] for row in found] == detect(rows, pattern, **options).column("match_id").to_pylist()
    assert len(found) == 1
    assert not stream.timers


def never_certain(stream: IntervalStream) -> bool:
    return Guard.FOREVER in stream.runner.compiled.tables.negations["guard"]


def interval_stream(pattern: IntervalPattern, table: pa.Table, lateness: End, seconds: int) -> IntervalStream:
    """A stream of the pattern; a pattern that contradicts itself is discarded as an example."""
    stream = None
    with suppress(PatternError):
        stream = IntervalStream(
            pattern.taxonomy("type"), table.schema, OF_INTERVALS, timedelta(seconds=seconds), time=lateness.value
        )
    assume(stream is not None)
    assert stream is not None
    return stream


@share(30)
@given(
    data=st.data(),
    pattern=patterns() | forbidding_patterns(),
    table=tables(),
    lateness=st.sampled_from(End),
    seconds=st.sampled_from([0, 3, 12, 40]),
)
def test_intervals_in_any_micro_batches(
    data: st.DataObject, pattern: IntervalPattern, table: pa.Table, lateness: End, seconds: int
) -> None:
    """In real time, the net result after each micro-batch is the matches of all accepted events; otherwise each match
    is emitted once. The rows of a micro-batch depend neither on the order of its events nor on the worker.
    """
    keys = data.draw(st.lists(st.sampled_from("pq"), min_size=len(table), max_size=len(table)))
    table = table.append_column("k", pa.array(keys, pa.string()))
    stream, again = (interval_stream(pattern, table, lateness, seconds) for _ in range(2))
    stream.small_log = data.draw(st.sampled_from([0, 5000]))
    real_time = pattern.consistency is Consistency.REALTIME
    assume(real_time or not never_certain(stream))
    net, accepted, late = Counter[str](), list[int](), list[str]()
    workers = MatcherCache(), MatcherCache()
    for start, end in [*cuts(data.draw, len(table)), (len(table), len(table))]:
        positions = list(range(start, end))
        if start == end:
            stream.watermark = again.watermark = FAR
        for position in positions:
            time = microseconds(table.column(lateness.value)[position].as_py())
            if time < stream.watermark * 1000:
                late.append(table.column("id")[position].as_py())
            else:
                accepted.append(position)
        stream.cache = data.draw(st.sampled_from([MatcherCache(), *workers]))
        rows = stream.batch(table.take(pa.array(positions, pa.int64())))
        assert in_fixed_order(
            again.batch(table.take(pa.array(data.draw(st.permutations(positions)), pa.int64())))
        ) == in_fixed_order(rows)
        for row in rows.to_pylist():
            if row["kind"] == "late":
                late.remove(row["event"]["id"])
            else:
                net[row["match_id"]] += 1 if row["kind"] == "insertion" else -1
                assert row["kind"] == "insertion" or real_time
        assert not late
        if real_time or start == end:
            in_time = table.take(pa.array(sorted(accepted), pa.int64()))
            expected = detect(in_time, pattern.taxonomy("type"), **OF_INTERVALS).column("match_id").to_pylist()
            assert {id_: n for id_, n in net.items() if n} == Counter(expected)
    assert max(net.values(), default=0) <= 1
    if pattern.window is not None and not never_certain(stream) and not interval_growth(pattern, lateness):
        assert (stream.states, stream.timers) == ({}, {})


LATER = (
    interval_pattern("EVENT PAL(A a before B b) WITHIN 20 seconds")
    .without("d", "D", between=("a", "b"))
    .taxonomy("type")
)


def spans(*rows: tuple[str, str, int, int]) -> pa.Table:
    """Events of one key: id, type, start and end."""
    names, types, starts, ends = ([row[i] for row in rows] for i in range(4))
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": pa.array(names, pa.string()),
            "type": pa.array(types, pa.string()),
            "start": pa.array([(1000 + start) * SECOND for start in starts], times),
            "end": pa.array([(1000 + end) * SECOND for end in ends], times),
            "k": pa.array(["p"] * len(rows), pa.string()),
        }
    )


def kinds(rows: pa.Table) -> list[str]:
    return list(rows.column("kind").to_pylist()) if rows.num_rows else []


def stream_of(pattern: IntervalPattern, **options: Any) -> IntervalStream:
    given_ = OF_INTERVALS | options
    return IntervalStream(pattern, spans().schema, given_, timedelta(seconds=5), shards=1, time="start")


def test_a_match_forbidden_within_its_micro_batch_is_not_emitted() -> None:
    """A match that an event of the same micro-batch forbids is not emitted; one of an earlier micro-batch is
    retracted.
    """
    stream = stream_of(LATER.emitting("realtime"))
    both = ("a", "A", 0, 1), ("b", "B", 8, 9)
    assert kinds(stream.batch(spans(*both))) == ["insertion"]
    assert kinds(stream.batch(spans(("d", "D", 4, 20), ("b2", "B", 10, 11)))) == ["retraction"]
    assert kinds(stream_of(LATER.emitting("realtime")).batch(spans(*both, ("d", "D", 4, 20)))) == []


def test_ids_of_late_intervals_are_unique() -> None:
    """Equal late events of several micro-batches have different ids, and the same ones if another worker continues."""
    found: dict[bool, list[str]] = {}
    for restarts in (False, True):
        stream = stream_of(LATER)
        stream.batch(spans(("a", "A", 50, 51)))
        found[restarts] = []
        for _ in range(3):
            stream.cache = MatcherCache() if restarts else stream.cache
            found[restarts] += stream.batch(spans(("b", "B", 1, 2))).column("match_id").to_pylist()
    assert found[False] == found[True]
    assert len({*found[True]}) == 3


def restarted(stream: Stream, after: Stream) -> Stream:
    """The query, restarted as `after`."""
    after.states, after.timers = stream.states, stream.timers
    after.watermark, after.latest = stream.watermark, stream.latest
    return after


def test_the_consistency_may_change() -> None:
    """After a switch to real time, the matches that hold now are emitted at once; no match is emitted twice."""
    stream: Stream = stream_of(LATER)
    assert kinds(stream.batch(spans(("a", "A", 0, 1)))) == []
    assert kinds(stream.batch(spans(("b", "B", 8, 9)))) == []
    stream = restarted(stream, stream_of(LATER.emitting("realtime")))
    assert kinds(stream.batch(spans(("z", "Z", 9, 9)))) == ["insertion"]
    forbidden: Stream = stream_of(LATER)
    forbidden.batch(spans(("a", "A", 0, 1), ("b", "B", 8, 9)))
    forbidden = restarted(forbidden, stream_of(LATER.emitting("realtime")))
    assert kinds(forbidden.batch(spans(("d", "D", 4, 20)))) == []
    stream = restarted(stream, stream_of(LATER))
    assert kinds(stream.batch(spans(("b2", "B", 10, 12)))) == []
    assert kinds(stream.batch(spans(("z", "Z", 30, 30)))) == []
    assert kinds(stream.batch(spans())) == ["insertion"]
    assert stream.counts["matches"] == 1


def test_another_interval_pattern() -> None:
    """The error says what changed."""
    stream = stream_of(LATER)
    stream.batch(spans(("a", "A", 0, 1)))
    after = restarted(stream, stream_of(LATER.within("5 seconds")))
    with pytest.raises(SnapshotError, match="the checkpoint belongs to another query: interval pattern"):
        after.batch(spans(("b", "B", 8, 9)))
    other = LATER.where("a.id <> $x")
    stream = stream_of(other.with_parameters(x="z"))
    stream.batch(spans(("a", "A", 0, 1)))
    after = restarted(stream, stream_of(other.with_parameters(x="a")))
    with pytest.raises(SnapshotError, match="the checkpoint belongs to another query: parameters"):
        after.batch(spans(("b", "B", 8, 9)))


@pytest.mark.parametrize("kind", ["occurrences", "intervals"])
def test_limits_may_change(kind: str) -> None:
    """A query that has reached a limit continues with a higher one, from the log written under the lower limit."""
    few, many = Limits(max_matches_per_event=1), Limits()
    if kind == "intervals":
        made: list[Stream] = [stream_of(LATER, limits=limits) for limits in (few, many)]
        first, second = spans(("a", "A", 0, 1), ("a2", "A", 0, 1)), spans(("b", "B", 2, 3))
    else:
        pattern = OccurrencePattern.of("(A; B)_9s").taxonomy("type").policy("unrestricted")
        made = [
            OccurrenceStream(pattern, shop([]).schema, OF_OCCURRENCES | {"limits": limits}, timedelta(0), shards=1)
            for limits in (few, many)
        ]
        first = shop([(1, "A", "u", 1), (2, "A", "u", 1), (3, "B", "u", 1), (4, "C", "u", 1)])
        second = shop([(5, "C", "u", 1)])
    stream, after = made
    stream.batch(first)
    with pytest.raises(LimitExceeded):
        stream.batch(second)
    after = restarted(stream, after)
    after.batch(second)
    after.watermark += 30_000
    after.batch(second.slice(0, 0))
    assert after.counts["matches"] == 2
