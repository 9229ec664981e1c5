"""Brings the events of a partition into the order of key, time and sequence, in a Spark worker.

If they are few enough, they are sorted in memory, and what only rows of matches need is not moved. Otherwise as many as
fit are sorted and written to a file, a run, and the runs are merged: the worker's memory does not grow with the
partition, unless it has hundreds of runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.events.batch import DEFERRED, EVENT_PREFIX, ROW_PREFIX, TIME, Batch, DeferredColumns
from cepheid.events.order import descends, leaves, ranks_of
from cepheid.hosts.spark.batch.worker import Layout, batch_of_layout
from cepheid.hosts.spark.coalesce import ROWS
from cepheid.kernel.order import Rows
from cepheid.kernel.order_of_columns import order_of_columns

IN_MEMORY = 1 << 27
"""The most bytes of events that are sorted in memory. Sorting takes about three times as many."""
_PIECE = 1 << 20
"""About how many bytes of each run are merged at once; fewer if there are so many runs that they need much memory."""

_Left: TypeAlias = tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]
"""What is left of a piece of a run, and the run's further pieces."""


def ordered_batches(blocks: Iterable[pa.RecordBatch], layout: Layout, *, most: int = IN_MEMORY) -> Iterator[Batch]:
    """The events of all blocks in their order, as batches for a matcher. More than `most` bytes go to files."""
    waiting: list[pa.RecordBatch] = []
    runs: list[Iterator[pa.RecordBatch]] = []
    size = 0
    with ExitStack() as files:
        for block in blocks:
            if waiting and size + block.nbytes > most:
                runs.append(_written(_sorted(waiting, layout), files))
                size = 0
            waiting.append(block)
            size += block.nbytes
        if not runs:
            yield from _in_memory(waiting, layout)
            return
        if waiting:
            runs.append(_sorted(waiting, layout))
        for events in _merged(runs, layout):
            yield batch_of_layout(events, layout)


def _in_memory(blocks: list[pa.RecordBatch], layout: Layout) -> Iterator[Batch]:
    """The events in order. The batches have only the rows of the chosen columns, unless functions see all columns."""
    if not blocks:
        return
    batch = batch_of_layout(_joined(blocks, layout), layout)
    rows, data, deferred = _order_of(batch), batch.data, None
    chosen = [name for name in data.schema.names if name.startswith(EVENT_PREFIX)]
    if chosen and not any(name.startswith(ROW_PREFIX) for name in data.schema.names):
        columns = data.select(chosen)
        data, deferred = data.drop_columns(chosen), DeferredColumns(columns, columns.schema)
    for start in range(0, len(rows), ROWS):
        piece = pa.array(rows[start : start + ROWS])
        taken = data.take(piece)
        yield Batch(taken) if deferred is None else Batch(taken.append_column(DEFERRED, piece), deferred)


def _sorted(blocks: list[pa.RecordBatch], layout: Layout) -> Iterator[pa.RecordBatch]:
    """The events in order, in pieces."""
    events = _joined(blocks, layout)
    rows = _order_of(batch_of_layout(events, layout))
    count = max(1, len(rows) * _PIECE // max(1, events.nbytes))
    for start in range(0, len(rows), count):
        yield events.take(pa.array(rows[start : start + count]))


def _joined(blocks: list[pa.RecordBatch], layout: Layout) -> pa.RecordBatch:
    """The blocks by their first times: if they come from events in order of time, all events are then in this order.
    `blocks` is emptied, so that its memory is free.
    """
    time = dict(layout)[TIME]
    events = pa.concat_batches(sorted(blocks, key=lambda block: block.column(time)[0].value))
    blocks.clear()
    return events


def _order_of(batch: Batch) -> Rows:
    """The rows' numbers in the order of key, sub-keys, time and sequence."""
    ranks = ranks_of(batch)
    if not descends(ranks).any():
        ranks = []
    keys = [leaf for column in (*batch.keys, *batch.sub_keys) for leaf in leaves(column)]
    return order_of_columns([*keys, *ranks], len(batch))


def _merged(runs: list[Iterator[pa.RecordBatch]], layout: Layout) -> Iterator[pa.RecordBatch]:
    """The events of all runs in order; each run is in order.

    All events up to the first one that is the last of a run's piece are known: whatever follows comes after it.
    """
    left: list[_Left] = [(next(run), run) for run in runs]
    while left:
        events = pa.concat_batches([piece for piece, _ in left])
        rows = _order_of(batch_of_layout(events, layout))
        place = np.empty(len(rows), np.int64)
        place[rows] = np.arange(len(rows))
        bounds = np.cumsum([0, *(piece.num_rows for piece, _ in left)])
        known = int(place[bounds[1:] - 1].min()) + 1
        yield events.take(pa.array(rows[:known]))
        given = np.add.reduceat(place < known, bounds[:-1], dtype=np.int64)
        left = [*_next_pieces(left, given.tolist())]


def _next_pieces(left: list[_Left], given: list[int]) -> Iterator[_Left]:
    """What is left of each run's piece after so many of its events, unless the run ends. A rest that is shorter than
    what was given gets the run's next piece: otherwise a turn could use up one piece and sort one of every run.
    """
    for (piece, run), count in zip(left, given, strict=True):
        rest = piece.slice(count)
        further = next(run, None) if len(rest) <= count else None
        pieces = [one for one in (rest, further) if one is not None and len(one)]
        if pieces:
            yield (pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)), run


def _written(pieces: Iterator[pa.RecordBatch], files: ExitStack) -> Iterator[pa.RecordBatch]:
    """Writes the pieces, at least one, and returns them as they are in the mapped file. `files`
    removes it.
    """
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    chosen = folders[os.getpid() % len(folders)] or None  # workers of one machine share the disks
    folder = files.enter_context(TemporaryDirectory(prefix="cepheid-", dir=chosen))
    path = str(Path(folder) / "events.arrow")
    first = next(pieces)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, first.schema) as stream:
        stream.write(first)
        for piece in pieces:
            stream.write(piece)
    mapped = pa.ipc.open_file(files.enter_context(pa.memory_map(path)))
    return (mapped.get_batch(number) for number in range(mapped.num_record_batches))
