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
    """Converts a detector's rows to rows that say what happens to a match: insertions, retractions and late events."""

    def __init__(self, rows: pa.Schema, outputs: Sequence[OutputName]) -> None:
        """`rows` is the schema of the detector's rows, with outputs."""
        self._has_found = "timeouts" in outputs
        kind, *others = rows
        found = [pa.field(FOUND, pa.string())] * self._has_found
        self.schema = pa.schema([kind, *found, *others])
        """The columns; `kind` says what happened to the match."""

    def inserted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a detector as insertions; late events stay late events."""
        kinds = rows.column("kind").to_pylist()
        return self._changed(rows, [LATE if kind == LATE else INSERTION for kind in kinds])

    def retracted(self, rows: pa.RecordBatch, clock: int) -> pa.RecordBatch:
        """The rows of a detector as retractions at the time `clock` (microseconds)."""
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
    """Counts the rows of a detector: equal rows may occur several times."""

    def __init__(self, rows: pa.RecordBatch | None, *, by_content: bool) -> None:
        """Rows are counted by match_id. If `by_content`, by all columns, because rows of one match_id may differ."""
        self._by_content = by_content
        self._count = Counter([] if rows is None else self._identities(rows).to_pylist())

    def taken(self, rows: pa.RecordBatch, among: Flags) -> Flags:
        """Flags of the rows, among those flagged in `among`, that are counted here. Each of them is removed once."""
        flags = among.copy()
        if not self._count:
            return np.zeros_like(among)
        identities = self._identities(rows)
        for place in np.flatnonzero(among).tolist():
            match = identities[place].as_py()
            flags[place] = self._count[match] > 0
            self._count[match] -= int(flags[place])
        return flags

    def _identities(self, rows: pa.RecordBatch) -> pa.Array:
        """A value for each row that is equal exactly for rows that count as equal."""
        return canonical_bytes(rows.columns, len(rows)) if self._by_content else rows.column("match_id")
