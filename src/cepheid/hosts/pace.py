"""How many events a matcher is given at once: so few that Ctrl-C ends a call soon, as compiled code cannot be ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic

from cepheid.events.batch import Batch

_AT_FIRST = 1 << 14
_LEAST = 64
_LONG, _SHORT = 1.0, 0.25
"""Seconds. Portions that take longer become smaller, and those that take less time larger."""


class Pace:
    """Divides events into portions that take about half a second each."""

    def __init__(self) -> None:
        self._size = _AT_FIRST

    def portions(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The begin and the end of each portion of the events from `start` to before `stop`. How long one takes is the
        time until the next one is asked for.
        """
        while start < stop:
            end = min(start + self._size, stop)
            began = monotonic()
            yield start, end
            took = monotonic() - began
            if took > _LONG:
                self._size = max(_LEAST, int((end - start) / (2 * took)))
            elif took < _SHORT and end - start == self._size:
                self._size *= 2
            start = end


def in_portions(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The events of the batches in portions."""
    pace = Pace()
    for batch in batches:
        for start, stop in pace.portions(0, len(batch)):
            yield batch.slice(start, stop)
