"""A worker packs events for their shards, without irrelevant ones."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from cepheid import Pattern
from cepheid.events.batch import KEY_PREFIX, MASK, TIME, Schema
from cepheid.events.narrow import narrowed
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.shards.arrow_stream import events_of, joined, to_narrow_stream, to_stream
from cepheid.hosts.spark.stream.ledger import ledger_shard, pattern_of_ledger
from cepheid.hosts.spark.stream.packing import pack, unpack
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.stages.plans import build_plans

TIMES = {"k": pa.string(), "at": TIME_TYPE, "x": pa.string()}
SCHEMA = Schema(pa.schema(TIMES), ("k",), "at")
ENGINE = DuckDbEngine(time_zone="UTC")
LAYOUT = ((f"{KEY_PREFIX}0", "c0"), (TIME, "c1"), (MASK, "c2"))
COLUMNS = pa.schema([(f"{KEY_PREFIX}0", pa.string()), (TIME, TIME_TYPE), (MASK, pa.int64())])
A, B = (Pattern.begin(x, name=x).where(f"x = '{x}'").followed_by(f"{x}2").where(f"x = '{x}'") for x in "ab")


def plans(*patterns: Pattern) -> bytes:
    requests = [PatternRequest(pattern) for pattern in patterns]
    return pickle.dumps(
        build_plans(requests, SCHEMA, ENGINE, PlanOptions(named=True, columns=(), outputs=("matches",)))
    )


def shipped(*rows: tuple[str, int, int, int]) -> pa.RecordBatch:
    """Events (key, time, mask, shard) as Spark delivers them in a session with the time zone of Berlin."""
    keys, times, masks, shards = zip(*rows, strict=True)
    return pa.record_batch(
        {
            "c0": pa.array(keys, pa.string()),
            "c1": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
            "c2": pa.array(masks, pa.int64()),
            "_shard": pa.array(shards, pa.int32()),
        }
    )


def packed(
    *batches: pa.RecordBatch,
    patterns: Sequence[Pattern] = (A,),
    only_relevant: bool = True,
    places: Any = ((0, 1),),
    even: bool = False,
) -> list[tuple[int, list[str], str | None]]:
    """Each called shard, with the keys of its events and the error. `places` are fields of a Packing: the numbers of
    the patterns, the ended ones and the plan.
    """
    found = []
    numbers, *others = places
    labels = tuple(pattern.name for pattern in patterns)
    shared = LAYOUT, COLUMNS, "stages", plans(*patterns), Placement(4, even=even), only_relevant
    for batch in pack(iter(batches), (*shared, numbers[: len(patterns)], labels, *others)):
        for row in batch.to_pylist():
            if row["_shard"] is None:
                continue
            events = events_of([row["_events"]])
            assert events is None or events.data.schema == COLUMNS
            keys = [] if events is None else events.column(f"{KEY_PREFIX}0").to_pylist()
            found.append((row["_shard"], keys, row["_error"]))
    return found


def test_large_values_are_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes out is the same."""
    rows = [(f"key {number}", number, number % 2, number % 3) for number in range(100)]
    wide = packed(shipped(*rows))
    monkeypatch.setattr("cepheid.hosts.spark.stream.packing._WORTH_NARROWING", 1)
    assert [keys for _, keys, _ in wide[1:]] == [
        [key for key, _, bits, at in rows if bits and at == n] for n in range(3)
    ]
    with monkeypatch.context() as patched:
        patched.setattr("cepheid.hosts.spark.stream.packing.to_stream", None)
        assert packed(shipped(*rows)) == wide


def test_events_by_shard() -> None:
    """One value per shard, with the matcher's columns whatever the session; the ledger is called in addition."""
    batches = shipped(("a", 1, 0, 3), ("b", 2, 1, 0)), shipped(("c", 3, 2, 3), ("d", 4, 1, 3))
    every = [(ledger_shard(0), [], None), (0, ["b"], None), (3, ["a", "c", "d"], None)]
    assert packed(*batches, only_relevant=False) == every
    assert packed(*batches) == [(ledger_shard(0), [], None), (0, ["b"], None), (3, ["d"], None)]
    assert packed(shipped(("c", 3, 2, 3))) == [(ledger_shard(0), [], None)]


def test_several_patterns() -> None:
    """Each pattern has its own shards and ledger, and gets the events that are relevant to it."""
    batches = shipped(("a", 1, 0, 3), ("b", 2, 1, 0)), shipped(("c", 3, 2, 3), ("d", 4, 3, 3))
    ledgers = [(ledger_shard(0), [], None), (ledger_shard(1), [], None)]
    assert packed(*batches, patterns=(A, B)) == [*ledgers, (0, ["b"], None), (3, ["d"], None), (7, ["c", "d"], None)]
    assert [pattern_of_ledger(ledger_shard(number)) for number in range(2)] == [0, 1]


