"""What was found and what of it is told, compared with what is found when keys go back and events come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.kernel.stages.layout import Int32s
from cepheid.matchers.real_time.journal import Kept, Run, Steps
from cepheid.output.changes import Matches, inserted, retracted
from cepheid.output.stages import TIMEOUT
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.stages.plan import Plan


class Behind(NamedTuple):
    """What keys that went back had come to."""

    keys: Int32s
    told: pa.RecordBatch | None


NOTHING_BEHIND = Behind(np.zeros(0, np.int32), None)


class Telling:
    """A detector's rows that may still be taken back, told or not."""

    def __init__(self, plan: Plan | OccurrencePlan) -> None:
        self.plan = plan
        self.told = Kept()
        self.untold = Kept()
        """What was found and is not told: none in real time."""
        self.matches = 0
        """Those told, less those taken back."""
        self.timeouts = 0

    def go_back(self, keys: Int32s, points: Steps) -> tuple[Behind, list[pa.RecordBatch]]:
        """What the keys had come to behind their points, and all of its rows."""
        told, untold = (kept.take_behind(points) for kept in (self.told, self.untold))
        return Behind(keys, told and told.rows), [run.rows for run in (told, untold) if run is not None]

    def difference(
        self, behind: Behind, found: Sequence[Run], *, until: int | None, clock: int
    ) -> list[pa.RecordBatch]:
        """Takes back what is not found again, when time is at `clock`, and tells what was found and not told yet: what
        is certain up to `until`, or all of it.
        """
        before = Matches(self.plan, behind.told)
        rows: list[pa.RecordBatch] = []
        for run in found:
            stays = before.taken(run.rows, np.isin(run.key, behind.keys))
            self.told.add(run.take(stays))
            self.untold.add(run.take(~stays))
        if behind.told is not None:
            gone = before.taken(behind.told, np.ones(len(behind.told), np.bool_))
            if gone.any():
                lost = behind.told.filter(pa.array(gone))
                self._count(lost, -1)
                rows.append(retracted(self.plan, lost, clock))
        certain = self.untold.take_all() if until is None else self.untold.take_until(until, "detected_at")
        if certain is not None:
            self.told.add(certain)
            self._count(certain.rows, 1)
            rows.append(inserted(self.plan, certain.rows))
        return rows

    def _count(self, rows: pa.RecordBatch, by: int) -> None:
        timeouts = rows.column("kind").to_pylist().count(TIMEOUT)
        self.timeouts += by * timeouts
        self.matches += by * (len(rows) - timeouts)
