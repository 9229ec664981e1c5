"""Spark's small batches as larger ones, in a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

ROWS = 1 << 17
"""Events handed to the matcher at once. Spark sends 10,000 a batch."""


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least ROWS, but the last."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.concat_batches(waiting)
