"""The stored state of a shard is enough to list its open partial matches as a matcher does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, cases, events
from tests.live.events import PAIR
from tests.live.events import SCHEMA as PAIR_SCHEMA
from tests.live.events import events as pair_events
from tests.live.test_any_delivery import table
from tests.searching import share
from tests.stream.test_shard import OUTPUTS, SECOND, MemoryStore, Stream

from cepheid import Matcher
from cepheid.hosts.spark.stream.ledger import SHARD
from cepheid.hosts.spark.stream.listing import (
    DIGEST,
    ENTRY,
    HEAD,
    NUMBER,
    PART,
    PASSED,
    SNAPSHOT,
    VALUE,
    WRITTEN,
    Look,
    list_open,
)
from cepheid.kernel.arrays import NO_TIME

PARTS = pa.schema(
    [
        (SHARD, pa.int32()),
        (PART, pa.int32()),
        (WRITTEN, pa.int32()),
        (NUMBER, pa.int32()),
        (PASSED, pa.int64()),
        (VALUE, pa.binary()),
        (DIGEST, pa.binary()),
    ]
)
OPTIONS: dict[str, Any] = {"key": "k", "time": "at"}


def parts_of(number: int, shard: MemoryStore) -> list[dict[str, Any]]:
    """The parts of a shard's state, as Spark's state reader returns them."""
    assert shard.stored_head is not None
    head = {WRITTEN: shard.stored_head.format, NUMBER: shard.stored_head.entries, PASSED: shard.stored_head.passed}
    parts = [{PART: HEAD, **head}, {PART: SNAPSHOT, VALUE: shard.first}]
    parts += [
        {PART: ENTRY, NUMBER: i, PASSED: entry.passed, VALUE: entry.events, DIGEST: entry.digest}
        for i, entry in enumerate(shard.entries)
    ]
    return [{SHARD: number, **part} for part in parts]


def listed(stream: Stream, shards: dict[int, MemoryStore] | None = None, most: int = 1000) -> list[dict[str, Any]]:
    states = stream.states if shards is None else shards
    now = max((shard.stored_head.passed for shard in states.values() if shard.stored_head is not None), default=NO_TIME)
    plan, columns, made_for = stream.matching[:3]
    parts = [part for number, shard in sorted(states.items()) for part in parts_of(number, shard)]
    batches = pa.Table.from_pylist(parts, PARTS).to_batches(max_chunksize=2)
    look = Look(plan, columns, made_for, now, most)
    return [row for batch in list_open(iter(batches), tuple(look)) for row in batch.to_pylist()]


def in_any_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items(), key=str)) for row in rows)


@share(15)
@given(data=st.data(), case=cases(), lateness=st.sampled_from([0, 1, 5]), in_sets=st.booleans())
def test_as_a_matcher_lists_them(*, data: st.DataObject, case: Case, lateness: int, in_sets: bool) -> None:
    """After every micro-batch, the listing equals that of a matcher with the same events, at the latest time that a
    shard has reached.
    """
    options = {"key": "device", "time": "at", "sequence": "id"}
    outputs = ("matches",) if in_sets else OUTPUTS
    stream = Stream(case.pattern, SCHEMA, options, lateness * SECOND, outputs=outputs)
    stream.small_log = data.draw(st.sampled_from([0, 5000, stream.small_log]))
    rows = sorted(data.draw(events()), key=lambda row: (row["at"], row["id"]))
    matcher = Matcher(case.pattern, SCHEMA, outputs=outputs, **options)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(rows) - 1)), max_size=4)) | {0, len(rows)})
    opened = 0
    for start, end in pairwise(cuts):
        batch, watermark = table(rows[start:end]), stream.watermark
        stream.batch(batch)
        if batch.num_rows and watermark:
            matcher.advance_time(FIRST + timedelta(milliseconds=watermark - FIRST.timestamp() * 1000, microseconds=-1))
        matcher.process(batch)
        expected = [{"_error": None, **row} for row in matcher.partial_matches().to_pylist()]
        assert in_any_order(listed(stream)) == in_any_order(expected)
        opened = stream.counts.get("opened", 0)
        heads = [shard.stored_head.open for shard in stream.states.values() if shard.stored_head is not None]
        assert opened == sum(heads)


def test_most() -> None:
    """At most `most` partial matches are listed for each key."""
    stream = Stream(PAIR, PAIR_SCHEMA, OPTIONS, timedelta(0), shards=1)
    stream.batch(pair_events(*((i, "p", i / 10, "a") for i in range(9)), (9, "q", 0.5, "a"), (10, "s", 1, "z")))
    stream.batch(pair_events((11, "r", 2, "z")))
    assert [(row["k"], row["match_start"].microsecond) for row in listed(stream, most=2)] == [
        ("p", 700000),
        ("p", 800000),
        ("q", 500000),
    ]


def test_a_damaged_state() -> None:
    """A damaged or missing part of the state is reported in place of the rows."""
    stream = Stream(PAIR, PAIR_SCHEMA, OPTIONS, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a")))
    stream.batch(pair_events((1, "p", 1, "a")))
    shard = stream.states[0]
    assert shard.stored_head is not None
    (entry,) = shard.entries
    for damaged, what in (
        (replace(shard, first=shard.first[:-20] + bytes(20)), "the snapshot is damaged"),
        (replace(shard, first=b""), "these 0 bytes are not a snapshot of a matcher"),
        (replace(shard, entries=[entry._replace(events=entry.events[:-20] + bytes(20))]), "the log is damaged"),
        (replace(shard, entries=[]), "the log is damaged: it has 0 entries, and 1 were written"),
        (
            replace(shard, stored_head=shard.stored_head._replace(format=9)),
            "the checkpoint has format 9, and this version reads formats up to 2",
        ),
    ):
        (row,) = listed(stream, {0: damaged})
        assert row["_error"].startswith(f"the checkpoint's state does not fit: {what}")
    headless = pa.Table.from_pylist(parts_of(3, shard)[1:], PARTS).to_batches()
    (found,) = list_open(iter(headless), (*stream.matching[:3], NO_TIME, 10))
    assert found.column("_error").to_pylist() == [
        "the checkpoint's state does not fit: shard 3 has 0 heads and 1 snapshots, not one of each"
    ]


@pytest.mark.parametrize("contiguity", ["followed_by", "followed_by_any"])
def test_a_shard_that_was_not_called(contiguity: str) -> None:
    """Its expired partial matches are not listed, even if its key has others that have not expired."""
    pattern = getattr(PAIR, contiguity)("c").where("x = 'c'").within("10 seconds")
    stream = Stream(pattern, PAIR_SCHEMA, OPTIONS, timedelta(0), shards=2, outputs=("matches",))
    stream.batch(pair_events((0, "p", 0, "a"), (1, "p", 9, "a"), (2, "q", 9.5, "a")))
    stream.batch(pair_events((3, "q", 12, "z")))
    stream.batch(pair_events((4, "q", 13, "z")))
    assert [(row["k"], row["match_start"].second) for row in listed(stream)] == [("p", 9), ("q", 9)]
