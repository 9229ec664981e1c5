"""Combines Spark's small batches into larger ones."""

from __future__ import annotations

import pyarrow as pa

from cepheid.hosts.spark.coalesce import coalesced


def batch(rows: int, width: int, first: int = 0) -> pa.RecordBatch:
    texts = [f"{number:0{width}}" for number in range(first, first + rows)]
    return pa.record_batch({"text": pa.array(texts)})


def test_enough_rows() -> None:
    parts = [batch(50_000, 8, first) for first in range(0, 400_000, 50_000)]
    found = [*coalesced(iter(parts))]
    assert [part.num_rows for part in found] == [150_000, 150_000, 100_000]
    assert pa.Table.from_batches(found) == pa.Table.from_batches(parts).combine_chunks()
    assert [*coalesced(iter([]))] == []


def test_wide_rows_are_fewer() -> None:
    """A column cannot exceed 2 GB, which a full batch of wide rows might; here the limit is 10,000 bytes."""
    parts = [batch(10, 400, 0), batch(10, 400, 10), batch(10, 400, 20), batch(30, 400, 30), batch(1, 400, 60)]
    found = [*coalesced(iter(parts), most_bytes=10_000)]
    assert [part.num_rows for part in found] == [20, 10, 30, 1]
    assert pa.Table.from_batches(found) == pa.Table.from_batches(parts)