def test_even_shards() -> None:
    """Each shard has the number that its placement gives it; those of patterns that have left the query, too."""
    events = shipped(("a", 1, 0, 3), ("b", 2, 1, 0), ("d", 4, 3, 3))
    numbers = [Placement(4).numbers(pattern).tolist() for pattern in range(3)]
    first = [(ledger_shard(0), [], None), (ledger_shard(1), [], None), (numbers[0][0], ["b"], None)]
    found = packed(events, patterns=(A, B), even=True)
    assert found == [*first, (numbers[0][3], ["d"], None), (numbers[1][3], ["d"], None)]
    ended = packed(events, even=True, places=((0,), (2,), "an even plan"))
    ledgers = [ledger_shard(0), ledger_shard(2)]
    assert [shard for shard, _, _ in ended] == [*ledgers, *numbers[2], numbers[0][0], numbers[0][3]]


def test_patterns_that_come_and_go() -> None:
    """The numbers of patterns need not follow each other. Those of patterns that have left the query are called with
    their ledger, once in a worker.
    """
    events = shipped(("a", 1, 0, 3), ("d", 4, 3, 3))
    ledgers = [(ledger_shard(number), [], None) for number in (3, 1)]
    shards = [(12 + 3, ["d"], None), (4 + 3, ["d"], None)]
    ended = [(ledger_shard(2), [], None), *((shard, [], None) for shard in range(8, 12))]
    places = (3, 1), (2,), "a plan"
    assert packed(events, patterns=(A, B), places=places) == [*ledgers, *ended, *shards]
    assert packed(events, patterns=(A, B), places=places) == [*ledgers, *shards]
    assert len(packed(events, patterns=(A, B), places=(*places[:2], "another plan"))) == 9


def test_nothing() -> None:
    """Without events, neither shards nor the ledger are called."""
    assert packed() == []


def test_times_out_of_range() -> None:
    """A time out of range is reported and not packed: deadlines after it could not be represented."""
    ((shard, _, _), (_, _, message)) = packed(shipped(("a", 1 << 62, 0, 3), ("a", (1 << 62) + 1, 0, 3)))
    assert shard == ledger_shard(0)
    assert message is not None
    assert message.startswith("an event's time is further than 100,000 years from 1970")


def test_values_are_joined_and_rows_unpacked() -> None:
    """The values of several tasks are joined into one batch of events; rows are unpacked in the columns of all, with
    the version of their pattern if there is one.
    """
    schema = pa.schema({"m": pa.int64(), "n": pa.int64()})
    first, second = (pa.record_batch({"n": pa.array([n], pa.int64())}) for n in (1, 2))
    both = events_of([to_stream(first), b"", to_stream(second)])
    assert both is not None
    assert both.data.to_pydict() == {"n": [1, 2]}
    assert events_of([b""]) is None
    values = pa.record_batch({"rows": [to_stream(first), to_stream(second)], "pattern": pa.array([0, 1], pa.int32())})
    rows = unpack(iter([values]), (schema.append(pa.field("version", pa.string())), {1: "2"}))
    of_second = {"m": None, "n": 2, "version": "2"}
    assert [row for batch in rows for row in batch.to_pylist()] == [{"m": None, "n": 1, "version": None}, of_second]
    rows = unpack(iter([values]), (schema, {}))
    assert [row for batch in rows for row in batch.to_pylist()] == [{"m": None, "n": 1}, {"m": None, "n": 2}]


@pytest.mark.parametrize("lengths", [(3,), (3, 4), (3000, 0, 5000), (0, 0)])
def test_streams_are_joined(lengths: Sequence[int]) -> None:
    """They become one stream with all rows, whether they are compressed or not. Those with other columns stay as they
    are, one after the other.
    """
    schema = pa.schema({"x": pa.int64(), "text": pa.string()})
    parts = [
        pa.record_batch([[*range(length)], [f"of {number}"] * length], schema=schema)
        for number, length in enumerate(lengths)
    ]
    one = joined([*map(to_stream, parts)])
    assert pa.ipc.open_stream(one).read_all() == pa.Table.from_batches(parts)
    events = events_of([one])
    assert events is not None
    assert len(events) == sum(lengths)
    narrow = [to_narrow_stream(narrowed(part, 1)) for part in parts]
    mixed = events_of([joined([*map(to_stream, parts), *narrow, *narrow])])
    assert mixed is not None
    assert pa.Table.from_batches([mixed.data]) == pa.Table.from_batches(3 * parts).combine_chunks()
