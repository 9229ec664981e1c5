"""What a matcher emits and retracts, as rows: insertions and retractions of matches and timeouts, and late events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.events.identity import canonical_bytes
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import FOREVER, Flags
from cepheid.output.common import INSERTION, LATE, RETRACTION
from cepheid.plan.lifted import OutputName

FOUND = "found"
"""The column that distinguishes matches from timeouts, if timeouts are requested."""


class Changes:
    """A detector's rows, converted to rows that say what happens to a match."""

    def __init__(self, rows: pa.Schema, outputs: Sequence[OutputName]) -> None:
        """`rows` are the columns of the detector's rows, with outputs."""
        self._has_found = "timeouts" in outputs
        kind, *others = rows
        found = [pa.field(FOUND, pa.string())] * self._has_found
        self.schema = pa.schema([kind, *found, *others])
        """The columns; `kind` says what happened to the match."""

    def inserted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a detector as insertions; rows of late events stay late."""
        kinds = rows.column("kind").to_pylist()
        return self._changed(rows, [LATE if kind == LATE else INSERTION for kind in kinds])

    def retracted(self, rows: pa.RecordBatch, clock: int) -> pa.RecordBatch:
        """Rows of a detector as retractions, at the time `clock` (microseconds)."""
        detected_at = pa.array([None if clock == FOREVER else clock] * len(rows), pa.int64()).cast(TIME_TYPE)
        at = rows.schema.names.index("detected_at")
        rows = rows.set_column(at, rows.schema.field(at), detected_at)
        return self._changed(rows, [RETRACTION] * len(rows))

    def _changed(self, rows: pa.RecordBatch, kinds: Sequence[str]) -> pa.RecordBatch:
        found, *others = rows.columns
        if self._has_found:
            late = pa.array([kind == LATE for kind in kinds], pa.bool_())
            others = [pa.array(found.to_pylist(), pa.string(), mask=late.to_numpy(zero_copy_only=False)), *others]
        return pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), *others], schema=self.schema)


class Matches:
    """Rows of a detector, counted: equal rows may occur several times."""

    def __init__(self, rows: pa.RecordBatch | None, *, by_content: bool) -> None:
        """`by_content`: rows of one match_id may differ."""
        self._by_content = by_content
        self._count = Counter([] if rows is None else self._known_by(rows).to_pylist())

    def taken(self, rows: pa.RecordBatch, among: Flags) -> Flags:
        """Which of the rows flagged in `among` are here; each of these is removed once."""
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
        """A value for each row that is equal only for rows with the same content."""
        return canonical_bytes(rows.columns, len(rows)) if self._by_content else rows.column("match_id")
