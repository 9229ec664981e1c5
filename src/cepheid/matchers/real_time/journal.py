"""Rows that were worked on or told and may have to be worked on again: events, and what came of them.

Each row is of a key, by its number, and of a step: the call of the kernel that it went through or came of. What comes
later has a greater step, so what a key has behind a point is what has a greater step than the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.kernel.stages.layout import Flags, Int32s
from cepheid.matchers.snapshot import Snapshot

Steps = npt.NDArray[np.int64]

GONE = -1
"""In place of its step, for a row that was taken."""


class Run(NamedTuple):
    rows: pa.RecordBatch
    key: Int32s
    step: Steps

    def take(self, which: Flags) -> Run:
        chosen = np.flatnonzero(which)
        return Run(self.rows.take(pa.array(chosen)), self.key[chosen], self.step[chosen])


class Kept:
    """Runs of rows, in no order. Small ones are joined as they come, so that there are few."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(run.step != GONE)) for run in self._runs)

    @property
    def size(self) -> int:
        """How many rows there are in memory, those among them that were taken."""
        return sum(len(run.key) for run in self._runs)

    def add(self, run: Run) -> None:
        if not len(run.key):
            return
        behind = [run]
        while self._runs and len(self._runs[-1].key) < 2 * sum(len(other.key) for other in behind):
            behind.append(self._runs.pop())
        self._runs.append(_joined(behind[::-1]))

    def take_behind(self, points: Steps) -> Run | None:
        """Takes the rows of each key behind its point, the i-th of `points`."""
        return self._take([run.step > points[run.key] for run in self._runs])

    def take_all(self) -> Run | None:
        return self._take([run.step != GONE for run in self._runs])

    def take_until(self, time: int, column: str) -> Run | None:
        """Takes the rows with a time up to `time` in the column."""
        return self._take([(run.step != GONE) & (_times(run, column) <= time) for run in self._runs])

    def at(self, time: int, column: str) -> pa.RecordBatch | None:
        """The rows with this time in the column."""
        found = [run.take((run.step != GONE) & (_times(run, column) == time)) for run in self._runs]
        return _joined(found).rows if found else None

    def forget(self, points: Steps) -> None:
        """Forgets the rows of each key up to its point, and those that were taken."""
        self._keep([(run.step != GONE) & (run.step > points[run.key]) for run in self._runs])

    def forget_taken(self) -> None:
        """Forgets the rows that were taken."""
        self._keep([run.step != GONE for run in self._runs])

    def state(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, pa.RecordBatch]]:
        """All that is here, as arrays and rows of a snapshot, under the name."""
        if not len(self):
            return {}, {}
        rows, key, step = _joined(self._runs)
        return {f"{name}.key": key, f"{name}.step": step}, {name: rows}

    @staticmethod
    def of(snapshot: Snapshot, name: str, columns: pa.Schema) -> Kept:
        """What `state` gave.

        Raises:
            SnapshotError: the rows have other columns than `columns`, or other numbers than there are rows.
        """
        kept = Kept()
        if name not in snapshot.batches:
            return kept
        rows, key, step = snapshot.batches[name], snapshot.arrays[f"{name}.key"], snapshot.arrays[f"{name}.step"]
        if rows.schema != columns:
            raise SnapshotError(f"the snapshot's rows ({name}) have other columns: {rows.schema}")
        numbered = key.dtype == np.int32 and step.dtype == np.int64 and key.shape == step.shape == (len(rows),)
        if not (numbered and (key >= 0).all() and (step >= 0).all()):
            raise SnapshotError(f"the snapshot's rows ({name}) are not each of a key and a step")
        kept.add(Run(rows, key, step.copy()))
        return kept

    @property
    def keys(self) -> Int32s:
        """The keys that have rows, ascending."""
        found: Int32s = np.unique(np.concatenate([np.zeros(0, np.int32), *(run.key for run in self._runs)]))
        return found

    def _keep(self, which: Sequence[Flags]) -> None:
        kept = [run.take(flags) for run, flags in zip(self._runs, which, strict=True)]
        self._runs = []
        for run in kept:
            self.add(run)

    def _take(self, which: Sequence[Flags]) -> Run | None:
        taken = []
        for run, flags in zip(self._runs, which, strict=True):
            if flags.any():
                taken.append(run.take(flags))
                run.step[flags] = GONE
        return _joined(taken) if taken else None


def _times(run: Run, column: str) -> npt.NDArray[np.int64]:
    """Microseconds; there is no NULL."""
    times: npt.NDArray[np.int64] = run.rows.column(column).cast(pa.int64()).to_numpy()
    return times


def _joined(runs: Sequence[Run]) -> Run:
    """In one, without the rows that were taken."""
    runs = [run if (there := run.step != GONE).all() else run.take(there) for run in runs]
    if len(runs) == 1:
        return runs[0]
    rows = pa.concat_batches([run.rows for run in runs])
    return Run(rows, np.concatenate([run.key for run in runs]), np.concatenate([run.step for run in runs]))
