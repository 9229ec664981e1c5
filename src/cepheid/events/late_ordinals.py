"""Ordinals that distinguish equal late events; they do not depend on how the input is split into calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.identity import digests

MOST = 1024
"""The number of late events after which counting restarts. It bounds snapshots, which hold 24 bytes for each distinct
late event.
"""

_ORDINALS = 1 << 31
"""Ordinals wrap around at this number, because there may be more late events."""


class LateOrdinals:
    """Assigns ordinals to late events: the number of equal late events before.

    Exact counts would need every distinct late event for ever. So counting restarts after every MOST late events, at
    the number of all late events so far. Equal events still never get the same ordinal.
    """

    def __init__(self, before: int = 0) -> None:
        self.before = before
        """The number of late events before the last restart."""
        self.seen = Counter[bytes]()
        """The number of late events since then, by digest."""

    @property
    def count(self) -> int:
        """The number of late events so far."""
        return self.before + self.seen.total()

    def of(self, identities: pa.Array) -> npt.NDArray[np.int32]:
        """(n,) ordinals of the next late events, in order of arrival."""
        ordinals = np.zeros(len(identities), np.int64)
        known = digests(identities, range(1, len(identities) + 1), b"late") if len(identities) else []
        left = MOST - self.seen.total()
        for row, identity in enumerate(known):
            if left <= 0:
                self.before, self.seen, left = self.count, Counter(), MOST
            ordinals[row] = self.before + self.seen[identity]
            self.seen[identity] += 1
            left -= 1
        return (ordinals % _ORDINALS).astype(np.int32)

    @property
    def listed(self) -> pa.RecordBatch:
        """The counted events, for a snapshot; `restored` reads them."""
        return pa.record_batch(
            {"event": pa.array(self.seen, pa.binary()), "count": pa.array(self.seen.values(), pa.int64())}
        )

    @staticmethod
    def restored(count: int, listed: pa.RecordBatch | None) -> LateOrdinals:
        """The state after `count` late events; a snapshot of an earlier version has no `listed`.

        Raises:
            SnapshotError: `listed` counts more than `count` events, or an event less than once.
        """
        seen = LateOrdinals(count)
        if listed is not None:
            events, counts = (listed.column(name).to_pylist() for name in ("event", "count"))
            seen.seen = Counter(dict(zip(events, counts, strict=True)))
            seen.before -= seen.seen.total()
        if seen.before < 0 or min(seen.seen.values(), default=1) < 1:
            raise SnapshotError("the snapshot's late events do not agree with its count of them")
        return seen

    @staticmethod
    def joined(each: Sequence[LateOrdinals]) -> LateOrdinals:
        """The state that goes on where all of these have stopped. They may have begun as copies of others, but a late
        event has since come to at most one of them: the one that has counted it most often.
        """
        joined = LateOrdinals(max(one.before for one in each))
        for one in each:
            joined.seen |= one.seen
        return joined
