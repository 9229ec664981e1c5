"""Tokens for equal values, which are compared faster than the values."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary


class Alike:
    """A token for equal values. Tokens are compared by identity, as comparing the columns of all patterns in each step
    takes as long as the work.
    """


_KNOWN: WeakValueDictionary[Hashable, Alike] = WeakValueDictionary()


def alike(value: Hashable) -> Alike:
    """The token of the value: the same one for equal values."""
    return _KNOWN.setdefault(value, Alike())
