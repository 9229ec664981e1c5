"""What a running host asks of a source of events."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import pyarrow as pa

from cepheid.hosts.durable.state import Position


class Feed(NamedTuple):
    """Some events of a source."""

    events: pa.Table
    position: Position
    """Where to read on after them."""
    place: str
    """Where they come from, as messages say it."""
    malformed: int = 0
    """Records that were left out, as they could not be read as events."""


class Source(Protocol):
    """A source that gives the same events when it is read again from the same position."""

    def after(self, position: Position | None) -> Feed | None:
        """The next events after the position, from the beginning for None; None if there are none now.

        Raises:
            EventError: records cannot be read as events, and are not to be left out.
            SourceError: the source cannot be read, or does not have this position any more.
        """

    def lag(self, position: Position | None) -> float | None:
        """How many seconds the position is behind the source; 0 if there are no events after it now, None if it is not
        known.
        """

    def close(self) -> None: ...
