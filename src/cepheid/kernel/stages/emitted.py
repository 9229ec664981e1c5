"""What a kernel of patterns of stages emits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Flags, Int32s


@dataclass(frozen=True)
class Emitted:
    """Matches, and what has ended without a match, as flat arrays, in the order of emission."""

    end: Ints
    """(matches,) match i has the events from end[i - 1] (0 for the first match) to before end[i]."""
    detected_at: Ints
    """(matches,) microseconds, NO_TIME where only the end of the input made the match certain."""
    outcome: Int32s
    """(matches,) MATCHED; TIMED_OUT: a partial match that ran out of time at detected_at; NEGATED and more."""
    event: Int32s
    """(events,) position in the working set."""
    stage: Int32s
    """(events,) the stage that took it."""

    def count(self, outcome: int) -> int:
        return int(np.count_nonzero(self.outcome == outcome))

    def part(self, start: int, stop: int) -> Emitted:
        """The matches from `start` to before `stop`, without a copy of their events."""
        first = int(self.end[start - 1]) if start else 0
        ends = self.end[start:stop]
        last = int(ends[-1]) if len(ends) else first
        return Emitted(
            end=ends - first,
            detected_at=self.detected_at[start:stop],
            outcome=self.outcome[start:stop],
            event=self.event[first:last],
            stage=self.stage[first:last],
        )

    def only(self, chosen: Flags) -> tuple[Emitted, Flags]:
        """The chosen matches, and flags of the events that are theirs."""
        lengths = np.diff(self.end, prepend=0)
        taken = np.repeat(chosen, lengths)
        part = Emitted(
            end=np.cumsum(lengths[chosen]),
            detected_at=self.detected_at[chosen],
            outcome=self.outcome[chosen],
            event=self.event[taken],
            stage=self.stage[taken],
        )
        return part, taken


_NO_INTS, _NO_INT32S = np.zeros(0, np.int64), np.zeros(0, np.int32)
NOTHING = Emitted(_NO_INTS, _NO_INTS, _NO_INT32S, _NO_INT32S, _NO_INT32S)
