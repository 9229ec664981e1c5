"""The hottest keys of a pattern, from a random sample of one percent of the events that go to its shards.

Each task samples the events that it packs, and reports the keys that it sampled most. Heavy hitters need no more: a key
with a tenth of 10,000 events is ten times among a hundred. Spark's own sketch would count every event a second time.

Keys are personal data. Reports name them by a hash, unless the user asks for the keys. The hash is the same in all
queries and restarts, so it is a pseudonym: whoever can guess a key can recognize it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.events.batch import python_values
from cepheid.events.identity import canonical_bytes

ONE_IN = 100
"""One of so many events is sampled, on average."""
_CLUSTER = 300_000
"""Of fewer events, at random, either none are sampled or as many as of so many: each sample costs a fifth of a
millisecond, however small it is, and packing a thousand events costs one.
"""
_CHANCE = np.random.default_rng()
LISTED = 32
"""The most keys that a sample lists."""
_LEAST = 3
"""If there are more keys than a sample lists, those that were sampled less often are not listed: they are noise."""
_CERTAIN = 8
"""A key counts as hot only if it was sampled so often: its share is then right to about a third."""


class HotKey(NamedTuple):
    """A key with many events."""

    key: str
    """A hash of it, or the values of its columns, if these were asked for."""
    shard: int
    share: float
    """Its part of the events that go to the pattern's shards."""


class Counted(NamedTuple):
    """How often a key was sampled."""

    shard: int
    times: int


@dataclass(frozen=True)
class KeySample:
    """The keys of sampled events."""

    events: int = 0
    """The number of events in the sample."""
    keys: Mapping[str, Counted] = field(default_factory=dict)
    """Those sampled most, at most LISTED of them."""
    complete: bool = True
    """Whether these are all keys in the sample."""

    @property
    def hottest(self) -> tuple[HotKey, ...]:
        """The keys that were sampled often enough to be sure of it, the hottest first."""
        certain = ((key, one) for key, one in self.keys.items() if one.times >= _CERTAIN)
        found = (HotKey(key, one.shard, one.times / self.events) for key, one in certain)
        return tuple(sorted(found, key=lambda one: (-one.share, one.key)))

    @property
    def number(self) -> int | None:
        """The number of keys. None: not known, as there are many, or some were sampled too rarely to see them all."""
        seen_often = self.keys and min(one.times for one in self.keys.values()) >= _CERTAIN
        return len(self.keys) if self.complete and seen_often else None


NO_KEYS = KeySample()


def merged(samples: Iterable[KeySample]) -> KeySample:
    """The samples of several tasks or micro-batches as one."""
    events, complete, keys = 0, True, dict[str, Counted]()
    for sample in samples:
        events, complete = events + sample.events, complete and sample.complete
        for key, (shard, times) in sample.keys.items():
            keys[key] = Counted(shard, times + (keys[key].times if key in keys else 0))
    most = sorted(keys, key=lambda key: keys[key].times, reverse=True)[:LISTED]
    return KeySample(events, {key: keys[key] for key in most}, complete and len(keys) <= LISTED)


class KeySampler:
    """Samples a pattern's events in the task that packs them."""

    def __init__(self, *, show: bool) -> None:
        """`show`: report the keys themselves, not their hashes."""
        self._show = show
        self._keys: list[Sequence[pa.Array]] = []
        self._shards: list[npt.NDArray[Any]] = []

    def add(self, keys: Sequence[pa.Array], shards: npt.NDArray[Any]) -> None:
        """Samples some of the events, given by their key columns and shards. Without key columns there is no key."""
        events = len(shards)
        some = min(events, max(events, _CLUSTER) // ONE_IN)
        if not keys or not events or _CHANCE.random() >= events / ONE_IN / some:
            return
        rows = _CHANCE.integers(0, events, some)
        self._keys.append([key.take(pa.array(rows)) for key in keys])
        self._shards.append(shards[rows])

    @property
    def sample(self) -> KeySample:
        """The sample of all events so far."""
        if not self._keys:
            return KeySample()
        shards = np.concatenate(self._shards)
        columns = [pa.concat_arrays(parts) for parts in zip(*self._keys, strict=True)]
        numbers = _numbers(columns)
        times, first = np.bincount(numbers), np.empty(numbers.max() + 1, np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        listed = np.argsort(-times, kind="stable")[:LISTED]
        complete = len(times) <= LISTED
        if not complete:
            listed = listed[times[listed] >= _LEAST]
        rows = first[listed]
        named = self._named([column.take(pa.array(rows)) for column in columns])
        counted = map(Counted, shards[rows].tolist(), times[listed].tolist())
        return KeySample(len(shards), dict(zip(named, counted, strict=True)), complete)

    def _named(self, columns: Sequence[pa.Array]) -> list[str]:
        """What the report calls the keys with these values."""
        if not self._show:
            return key_hashes(columns)
        return [", ".join(map(str, key)) for key in zip(*map(python_values, columns), strict=True)]


def _numbers(columns: Sequence[pa.Array]) -> npt.NDArray[Any]:
    """A number for each row, from 0; two are equal exactly if the rows are equal."""
    numbers, *others = map(_codes, columns)
    for codes in others:
        together = numbers.astype(np.int64) * (int(codes.max()) + 1) + codes
        numbers = _codes(pa.array(together))
    return numbers


def _codes(column: pa.Array) -> npt.NDArray[Any]:
    plain = not (pa.types.is_nested(column.type) or pa.types.is_floating(column.type))  # -0.0 is the key 0.0
    flat = column if plain else canonical_bytes([column], len(column))
    codes: npt.NDArray[Any] = flat.dictionary_encode().indices.to_numpy()
    return codes


def key_hashes(columns: Sequence[pa.Array]) -> list[str]:
    """The hash of each row's key. It depends on the key alone, not on the other rows, so that all tasks agree."""
    return [*map(key_hash, zip(*map(_each_value, columns), strict=True))]


def _each_value(column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # a time outside Python's range of years: that one alone is text
        return [python_values(column.slice(row, 1))[0] for row in range(len(column))]
    return values


def key_hash(key: tuple[object, ...]) -> str:
    """The hash of a key, from the values of its columns."""
    values = tuple(map(_without_negative_zero, key))
    return blake2b(repr(values).encode(), digest_size=8, person=b"cepheid hot key").hexdigest()


def _without_negative_zero(value: object) -> object:
    """The value, in which -0.0 is 0.0: as keys, they are equal."""
    match value:
        case float():
            return value + 0.0
        case dict():
            return {name: _without_negative_zero(one) for name, one in value.items()}
        case list():
            return [_without_negative_zero(one) for one in value]
    return value


def to_text(samples: Mapping[str, KeySample], nanoseconds: int) -> str:
    """What a task reports of packing: the sample of each pattern that has one, and the time."""
    each = {name: [one.events, one.complete, one.keys] for name, one in samples.items() if one.events}
    return json.dumps({"samples": each, "us": nanoseconds // 1000})


def from_texts(texts: Iterable[str]) -> tuple[dict[str, KeySample], int]:
    """The samples of each pattern from the reports of all tasks, and the microseconds of packing."""
    reports = [json.loads(text) for text in texts]
    each: dict[str, list[KeySample]] = {}
    for report in reports:
        for name, (events, complete, keys) in report["samples"].items():
            counted = {key: Counted(*one) for key, one in keys.items()}
            each.setdefault(name, []).append(KeySample(events, counted, complete))
    return {name: merged(samples) for name, samples in each.items()}, sum(report["us"] for report in reports)
