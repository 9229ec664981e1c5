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
"""In place of the step of a row that was taken."""


class Segment(NamedTuple):
    rows: pa.RecordBatch
    key: Int32s
    step: Steps

    def take(self, which: Flags) -> Segment:
        chosen = np.flatnonzero(which)
        return Segment(self.rows.take(pa.array(chosen)), self.key[chosen], self.step[chosen])


class Journal:
    """Segments of rows, in no order. Small ones are joined as they come, so that there are few."""

    def __init__(self) -> None:
        self._runs: list[Segment] = []

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(run.step != GONE)) for run in self._runs)

    @property
    def size(self) -> int:
        """The number of rows in memory, including those that were taken."""
        return sum(len(run.key) for run in self._runs)

    def add(self, run: Segment) -> None:
        if not len(run.key):
            return
        tail = [run]
        while self._runs and len(self._runs[-1].key) < 2 * sum(len(other.key) for other in tail):
            tail.append(self._runs.pop())
        self._runs.append(_joined(tail[::-1]))

    def take_after(self, points: Steps) -> Segment | None:
        """Takes the rows of each key after its point, the i-th of `points` for key i."""
        return self._take([run.step > points[run.key] for run in self._runs])

    def take_all(self) -> Segment | None:
        return self._take([run.step != GONE for run in self._runs])

    def take_until(self, time: int, column: str) -> Segment | None:
        """Takes the rows whose time in the column is up to `time` (microseconds)."""
        return self._take([(run.step != GONE) & (_times(run, column) <= time) for run in self._runs])

    def at(self, time: int, column: str) -> pa.RecordBatch | None:
        """The rows whose time in the column is `time` (microseconds)."""
        found = [run.take((run.step != GONE) & (_times(run, column) == time)) for run in self._runs]
        return _joined(found).rows if found else None

    def forget(self, points: Steps) -> None:
        """Forgets the rows of each key up to its point, and those that were taken."""
        self._keep([(run.step != GONE) & (run.step > points[run.key]) for run in self._runs])

    def forget_taken(self) -> None:
        """Forgets the rows that were taken."""
        self._keep([run.step != GONE for run in self._runs])

    def state(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, pa.RecordBatch]]:
        """All rows, with their keys and steps, as arrays and batches of a snapshot, under the name."""
        if not len(self):
            return {}, {}
        rows, key, step = _joined(self._runs)
        return {f"{name}.key": key, f"{name}.step": step}, {name: rows}

    @staticmethod
    def of(snapshot: Snapshot, name: str, columns: pa.Schema) -> Journal:
        """The journal that `state` was taken from.

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
            raise SnapshotError(f"the snapshot's rows ({name}) are not each of a key and a step")
        journal.add(Segment(rows, key, step.copy()))
        return journal

    @property
    def keys(self) -> Int32s:
        """The keys that have rows, ascending."""
        found: Int32s = np.unique(np.concatenate([np.zeros(0, np.int32), *(run.key for run in self._runs)]))
        return found

    def _keep(self, which: Sequence[Flags]) -> None:
        retained = [run.take(flags) for run, flags in zip(self._runs, which, strict=True)]
        self._runs = []
        for run in retained:
            self.add(run)

    def _take(self, which: Sequence[Flags]) -> Segment | None:
        taken = []
        for run, flags in zip(self._runs, which, strict=True):
            if flags.any():
                taken.append(run.take(flags))
                run.step[flags] = GONE
        return _joined(taken) if taken else None


def _times(run: Segment, column: str) -> npt.NDArray[np.int64]:
    """The column in microseconds; it has no NULL."""
    times: npt.NDArray[np.int64] = run.rows.column(column).cast(pa.int64()).to_numpy()
    return times


def _joined(runs: Sequence[Segment]) -> Segment:
    """One segment, without the rows that were taken."""
    runs = [run if (there := run.step != GONE).all() else run.take(there) for run in runs]
    if len(runs) == 1:
        return runs[0]
    rows = pa.concat_batches([run.rows for run in runs])
    return Segment(rows, np.concatenate([run.key for run in runs]), np.concatenate([run.step for run in runs]))
