"""The rows found so far, emitted or not, and how they change when keys are rolled back and events are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.kernel.arrays import Int32s
from cepheid.matchers.real_time.journal import Journal, Segment, Steps
from cepheid.output.changes import Changes, Matches
from cepheid.output.common import TIMEOUT


class RolledBack(NamedTuple):
    """Keys that were rolled back, and the rows emitted for them since their rollback points."""

    keys: Int32s
    emitted: pa.RecordBatch | None


NOTHING_ROLLED_BACK = RolledBack(np.zeros(0, np.int32), None)


class Revisions:
    """A detector's rows that may still be retracted, emitted or not."""

    def __init__(self, changes: Changes, *, rebinds: bool) -> None:
        """`rebinds`: whether a later event may change the content of a row but not its match_id."""
        self.changes = changes
        self._rebinds = rebinds
        self.emitted = Journal()
        self.pending = Journal()
        """Rows that were found but not emitted yet; empty in real time."""
        self.matches = 0
        """Matches emitted, less those retracted; `timeouts` in the same way."""
        self.timeouts = 0

    def roll_back(self, keys: Int32s, points: Steps) -> tuple[RolledBack, list[pa.RecordBatch]]:
        """Takes out the rows of these keys after their rollback points. Returns those that were emitted as RolledBack,
        and all of them as batches.
        """
        emitted, pending = (journal.take_after(points) for journal in (self.emitted, self.pending))
        rows = [part.rows for part in (emitted, pending) if part is not None]
        return RolledBack(keys, emitted and emitted.rows), rows

    def difference(
        self, rolled_back: RolledBack, found: Sequence[Segment], *, until: int | None, clock: int
    ) -> list[pa.RecordBatch]:
        """Compares the rows found now with those that were rolled back. Retracts emitted rows that were not found
        again, at time `clock` (microseconds). Then inserts rows that are not emitted yet: those certain by `until`
        (microseconds), or all (None).
        """
        before = Matches(rolled_back.emitted, by_content=self._rebinds)
        rows: list[pa.RecordBatch] = []
        for segment in found:
            stays = before.taken(segment.rows, np.isin(segment.key, rolled_back.keys))
            self.emitted.add(segment.take(stays))
            self.pending.add(segment.take(~stays))
        if rolled_back.emitted is not None:
            gone = before.taken(rolled_back.emitted, np.ones(len(rolled_back.emitted), np.bool_))
            if gone.any():
                lost = rolled_back.emitted.filter(pa.array(gone))
                self._count(lost, -1)
                rows.append(self.changes.retracted(lost, clock))
        certain = self.pending.take_all() if until is None else self.pending.take_until(until, "detected_at")
        if certain is not None:
            self.emitted.add(certain)
            self._count(certain.rows, 1)
            rows.append(self.changes.inserted(certain.rows))
        return rows

    def _count(self, rows: pa.RecordBatch, by: int) -> None:
        timeouts = rows.column("kind").to_pylist().count(TIMEOUT)
        self.timeouts += by * timeouts
        self.matches += by * (len(rows) - timeouts)
