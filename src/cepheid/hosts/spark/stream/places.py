"""The places of patterns in a streaming query: which shards they have, and what they are called in its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """The place of a pattern."""

    number: int
    """The pattern's number, by which its shards are found (`Placement`)."""
    label: str
    """What the query's figures call it."""
    version: str | None = None
    """The value of its rows in the column `version`. None: there is no such column."""
    drains: bool = False
    """Whether it starts nothing more, and goes on with what is open."""


class Places(NamedTuple):
    """The places of all patterns of a query, in the order of its request."""

    each: tuple[Place, ...]
    ended: tuple[int, ...] = ()
    """The numbers of patterns that have left a supervised query. What is stored for them is cleared."""
    supervised: bool = False
    """Whether patterns may come and go. Then the checkpoint does not belong to one set of patterns."""
    even: bool = True
    """Whether shards are numbered so that Spark spreads them evenly, as `Placement.even`."""

    together: bool = False
    """Whether all patterns have the same shards, as `Placement.together`."""

    @staticmethod
    def of(names: Sequence[str], *, even: bool = True, together: bool = False) -> Places:
        """The places in a query whose patterns stay the same. Several may be `together`."""
        each = tuple(Place(number, name) for number, name in enumerate(names))
        return Places(each, even=even, together=together and len(each) > 1)

    @property
    def labels(self) -> list[str]:
        return [place.label for place in self.each]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(place.number for place in self.each)

    @property
    def versions(self) -> dict[int, str]:
        """The version of each pattern that has one, by number."""
        return {place.number: place.version for place in self.each if place.version is not None}
