"""The order of events within a key, made the same on every host.

Events come ordered by key, time and sequence. Those that agree in all of these are put in the order of their content:
a digest of their chosen columns, then of the columns that conditions read. Equal ones get ordinals, which are part of
their identity. As a group of such events may be cut by the border of two batches, the last group of a batch waits for
the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError
from cepheid.events import MASK, ORDINAL, TIME, Batch, join
from cepheid.identity import canonical_bytes, digests

Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ordered:
    """Events in their final order, each with its ordinal, and where the key is another than the event's before."""

    batch: Batch
    key_start: Flags


class Ordering:
    """Takes batches and gives them back in their final order, the last group of equal rank one batch later."""

    def __init__(self) -> None:
        self.ties = 0
        """Events that only their content orders."""
        self._waiting: Batch | None = None
        self._waiting_starts_key = True

    def process(self, batch: Batch) -> Iterator[Ordered]:
        """The events whose order is certain now.

        Raises:
            EventError: an event comes before one of the same key that is later in time or sequence.
        """
        if len(batch) == 0:
            return
        key_start, group_start = self._borders(batch)
        group_starts = np.flatnonzero(group_start)
        if self._waiting is not None:
            merged = int(group_starts[0]) if len(group_starts) else len(batch)
            self._waiting = join([self._waiting, batch.slice(0, merged)])
            if not len(group_starts):
                return
            yield self._release()
        first, last = int(group_starts[0]), int(group_starts[-1])
        if first < last:
            yield self._ordered(batch.slice(first, last), key_start[first:last], group_start[first:last])
        self._waiting, self._waiting_starts_key = batch.slice(last, len(batch)), bool(key_start[last])

    def finish(self) -> Iterator[Ordered]:
        """What still waits: no more events come."""
        if self._waiting is not None:
            yield self._release()
            self._waiting = None

    def _release(self) -> Ordered:
        assert self._waiting is not None
        key_start = np.zeros(len(self._waiting), np.bool_)
        group_start = key_start.copy()
        key_start[0], group_start[0] = self._waiting_starts_key, True
        return self._ordered(self._waiting, key_start, group_start)

    def _borders(self, batch: Batch) -> tuple[Flags, Flags]:
        """Where a key begins, and where a group of events of equal rank begins."""
        if self._waiting is None:
            key_start, group_start = _borders_within(batch)
            key_start[0] = group_start[0] = True
            return key_start, group_start
        seam = join([self._waiting.slice(len(self._waiting) - 1, len(self._waiting)), batch.slice(0, 1)])
        at_seam = _borders_within(seam)
        key_start, group_start = _borders_within(batch)
        key_start[0], group_start[0] = at_seam[0][1], at_seam[1][1]
        return key_start, group_start

    def _ordered(self, batch: Batch, key_start: Flags, group_start: Flags) -> Ordered:
        group = np.cumsum(group_start, dtype=np.int64)
        tied = np.flatnonzero(np.bincount(group)[group] > 1)
        ordinals = np.zeros(len(batch), np.int32)
        if len(tied):
            self.ties += len(tied)
            rows, ordinals[tied] = _by_content(batch.take(pa.array(tied)), group[tied])
            order = np.arange(len(batch))
            order[tied] = tied[rows]
            batch = batch.take(pa.array(order))
        return Ordered(batch.with_column(ORDINAL, pa.array(ordinals)), key_start)


def _by_content(tied: Batch, group: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The rows of `tied` in order, group by group, and the ordinal at each place."""
    content = _row_digests(tied.chosen, len(tied), b"content")
    lifted = _row_digests([tied.column(MASK), *tied.values], len(tied), b"lifted")
    rows = sorted(range(len(tied)), key=lambda row: (group[row], content[row], lifted[row]))
    ordinals = np.zeros(len(tied), np.int32)
    for place in range(1, len(rows)):
        before, row = rows[place - 1], rows[place]
        if group[before] == group[row] and content[before] == content[row]:
            ordinals[place] = ordinals[place - 1] + 1
    return np.array(rows, dtype=np.int64), ordinals


def _row_digests(columns: list[pa.Array], length: int, purpose: bytes) -> list[bytes]:
    return digests(canonical_bytes(columns, length), range(1, length + 1), purpose)


def _borders_within(batch: Batch) -> tuple[Flags, Flags]:
    """For each event but the first (there False): whether its key, and whether its key or rank, differs from the one
    before.
    """
    key_start = np.zeros(len(batch), np.bool_)
    for column in batch.keys:
        key_start[1:] |= differs(column)
    group_start = key_start.copy()
    for column in batch.order:
        group_start[1:] |= differs(column)
    _check_order(batch, key_start)
    return key_start, group_start


def _check_order(batch: Batch, key_start: Flags) -> None:
    time = batch.column(TIME).cast(pa.int64()).to_numpy()
    wrong = np.flatnonzero((time[1:] < time[:-1]) & ~key_start[1:])
    if len(wrong):
        at = int(wrong[0]) + 1
        before, after = batch.column(TIME)[at - 1], batch.column(TIME)[at]
        raise EventError(
            f"{len(wrong)} events come before an earlier one of the same key, the first at {after} after {before}. "
            "A matcher takes events in order of key and time: sort them, or let detect do it"
        )


def differs(column: pa.Array) -> Flags:
    """Whether each value but the first differs from the one before, as Spark groups: NULL equals NULL, NaN NaN, -0.0
    0.0.
    """
    if pa.types.is_null(column.type):  # an empty pandas column of strings
        return np.zeros(max(0, len(column) - 1), np.bool_)
    if pa.types.is_struct(column.type):
        parts = [column.is_valid(), *column.flatten()]
        different: Flags = np.logical_or.reduce([differs(part) for part in parts])
        return different
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        nan = np.isnan(values)
        different = (values[1:] != values[:-1]) & ~(nan[1:] & nan[:-1])
    else:
        left, right = column.slice(1), column.slice(0, max(0, len(column) - 1))
        different = pc.not_equal(left, right).fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        different = (different & valid[1:] & valid[:-1]) | (valid[1:] != valid[:-1])
    return different
