"""What a matcher told and takes back, as rows: insertions and retractions of matches and timeouts, and late events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.events.batch import TIME_TYPE
from cepheid.events.identity import canonical_bytes
from cepheid.kernel.stages.layout import FOREVER, Flags
from cepheid.output.occurrences import occurrence_schema
from cepheid.output.stages import LATE, row_schema
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.stages.plan import Plan

INSERTION, RETRACTION = "insertion", "retraction"
FOUND = "found"
"""The column that tells matches from timeouts, where timeouts are asked for."""


def change_schema(plan: Plan | OccurrencePlan) -> pa.Schema:
    """The columns of a matcher's rows with outputs, where `kind` says what became of the match."""
    kind, *others = row_schema(plan) if isinstance(plan, Plan) else occurrence_schema(plan)
    return pa.schema([kind, *([pa.field(FOUND, pa.string())] if _tells_apart(plan) else []), *others])


def inserted(plan: Plan | OccurrencePlan, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a detector as insertions; those of late events as such."""
    kinds = rows.column("kind").to_pylist()
    return _changed(plan, rows, [LATE if kind == LATE else INSERTION for kind in kinds])


def retracted(plan: Plan | OccurrencePlan, rows: pa.RecordBatch, clock: int) -> pa.RecordBatch:
    """Rows of a detector as retractions, when time is at `clock` (microseconds)."""
    detected_at = pa.array([None if clock == FOREVER else clock] * len(rows), pa.int64()).cast(TIME_TYPE)
    at = rows.schema.names.index("detected_at")
    rows = rows.set_column(at, rows.schema.field(at), detected_at)
    return _changed(plan, rows, [RETRACTION] * len(rows))


def _changed(plan: Plan | OccurrencePlan, rows: pa.RecordBatch, kinds: Sequence[str]) -> pa.RecordBatch:
    found, *others = rows.columns
    if _tells_apart(plan):
        late = pa.array([kind == LATE for kind in kinds], pa.bool_())
        others = [pa.array(found.to_pylist(), pa.string(), mask=late.to_numpy(zero_copy_only=False)), *others]
    return pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), *others], schema=change_schema(plan))


def _tells_apart(plan: Plan | OccurrencePlan) -> bool:
    return "timeouts" in (plan.outputs or ())


class Matches:
    """Those of a plan, each as often as it is there."""

    def __init__(self, plan: Plan | OccurrencePlan, rows: pa.RecordBatch | None) -> None:
        # Another event may let the variables of an occurrence stand for others of the same events.
        self._by_content = isinstance(plan, OccurrencePlan) and plan.binds_anew
        self._count = Counter([] if rows is None else self._known_by(rows).to_pylist())

    def taken(self, rows: pa.RecordBatch, among: Flags) -> Flags:
        """Which of the rows that are `among` those looked at are here; they are then here no more."""
        flags = among.copy()
        if not self._count:
            return np.zeros_like(among)
        known_by = self._known_by(rows)
        for place in np.flatnonzero(among).tolist():
            match = known_by[place].as_py()
            flags[place] = self._count[match] > 0
            self._count[match] -= int(flags[place])
        return flags

    def _known_by(self, rows: pa.RecordBatch) -> pa.Array:
        """What tells each row from those that do not say the same."""
        return canonical_bytes(rows.columns, len(rows)) if self._by_content else rows.column("match_id")
