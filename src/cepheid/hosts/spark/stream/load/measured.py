"""What advice needs, from the progress of a query's patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import zip_longest
from operator import itemgetter

from cepheid.hosts.spark.stream.load.advice import ShardLoad
from cepheid.hosts.spark.stream.load.hot_keys import KeySample
from cepheid.hosts.spark.stream.load.shards import ShardProgress

_SECOND = timedelta(seconds=1)


def shard_loads(patterns: Iterable[tuple[Sequence[ShardProgress], KeySample]]) -> list[ShardLoad]:
    """The load of each shard, by its number. The shards of all patterns with this number count together: they are in
    the same partition, and have the same keys.
    """
    each = [_loads(shards, keys) for shards, keys in patterns]
    return [_together(loads) for loads in zip_longest(*each, fillvalue=ShardLoad(0))]


def number_of_keys(samples: Iterable[KeySample]) -> int | None:
    """The number of keys of patterns that read the same events; None if it is not known for one of them."""
    numbers = [sample.number for sample in samples if sample.events]
    return max((number for number in numbers if number is not None), default=None) if None not in numbers else None


def _loads(shards: Sequence[ShardProgress], keys: KeySample) -> list[ShardLoad]:
    events, hot = sum(shard.events for shard in shards), dict[int, tuple[str, float]]()
    for key in keys.hottest:
        hot.setdefault(key.shard, (key.key, key.share * events))
    return [_load(shard, *hot.get(number, (None, 0.0))) for number, shard in enumerate(shards)]


def _load(shard: ShardProgress, key: str | None, events: float) -> ShardLoad:
    """The load of a shard, of whose events so many have the key. They are taken to cost as much as the others."""
    useful = shard.useful / _SECOND
    return ShardLoad(useful, key, useful * min(1.0, events / shard.events) if shard.events else 0.0)


def _together(loads: Sequence[ShardLoad]) -> ShardLoad:
    of_keys: dict[str | None, float] = {}
    for one in loads:
        of_keys[one.hot_key] = of_keys.get(one.hot_key, 0.0) + one.of_hot_key
    key, seconds = max(of_keys.items(), key=itemgetter(1))
    return ShardLoad(sum(one.useful for one in loads), key, seconds)
