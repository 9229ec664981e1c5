"""Spark's small batches as larger ones, in a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

ROWS = 1 << 17
"""Events handed to the matcher at once. Spark sends 10,000 a batch."""
BYTES = 1 << 28
"""Of wide events they are fewer: a column of texts has no more than 2 GB."""


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least ROWS, but for the last, and for wide ones: of so many that they have at most
    BYTES, or of one.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if rows >= ROWS or (waiting and size + batch.nbytes > BYTES):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if rows:
        yield pa.concat_batches(waiting)
