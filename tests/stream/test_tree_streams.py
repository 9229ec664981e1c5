"""Streams of occurrences and of intervals on Spark emit what detect finds for all events at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.intervals.strategies import SECOND
from tests.stream.running import detected, finished, run, streamed, written
from tests.stream.test_errors import failing

from cepheid import CepheidWarning, OccurrencePattern, PatternError, SchemaError, detect, partial_matches
from cepheid.intervals import interval_pattern
from occurrences.shop import shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAIR = (
    interval_pattern("EVENT PAL(A a before B b) WITHIN 20 seconds")
    .without("d", "D", between=("a", "b"))
    .taxonomy("type")
)
INTERVALS: dict[str, Any] = {"key": "k", "time": ("start", "end"), "columns": ["id"]}
PAID = OccurrencePattern.of("((?a:A; ?b:B)_9s - C) | (B + 5s)_9s").taxonomy("type")
OCCURRENCES: dict[str, Any] = {"key": "user", "time": "at", "columns": ["price"]}


def spans(rows: list[tuple[int, str, str, int, int]]) -> pa.Table:
    """Events: id, type, key, start and end."""
    ids, types, keys, starts, ends = ([row[i] for row in rows] for i in range(5))
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "type": pa.array(types, pa.string()),
            "k": pa.array(keys, pa.string()),
            "start": pa.array([(1000 + start) * SECOND for start in starts], times),
            "end": pa.array([(1000 + end) * SECOND for end in ends], times),
        }
    )


def shuffled(rows: list[Any], at: int, seed: int, lateness: int, batches: int) -> Iterator[list[Any]]:
    """The rows in micro-batches, in the order of the column at position `at`, delayed by up to `lateness`."""
    drawn = random.Random(seed)
    order = sorted(rows, key=lambda row: row[at] + drawn.random() * lateness)
    cuts = [0, *sorted(drawn.sample(range(1, len(rows)), batches - 1)), len(rows)]
    yield from (order[start:end] for start, end in pairwise(cuts))


def test_intervals(streams: SparkSession, tmp_path: Path) -> None:
    """Two patterns in one query: the conservative one emits each match once; in real time, the net result after each
    micro-batch is the matches of all events so far. In the end both have the matches of a batch.
    """
    drawn = random.Random(7)
    rows = [
        (i, drawn.choice("AABBD"), f"k{drawn.randrange(8)}", start, start + drawn.choice([0, 1, 2, 6]))
        for i, start in enumerate(drawn.randrange(200) for _ in range(300))
    ]
    given = [*shuffled(rows, 4, 8, 5, 5), [(-1, "Z", "end", 900, 900)]]
    patterns = {"sure": PAIR, "now": PAIR.emitting("realtime")}
    options = INTERVALS | {"sequence": "id"}
    found = detected(streams, [spans(batch) for batch in given], tmp_path, patterns, lateness="12 seconds", **options)
    net: dict[str, Counter[str]] = {"sure": Counter(), "now": Counter()}
    so_far: list[Any] = []
    for number, batch in enumerate(found):
        for row in batch:
            net[row["pattern"]][row["match_id"]] += {"insertion": 1, "retraction": -1}[row["kind"]]
            assert row["kind"] == "insertion" or row["pattern"] == "now"
        so_far += given[number] if number < len(given) else []
        expected = detect(spans(so_far), patterns["now"].named("now"), **options).column("match_id").to_pylist()
        assert {id_: n for id_, n in net["now"].items() if n} == Counter(expected)
    expected = detect(spans(rows), patterns["sure"].named("sure"), **options).column("match_id").to_pylist()
    assert len(expected) > 50
    assert net["sure"] == Counter(expected)
    assert sum(map(bool, found)) > 4


@pytest.mark.long
def test_occurrences_from_a_checkpoint(streams: SparkSession, tmp_path: Path) -> None:
    """The query is restarted in the middle; late events are emitted, and matches that become certain as time advances
    need no further event of their key.
    """
    drawn = random.Random(3)
    rows = [(drawn.randrange(200), drawn.choice("AABC"), f"u{drawn.randrange(8)}", i) for i in range(300)]
    given = [*shuffled(rows, 0, 4, 3, 4), [(900, "Z", "end", -1)], [(1, "A", "u1", -2), (901, "Z", "end", -3)]]
    tables = [shop(batch) for batch in given]
    written(tables[:3], tmp_path / "events")
    events = streamed(streams, tmp_path / "events")
    options = OCCURRENCES | {"lateness": "3 seconds", "outputs": ["matches", "late"], "shards": 2}
    query = detect(events, PAID, **options)
    found = run(query, tmp_path / "checkpoint")
    written(tables[3:], tmp_path / "events", first=3)
    found += run(query, tmp_path / "checkpoint")
    expected = detect(shop(rows), PAID.policy("recent"), **OCCURRENCES)
    emitted = [row for batch in found for row in batch]
    assert [row["event"]["price"] for row in emitted if row["kind"] == "late"] == [-2]
    matches = [row["match_id"] for row in emitted if row["kind"] == "match"]
    assert Counter(matches) == Counter(expected.column("match_id").to_pylist())
    assert len(matches) > 50
    with pytest.raises(SchemaError) as caught:
        partial_matches(tmp_path / "checkpoint")
    assert str(caught.value) == (
        "pattern: 'pattern' is a pattern of occurrences, which has no stages and so no partial matches to list. "
        "progress(query, checkpoint) has the number that is open"
    )
    written([shop([(950, "A", "u1", 5)])], tmp_path / "events", first=6)
    changed = detect(streamed(streams, tmp_path / "events"), PAID.policy("unrestricted"), **options)
    with failing('the checkpoint belongs to another query: pattern.policy was "recent" and is "unrestricted"'):
        finished(changed.writeStream.format("noop"), tmp_path / "checkpoint")


def test_intervals_from_a_checkpoint(streams: SparkSession, tmp_path: Path) -> None:
    """A restarted query retracts a match that was emitted in real time; late events are emitted; the ids agree."""
    first = [(1, "A", "k", 0, 2), (2, "B", "k", 8, 9)]
    written([spans(first)], tmp_path / "events")
    rows = detect(streamed(streams, tmp_path / "events"), PAIR.emitting("realtime"), lateness="10 seconds",
                  shards=1, **INTERVALS)  # fmt: skip
    ((insertion,), *_) = run(rows, tmp_path / "checkpoint")
    more = spans([(3, "D", "k", 4, 30), (4, "Z", "k", 40, 41)]), spans([(5, "A", "k", 3, 4), (6, "Z", "k", 50, 51)])
    written(more, tmp_path / "events", first=1)
    (retraction,), (late,), *_ = run(rows, tmp_path / "checkpoint")
    assert (insertion["kind"], retraction["kind"], late["kind"]) == ("insertion", "retraction", "late")
    assert insertion["match_id"] == retraction["match_id"]
    assert late["event"] == {"id": 5}
    assert (insertion["detected_at"] - insertion["match_start"]).seconds == 9
    assert (retraction["detected_at"] - insertion["match_start"]).seconds == 30


def test_problems(streams: SparkSession, tmp_path: Path) -> None:
    """Problems are reported before the query starts."""
    written([spans([(1, "A", "k", 0, 2)])], tmp_path / "events")
    events = streamed(streams, tmp_path / "events")

    def message(error: type[Exception], pattern: Any, **options: Any) -> str:
        with pytest.raises(error) as caught:
            detect(events, pattern, **options)
        return str(caught.value)

    assert message(SchemaError, PAIR, **INTERVALS | {"time": "id"}, outputs=["timeouts"]) == (
        "outputs: intervals have no timeouts; ask for 'matches', 'late' or both\n"
        "time: name the columns in which events start and end, as in time=('start', 'end'), got 'id'"
    )
    lacking = "lateness: say how late an event of the stream may come"
    assert message(SchemaError, PAIR, **INTERVALS).startswith(lacking)
    occurrences = {"key": "k", "time": "start"}
    assert message(SchemaError, PAID, **occurrences).startswith(lacking)
    assert message(SchemaError, PAID, **occurrences, outputs="timeouts") == (
        "outputs: occurrences have no timeouts; ask for 'matches', 'inconsistent', 'late' or several"
    )
    mixed = message(PatternError, {"one": PAIR, "other": PAID}, **INTERVALS)
    assert "several patterns must be of one kind (intervals): an IntervalPattern is expected" in mixed
    by_end = events.withWatermark("end", "1 minute")
    with pytest.raises(PatternError) as caught:
        detect(by_end, PAIR, **INTERVALS)
    assert str(caught.value) == (
        "the negation of 'd': an event with any later end may still forbid a match, so that no match is ever "
        "certain\nEither measure lateness at starts (give 'start' the watermark), or choose a scope that bounds "
        "them (gap, seq_between or during_span), or let the pattern emit in real time."
    )
    now = detect(events, PAIR.emitting("realtime"), **INTERVALS, lateness="1 minute", outputs="matches")
    with pytest.raises(SchemaError, match="these are matches that are emitted in real time"):
        detect(now, PAIR.named("next"), time=("match_start", "detected_at"), key="k")
    with pytest.warns(CepheidWarning, match="no key: all events are one sequence"):
        detect(events, PAIR, **INTERVALS | {"key": None}, lateness="1 minute")
    endless = interval_pattern("EVENT PAL(A a before B b)").taxonomy("type")
    with pytest.warns(CepheidWarning, match="an interval pattern stores all its events for ever"):
        detect(events, endless, **INTERVALS, lateness="1 minute")
    joined = OccurrencePattern.of("A; B").taxonomy("type").policy("unrestricted")
    with pytest.warns(CepheidWarning, match="keeps what is open: all occurrences"):
        detect(events, joined, **occurrences, lateness="1 minute")
