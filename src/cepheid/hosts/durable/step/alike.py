"""What many deployed patterns have in common, so that a step does it once for all of them."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary


class Alike:
    """Stands for a value: comparing the columns of all patterns in each step would take as long as the work."""


_KNOWN: WeakValueDictionary[Hashable, Alike] = WeakValueDictionary()


def alike(value: Hashable) -> Alike:
    """The same object for equal values."""
    return _KNOWN.setdefault(value, Alike())
