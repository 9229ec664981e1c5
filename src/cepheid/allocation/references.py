"""Signed counts of who still needs a copy.

A release may arrive before the request that it takes back: then the count is negative for a while. A count of zero is
left out, because nobody needs the copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def counted(counts: Mapping[Key, int], key: Key, by: int) -> dict[Key, int]:
    """The counts after `key` was requested `by` times, or released `-by` times."""
    count = counts.get(key, 0) + by
    others = {other: number for other, number in counts.items() if other != key}
    return {**others, key: count} if count else others
