"""Journals of rows that may have to be replayed or revised: events, and the rows that resulted from them.

Each row has a key, by its number, and a step: the call of the kernel that processed or produced it. Later rows have
greater steps, so a key's rows after a rollback point are those with a greater step than the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.matchers.snapshot import Snapshot

Steps = npt.NDArray[np.int64]

GONE = -1
"""The step of a row that was taken out."""


class Segment(NamedTuple):
    rows: pa.RecordBatch
    key: Int32s
    step: Steps

    def take(self, which: Flags) -> Segment:
        chosen = np.flatnonzero(which)
        return Segment(self.rows.take(pa.array(chosen)), self.key[chosen], self.step[chosen])


class Journal:
    """Segments of rows, in no particular order. Small ones are joined when they are added, so that there are few."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(segment.step != GONE)) for segment in self._segments)

    @property
    def size(self) -> int:
        """The number of rows in memory, including those that were taken out."""
        return sum(len(segment.key) for segment in self._segments)

    def add(self, segment: Segment) -> None:
        if not len(segment.key):
            return
        tail = [segment]
        while self._segments and len(self._segments[-1].key) < 2 * sum(len(other.key) for other in tail):
            tail.append(self._segments.pop())
        self._segments.append(_joined(tail[::-1]))

    def take_after(self, points: Steps) -> Segment | None:
        """Takes out the rows of each key after its point; points[i] is that of key i."""
        return self._take([segment.step > points[segment.key] for segment in self._segments])

    def take_all(self) -> Segment | None:
        return self._take([segment.step != GONE for segment in self._segments])

    def take_until(self, time: int, column: str) -> Segment | None:
        """Takes out the rows whose time in the column is up to `time` (microseconds)."""
        return self._take([(segment.step != GONE) & (_times(segment, column) <= time) for segment in self._segments])

    def at(self, time: int, column: str) -> pa.RecordBatch | None:
        """The rows whose time in the column is `time` (microseconds)."""
        parts = [segment.take((segment.step != GONE) & (_times(segment, column) == time)) for segment in self._segments]
        return _joined(parts).rows if parts else None

    def forget(self, points: Steps) -> None:
        """Forgets the rows of each key up to its point, and those that were taken out."""
        self._keep([(segment.step != GONE) & (segment.step > points[segment.key]) for segment in self._segments])

    def forget_taken(self) -> None:
        """Forgets the rows that were taken out."""
        self._keep([segment.step != GONE for segment in self._segments])

    def state(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, pa.RecordBatch]]:
        """All rows with their keys and steps, as arrays and batches for a snapshot, under this name."""
        if not len(self):
            return {}, {}
        rows, key, step = _joined(self._segments)
        return {f"{name}.key": key, f"{name}.step": step}, {name: rows}

    @staticmethod
    def of(snapshot: Snapshot, name: str, columns: pa.Schema) -> Journal:
        """A journal restored from what `state` returned.

        Raises:
            SnapshotError: the rows do not have these columns, or a row lacks its key or step.
        """
        journal = Journal()
        if name not in snapshot.batches:
            return journal
        rows, key, step = snapshot.batches[name], snapshot.arrays[f"{name}.key"], snapshot.arrays[f"{name}.step"]
        if rows.schema != columns:
            raise SnapshotError(f"the snapshot's rows ({name}) have other columns: {rows.schema}")
        numbered = key.dtype == np.int32 and step.dtype == np.int64 and key.shape == step.shape == (len(rows),)
        if not (numbered and (key >= 0).all() and (step >= 0).all()):
            raise SnapshotError(f"the snapshot's rows ({name}) do not each have a key and a step")
        journal.add(Segment(rows, key, step.copy()))
        return journal

    @property
    def keys(self) -> Int32s:
        """The keys that have rows, ascending."""
        keys: Int32s = np.unique(np.concatenate([np.zeros(0, np.int32), *(segment.key for segment in self._segments)]))
        return keys

    def _keep(self, which: Sequence[Flags]) -> None:
        retained = [segment.take(flags) for segment, flags in zip(self._segments, which, strict=True)]
        self._segments = []
        for segment in retained:
            self.add(segment)

    def _take(self, which: Sequence[Flags]) -> Segment | None:
        taken = []
        for segment, flags in zip(self._segments, which, strict=True):
            if flags.any():
                taken.append(segment.take(flags))
                segment.step[flags] = GONE
        return _joined(taken) if taken else None


def _times(segment: Segment, column: str) -> npt.NDArray[np.int64]:
    """The column in microseconds; it has no NULL."""
    times: npt.NDArray[np.int64] = segment.rows.column(column).cast(pa.int64()).to_numpy()
    return times


def _joined(segments: Sequence[Segment]) -> Segment:
    """One segment, without the rows that were taken out."""
    segments = [segment if (there := segment.step != GONE).all() else segment.take(there) for segment in segments]
    if len(segments) == 1:
        return segments[0]
    rows = pa.concat_batches([segment.rows for segment in segments])
    return Segment(
        rows,
        np.concatenate([segment.key for segment in segments]),
        np.concatenate([segment.step for segment in segments]),
    )
