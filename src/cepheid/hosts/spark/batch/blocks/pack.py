"""The code that runs in a Spark worker before the shuffle: it packs events into blocks by target partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.events.narrow import narrowed
from cepheid.hosts.spark.batch.blocks.form import TARGET, in_parts
from cepheid.hosts.spark.coalesce import ROWS, coalesced

_ROWS_A_BLOCK = 1 << 12
"""With many targets, at least so many events for each are gathered: a block has a schema and costs some calls."""
_GATHERED_BYTES = 1 << 26
"""The most bytes of events that are gathered, about."""
_BLOCKS_A_TASK = 1 << 32


class Packing(NamedTuple):
    """What a worker needs for packing events."""

    labels: tuple[int, ...]
    """What Spark's shuffle goes by, for each target partition."""
    part: int
    """The most bytes of a part of a block."""


def pack(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The events in parts of blocks. Their column TARGET is the number of the target partition. `given` has the fields
    of a Packing.
    """
    from pyspark import TaskContext

    packing = Packing(*given)
    context = TaskContext.get()
    first = _BLOCKS_A_TASK * (context.partitionId() if context is not None else 0)
    rows = max(ROWS, _ROWS_A_BLOCK * len(packing.labels))
    for events in coalesced(batches, rows, _GATHERED_BYTES):
        for piece in _pieces(events):
            blocks = [*_blocks(piece, packing.labels)]
            yield in_parts(blocks, first, packing.part)
            first += len(blocks)


def _pieces(events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The events, halved until each piece has few enough bytes: Spark may have handed over too many at once."""
    half = events.num_rows // 2
    if events.nbytes <= _GATHERED_BYTES or not half:
        yield events
    else:
        yield from _pieces(events.slice(0, half))
        yield from _pieces(events.slice(half))


def _blocks(events: pa.RecordBatch, labels: tuple[int, ...]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The events of each target that has some, in the order in which they come, with the target's label."""
    targets = events.column(TARGET).to_numpy().astype(np.min_scalar_type(len(labels)))  # sorted by radix
    rows = np.argsort(targets, kind="stable")
    bounds = np.searchsorted(targets[rows], np.arange(len(labels) + 1))
    ordered = narrowed(events.drop_columns([TARGET]), len(labels)).take(pa.array(rows))
    for label, (start, stop) in zip(labels, pairwise(bounds.tolist()), strict=True):
        if start < stop:
            yield label, ordered.slice(start, stop - start)
