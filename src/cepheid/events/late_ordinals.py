"""Late events that are equal are told apart: each has an ordinal, however the input is cut into calls."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.identity import digests

MOST = 1024
"""Late events among which equal ones are counted: a snapshot has 24 bytes of each that differs."""

_ORDINALS = 1 << 31
"""As many as there are: late events may be more."""


class LateOrdinals:
    """The ordinal of a late event is how many equal ones came before it. All would have to be kept for that, for ever:
    so they are counted anew behind every MOST late events, from the number of all that came by then, and no ordinal
    comes twice.
    """

    def __init__(self, before: int = 0) -> None:
        self._before = before
        """Late events that are not looked at any more."""
        self._seen = Counter[bytes]()
        """Those since then, by their digests."""

    @property
    def count(self) -> int:
        """How many late events there were."""
        return self._before + self._seen.total()

    def of(self, identities: pa.Array) -> npt.NDArray[np.int32]:
        """(n,) ordinals of the next late events, in the order in which they came."""
        ordinals = np.zeros(len(identities), np.int64)
        known = digests(identities, range(1, len(identities) + 1), b"late") if len(identities) else []
        left = MOST - self._seen.total()
        for row, identity in enumerate(known):
            if left <= 0:
                self._before, self._seen, left = self.count, Counter(), MOST
            ordinals[row] = self._before + self._seen[identity]
            self._seen[identity] += 1
            left -= 1
        return (ordinals % _ORDINALS).astype(np.int32)

    @property
    def listed(self) -> pa.RecordBatch:
        """What `restored` takes, for a snapshot."""
        return pa.record_batch(
            {"event": pa.array(self._seen, pa.binary()), "count": pa.array(self._seen.values(), pa.int64())}
        )

    @staticmethod
    def restored(count: int, listed: pa.RecordBatch | None) -> LateOrdinals:
        """Where so many were late; a snapshot of a former version does not say which.

        Raises:
            SnapshotError: it says that of more, or of less than one.
        """
        seen = LateOrdinals(count)
        if listed is not None:
            events, counts = (listed.column(name).to_pylist() for name in ("event", "count"))
            seen._seen = Counter(dict(zip(events, counts, strict=True)))
            seen._before -= seen._seen.total()
        if seen._before < 0 or min(seen._seen.values(), default=1) < 1:
            raise SnapshotError("the snapshot's late events are not those that it counts")
        return seen
