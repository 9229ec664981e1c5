"""What is reported of the copies of a stream's keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any


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
    """How many copies the key has from one of the next micro-batches on; as before, if nothing is decided."""
    wanted: int
    """How many copies its load needs."""
    load: timedelta
    """The time that the key takes in all shards together, a micro-batch, smoothed."""
    decided: bool
    """Whether the number of copies changes. It does not if the key is short of standbys (`is_short`), or if there is no
    budget, so that this is advice.
    """
    standbys: int
    """How many standbys the pattern has; a key has at most one copy in each."""

    @property
    def is_short(self) -> bool:
        """Whether the key needs one more copy and has one in each standby, so that none is free."""
        return not self.decided and self.wanted > self.copies >= self.standbys

    @property
    def document(self) -> dict[str, Any]:
        """The change in JSON values."""
        return {
            "query": self.query,
            "batch": self.batch,
            "pattern": self.pattern,
            "key": self.key,
            "copies": self.copies,
            "wanted": self.wanted,
            "load": self.load.total_seconds(),
            "decided": self.decided,
            "standbys": self.standbys,
        }

    @staticmethod
    def of(document: dict[str, Any]) -> CopiesChange:
        """The change whose `document` this is. Raises KeyError or TypeError for missing and unknown fields."""
        return CopiesChange(**document | {"load": timedelta(seconds=document["load"])})

    def __str__(self) -> str:
        """The change, or the advice, for people, in one line."""
        copies = f"{self.copies} {'copy' if self.copies == 1 else 'copies'}"
        has = f"{copies} from now on" if self.decided else copies
        load = f"its load of {self.load.total_seconds():,.2f} s a micro-batch needs {self.wanted}"
        said = f"key {self.key} of {self.pattern!r} after batch {self.batch}: {has}; {load}"
        return f"{said}, and no standby is free: {_MORE}" if self.is_short else said


_MORE = "give the query more standbys and a new checkpoint, in which their number is fixed, or a larger budget"
