"""Destination lists: which standbys a control thread may ask for, and in which order.

There are three layouts: one list for each control thread; one for each control thread and original; and the latter in
an order that differs between originals, so that each of them meets other standbys first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

ANY = "*"
"""The key of a list that serves all originals."""


class Order(Enum):
    """In which order the lists of originals name the standbys."""

    CIRCULATED = "circulated"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Listed:
    """A standby in a destination list. `held_by` control threads have it in their lists."""

    id: str
    held_by: int = 1

    @property
    def share(self) -> bool:
        """The share flag: other control threads list it, too."""
        return self.held_by > 1


Lists: TypeAlias = Mapping[str, tuple[Listed, ...]]
"""The destination lists of one control thread: one for each original, or one under ANY."""


def listed(lists: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Lists]:
    """The destination lists from plain ids: for each control thread and each original, or ANY, the ids in order."""
    holding = {
        control: {standby for standbys in own.values() for standby in standbys} for control, own in lists.items()
    }
    everywhere = [standby for standbys in holding.values() for standby in standbys]
    held_by = Counter(everywhere)
    return {
        control: {
            original: tuple(Listed(standby, held_by[standby]) for standby in standbys)
            for original, standbys in own.items()
        }
        for control, own in lists.items()
    }


def start_of(original: int, *, standbys: int, originals: int) -> int:
    """Where the circulated list of an original begins, so that first standbys differ as far as they can."""
    if standbys >= originals:
        return original * (standbys // originals)
    return original * standbys // originals


def circulated(standbys: Sequence[str], originals: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """A list for each original that begins at another standby."""
    starts = {
        original: start_of(number, standbys=len(standbys), originals=len(originals))
        for number, original in enumerate(originals)
    }
    return {original: (*standbys[start:], *standbys[:start]) for original, start in starts.items()}
