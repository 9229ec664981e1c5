"""What is reported of the copies of a stream's keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class CopiesChange:
    """A key of a stream gets a copy, loses one, or should have one more."""

    query: str
    """The query's id."""
    batch: int
    """The micro-batch after which it was decided."""
    pattern: str
    key: str
    """The hash of the key, as in `Progress`."""
    copies: int
    """How many copies the key has from one of the next micro-batches on; as before, if only advice is given."""
    wanted: int
    """How many copies its load needs."""
    load: timedelta
    """The time that the key takes in all shards together, a micro-batch, smoothed."""
    decided: bool
    """False: only advice, as there is no budget."""

    def __str__(self) -> str:
        """The change, or the advice, for people, in one line."""
        copies = f"{self.copies} {'copy' if self.copies == 1 else 'copies'}"
        has = f"{copies} from now on" if self.decided else copies
        load = f"its load of {self.load.total_seconds():,.2f} s a micro-batch needs {self.wanted}"
        return f"key {self.key} of {self.pattern!r} after batch {self.batch}: {has}; {load}"
