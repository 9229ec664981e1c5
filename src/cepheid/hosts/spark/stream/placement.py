"""The numbers of a stream's shards, chosen so that Spark spreads the shards evenly over its partitions.

Spark puts a shard into the partition that the hash of its number leaves, modulo the number of partitions. With the
numbers 0, 1, 2, …, which earlier versions used, 16 shards fall on 8 partitions as 3, 2, 2, 4, 0, 1, 2 and 2. So shard s
gets a number whose hash leaves s modulo the number of shards: each divisor of that is then a number of partitions that
all have equally many shards. The numbers stay small: up to 49 for 16 shards, and up to 239 for 64.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]

PLACEMENT = "placement"
"""The key of `made_for` that says how shards are numbered; absent in checkpoints of earlier versions."""
EVEN = "even"
TOGETHER = "placement.together"
"""The key of `made_for` that says that all patterns have the same shards; absent if each has its own."""
STANDBYS = "standbys"
"""The key of `made_for` that says how many standbys there are; absent without any."""
NUMBERED_OTHERWISE = (
    "its shards may be numbered otherwise, as by earlier versions of Cepheid: name the checkpoint, so that the query "
    "goes on with these numbers, as in detect(…, checkpoint='…')"
)
_SEED = 42
"""The seed with which Spark hashes when it divides rows."""


class Placement(NamedTuple):
    """How the shards of a query are numbered. Each of its patterns has as many, or all have the same ones."""

    shards: int
    even: bool = True
    """False: shard s of pattern p has the number p * shards + s, as in checkpoints of earlier versions."""

    standbys: int = 0
    """The number of each pattern's standbys, which may hold copies of hot keys. They are numbered after its shards."""
    patterns: int = 0
    """The number of patterns, if there are standbys."""
    together: bool = False
    """Whether all patterns have the same shards: those of pattern 0."""

    @staticmethod
    def of(made_for: Mapping[str, Any]) -> Placement:
        """The placement of the query that wrote this into its checkpoint."""
        standbys = made_for.get(STANDBYS, {"each": 0, "patterns": 0})
        even, together = made_for.get(PLACEMENT) == EVEN, made_for.get(TOGETHER, False)
        return Placement(made_for["shards"], even, standbys["each"], standbys["patterns"], together)

    @property
    def made_for(self) -> dict[str, object]:
        """What `of` reads."""
        standbys = {STANDBYS: {"each": self.standbys, "patterns": self.patterns}} if self.standbys else {}
        placed = {PLACEMENT: EVEN} if self.even else {}
        return {"shards": self.shards, **placed, **standbys, **({TOGETHER: True} if self.together else {})}

    def numbers(self, pattern: int) -> Numbers:
        """(shards + standbys,) the numbers of the pattern's shards, then of its standbys. Shard s of pattern p has the
        least number whose hash leaves s, apart from those that the patterns before p have. Standbys have the numbers of
        some shards of a further pattern, in partitions as far from each other as possible.
        """
        own = _numbers(self._plain, 0 if self.together else pattern)
        if not self.standbys:
            return own
        return np.concatenate([own, _numbers(self._plain, self.patterns + pattern)[self._like]])

    def shard_of(self, number: int) -> tuple[int, int]:
        """The pattern whose shard has this number, the first of several, and which of its shards and standbys it is."""
        pattern, own = self._plain_shard_of(number)
        if not self.standbys or pattern < self.patterns:
            return pattern, own
        return pattern - self.patterns, self.shards + int(np.searchsorted(self._like, own))

    @property
    def _plain(self) -> Placement:
        return Placement(self.shards, self.even)

    @property
    def _like(self) -> Numbers:
        """(standbys,) for each standby, the shard in whose partition it is."""
        return np.arange(self.standbys) * self.shards // self.standbys

    def _plain_shard_of(self, number: int) -> tuple[int, int]:
        if not self.even:
            return divmod(number, self.shards)
        known = _by_hash(self.shards, _room_for(number))
        return int(known.rank[number]), int(known.left[number])


class _ByHash(NamedTuple):
    """The first whole numbers by what their hashes leave."""

    left: Numbers
    """What the hash of each number leaves: its shard."""
    order: Numbers
    """The numbers, sorted by what their hashes leave, then by size."""
    starts: Numbers
    """(shards + 1,) the places in `order` at which the numbers of each shard start."""
    rank: Numbers
    """For each number, how many smaller ones leave the same."""


@lru_cache(maxsize=256)
def _numbers(placement: Placement, pattern: int) -> Numbers:
    shards, even, *_ = placement
    if not even:
        return np.arange(pattern * shards, (pattern + 1) * shards)
    size = _room_for(4 * (pattern + 1) * shards)
    while np.diff((found := _by_hash(shards, size)).starts).min() <= pattern:
        size *= 2
    return found.order[found.starts[:-1] + pattern]


@lru_cache(maxsize=8)
def _by_hash(shards: int, size: int) -> _ByHash:
    left = murmur3(np.arange(size)) % shards
    order = np.argsort(left, kind="stable")
    starts = np.searchsorted(left[order], np.arange(shards + 1))
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(size) - starts[left[order]]
    return _ByHash(left, order, starts, rank)


def _room_for(number: int) -> int:
    """A power of two above the number: few different tables are made."""
    return 1 << max(8, number.bit_length())


def murmur3(numbers: npt.ArrayLike) -> Numbers:
    """Spark's `hash` of these numbers, as INT."""
    block = np.asarray(numbers, np.int64).astype(np.uint32)
    mixed = _rotated(block * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    found = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    found ^= np.uint32(4)  # the length in bytes
    found = (found ^ found >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    found = (found ^ found >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    found ^= found >> np.uint32(16)
    return found.view(np.int32).astype(np.int64)


def _rotated(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return words << np.uint32(bits) | words >> np.uint32(32 - bits)


def partitions_for(shards: int, cores: int) -> int:
    """The number of partitions for so many shards on so many cores: a divisor of the shards with which the busiest core
    has the fewest. Of several the least, as each partition costs a commit in every micro-batch.
    """
    divisors = [number for number in range(1, min(shards, 2 * cores) + 1) if shards % number == 0]
    return min(divisors, key=lambda partitions: (-(-partitions // cores) * (shards // partitions), partitions))


def uneven(shards: int, partitions: int) -> str | None:
    """What to change if so many partitions cannot have equally many shards; None if they can."""
    if shards % partitions == 0:
        return None
    if partitions > shards:
        return (
            f"spark.sql.shuffle.partitions: {partitions} partitions are more than the {shards} shards, so some have "
            f"none, and each costs a commit in every micro-batch. Set it to {shards} or a divisor of that"
        )
    near = [number for number in range(1, shards + 1) if shards % number == 0]
    below, above = max(n for n in near if n < partitions), min(n for n in near if n > partitions)
    return (
        f"spark.sql.shuffle.partitions: {partitions} partitions cannot have equally many of {shards} shards, and the "
        f"busiest one decides how long a micro-batch takes. Set it to {below} or {above}"
    )
