"""Events are packed for their shards in a worker, without those that cannot matter."""

from __future__ import annotations

import pyarrow as pa

from cepheid.events import KEY_PREFIX, MASK, TIME, TIME_TYPE
from cepheid.hosts.stream_packing import LEDGER, events_of, pack, to_stream, unpack

COLUMNS = pa.schema([(f"{KEY_PREFIX}0", pa.string()), (TIME, TIME_TYPE), (MASK, pa.int64())])
LAYOUT = ((f"{KEY_PREFIX}0", "c0"), (TIME, "c1"), (MASK, "c2"))


def shipped(*rows: tuple[str, int, int, int]) -> pa.RecordBatch:
    """Events (key, time, mask, shard) as Spark hands them over, in a session of Berlin's zone."""
    keys, times, masks, shards = zip(*rows, strict=True)
    return pa.record_batch(
        {
            "c0": pa.array(keys, pa.string()),
            "c1": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
            "c2": pa.array(masks, pa.int64()),
            "_shard": pa.array(shards, pa.int32()),
        }
    )


def packed(*batches: pa.RecordBatch, relevant: int | None) -> list[tuple[int, list[str], str | None]]:
    """Each shard that is called, with the keys of its events and the failure."""
    found = []
    for batch in pack(iter(batches), (LAYOUT, COLUMNS, relevant)):
        for row in batch.to_pylist():
            events = events_of([row["_events"]])
            assert events is None or events.data.schema == COLUMNS
            keys = [] if events is None else events.column(f"{KEY_PREFIX}0").to_pylist()
            found.append((row["_shard"], keys, row["_error"]))
    return found


def test_events_by_shard() -> None:
    """One value a shard, in the columns that the matcher has in every session; the ledger is called beside them."""
    batches = shipped(("a", 1, 0, 3), ("b", 2, 1, 0)), shipped(("c", 3, 2, 3), ("d", 4, 3, 3))
    assert packed(*batches, relevant=None) == [(LEDGER, [], None), (0, ["b"], None), (3, ["a", "c", "d"], None)]
    assert packed(*batches, relevant=2) == [(LEDGER, [], None), (3, ["c", "d"], None)]
    assert packed(*batches, relevant=4) == [(LEDGER, [], None)]


def test_nothing() -> None:
    """Where no event comes, no shard is called, nor the ledger."""
    assert packed(relevant=None) == []


def test_times_that_are_no_times() -> None:
    """They are told, not packed: deadlines behind them could not be."""
    ((shard, _, _), (_, _, message)) = packed(shipped(("a", 1 << 62, 0, 3), ("a", (1 << 62) + 1, 0, 3)), relevant=None)
    assert shard == LEDGER
    assert message is not None
    assert message.startswith("an event's time is further than 100,000 years from 1970")


def test_values_are_joined_and_rows_unpacked() -> None:
    """What came of several tasks is one batch of events; rows come out as they went in."""
    first, second = (pa.record_batch({"n": pa.array([n], pa.int64())}) for n in (1, 2))
    joined = events_of([to_stream(first), b"", to_stream(second)])
    assert joined is not None
    assert joined.data.to_pydict() == {"n": [1, 2]}
    assert events_of([b""]) is None
    rows = unpack(iter([pa.record_batch({"rows": [to_stream(first), to_stream(second)]})]), ())
    assert [row for batch in rows for row in batch.to_pylist()] == [{"n": 1}, {"n": 2}]
