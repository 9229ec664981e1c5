"""Streams of occurrences and of intervals get another number of shards, and go on as if nothing had happened."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.occurrences.test_semantic_equals_reference import KNOWN, MAPPING, Row
from tests.occurrences.test_semantic_equals_reference import table as stated
from tests.stream.running import run, streamed, written
from tests.stream.test_tree_streams import INTERVALS, PAIR, shuffled, spans

from cepheid import OccurrencePattern, detect
from cepheid.intervals import interval_pattern
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:.*a stream does not end")]


@pytest.mark.long
def test_occurrences(streams: SparkSession, tmp_path: Path) -> None:
    """Open occurrences, and what the events of each key have said, go to the shard of the key, also where no event of
    the key is stored any more.
    """
    text = "(?v0:Read ; ?v1:Write)_9s [by(?v0, ?x) ∧ Vip(?x) ∧ by(?v1, ?x)]"
    pattern = OccurrencePattern.of(text, knowledge=KNOWN, mapping=MAPPING).policy("unrestricted")
    users = [f"u{number}" for number in range(9)]
    said = [Row(0, user, (":p1 a :Vip .",)) for user in users]  # nothing is open of it
    read = [Row(40, user, ("{e} a :Read .", "{e} :by :p1 .")) for user in users[:6]]
    wrote = [Row(45, user, ("{e} a :Write .", "{e} :by :p1 .")) for user in users[1:]]
    both = [Row(60, user, ("{e} a :Read .", "{e} :by :p1 .")) for user in users[7:]]
    both += [Row(61, user, ("{e} a :Write .", "{e} :by :p1 .")) for user in users[7:]]
    rows = stated([*said, *read, *wrote, *both, Row(900, "end", ())])
    options: dict[str, Any] = {"key": "user", "time": "at", "sequence": "number"}
    batches = [rows.slice(0, len(said)), rows.slice(9, len(read)), rows.slice(15)]
    found = list[str]()
    for shards, given in ((3, batches[:2]), (5, batches[2:])):
        if shards == 5:
            done = rebalance(tmp_path / "checkpoint", shards=shards)
            assert [(one.before, one.after, one.open) for one in done.patterns] == [(3, 5, 0)]
        written(given, tmp_path / "events", first=0 if shards == 3 else 2)
        query = detect(streamed(streams, tmp_path / "events"), pattern, lateness="5 seconds", shards=shards,
                       **options)  # fmt: skip
        found += [row["match_id"] for batch in run(query, tmp_path / "checkpoint") for row in batch]
    expected = detect(rows, pattern, **options).column("match_id").to_pylist()
    assert Counter(found) == Counter(expected)
    assert len(expected) == 7


@pytest.mark.long
def test_intervals(partitioned: SparkSession, tmp_path: Path) -> None:
    """Matches that wait are emitted once, and those emitted in real time are retracted after that, too. The ends of the
    events have the watermark.
    """
    drawn = random.Random(7)
    rows = [
        (i, drawn.choice("AABBD"), f"k{drawn.randrange(8)}", start, start + drawn.choice([0, 1, 2, 6]))
        for i, start in enumerate(drawn.randrange(100) for _ in range(160))
    ]
    before, after = shuffled(rows, 4, 8, 12, 2)
    now = max(end for *_, end in before)
    before += [(1001, "A", "p", now - 9, now - 7), (1002, "B", "p", now - 2, now)]
    after += [(1003, "D", "p", now - 5, now + 30)]  # forbids these two
    sure = interval_pattern("EVENT PAL(A a before B b) WITHIN 20 seconds").taxonomy("type")
    patterns = {"sure": sure, "now": PAIR.emitting("realtime")}
    net, retracted = Counter[tuple[str, str]](), 0
    for number, (shards, batches) in enumerate([(4, [before]), (3, [after, [(-1, "Z", "end", 900, 900)]])]):
        if number:
            assert all(one.open for one in rebalance(tmp_path / "checkpoint", shards=shards).patterns)
        written([spans(batch) for batch in batches], tmp_path / "events", first=number)
        events = streamed(partitioned, tmp_path / "events").withWatermark("end", "12 seconds")
        query = detect(events, patterns, shards=shards, **INTERVALS)
        for row in (row for batch in run(query, tmp_path / "checkpoint") for row in batch):
            net[row["pattern"], row["match_id"]] += {"insertion": 1, "retraction": -1}[row["kind"]]
            retracted += number and row["kind"] == "retraction"
    assert retracted
    for name, pattern in patterns.items():
        expected = detect(spans([*before, *after]), pattern.named(name), **INTERVALS).column("match_id").to_pylist()
        assert len(expected) > 20
        assert {id_: n for (of, id_), n in net.items() if of == name and n} == Counter(expected)
