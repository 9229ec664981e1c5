"""Joins Spark's small batches into larger ones, in a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

ROWS = 1 << 17
"""The number of events handed to the matcher at once. Spark sends 10,000 in a batch."""
BYTES = 1 << 28
"""The most bytes of a batch. Batches of wide events have fewer rows, because a column of texts holds at most 2 GB."""


def coalesced(
    batches: Iterator[pa.RecordBatch], at_least: int = ROWS, most_bytes: int = BYTES
) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least so many rows; the last may be shorter. Batches of wide rows are joined only
    up to so many bytes; one that is larger by itself stays alone.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if rows >= at_least or (waiting and size + batch.nbytes > most_bytes):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if rows:
        yield pa.concat_batches(waiting)
