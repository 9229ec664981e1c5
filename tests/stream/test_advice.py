"""Advice on shards, partitions and cores, from the measured load."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cepheid import Advice
from cepheid.hosts.spark.stream.load.advice import Load, ShardLoad, advice_for
from cepheid.hosts.spark.stream.load.hot_keys import Counted, KeySample
from cepheid.hosts.spark.stream.load.measured import number_of_keys, shard_loads
from cepheid.hosts.spark.stream.load.shards import ShardProgress


def load(*useful: float, packing: float = 0, partitions: int = 1, rest: float = 0) -> Load:
    """What was measured in 1000 events: the seconds of each shard. At 1000 events a second, these are its share of the
    time.
    """
    return Load(1000, packing, [ShardLoad(seconds) for seconds in useful], partitions, rest)


def test_as_many_cores_as_useful_time_needs() -> None:
    """The cores are the useful time of a second's events, with a fifth of it as reserve; a partition for each."""
    assert advice_for(load(0.1, 0.1, 0.1, 0.1), 1000) == Advice(4, 1, 1, 0.4)
    assert advice_for(load(0.1, 0.1, 0.1, 0.1), 4000) == Advice(4, 2, 2, 1.6)
    assert advice_for(load(0.1, 0.1, 0.1, 0.1, packing=0.2, partitions=4), 4000) == Advice(4, 4, 3, 0.4)
    assert advice_for(load(0, 0), 4000) == Advice(2, 1, 1, 0)


def test_the_time_for_all_else() -> None:
    """The shards have only the time that reading, the sink and Spark leave."""
    assert advice_for(load(0.2, 0.2, 0.2, 0.2, rest=0.2), 1000) == Advice(4, 2, 2, 0.8)
    without = advice_for(load(0.2, 0.2, 0.2, 0.2, rest=0.9), 1000)
    assert (without.shards, without.partitions, without.cores) == (4, 1, 1)
    (limit,) = without.limits
    assert limit == (
        "reading, packing, the sink and Spark's own work take 90% of the time: let micro-batches have more events (a "
        "longer trigger), or fewer partitions"
    )


def test_more_partitions_where_shards_are_uneven() -> None:
    """Busy shards that share a partition are separated, if a divisor of the number of shards does so."""
    assert advice_for(load(0.5, 0, 0.5, 0), 1000) == Advice(4, 4, 2, 1)
    assert advice_for(load(0.5, 0.5, 0, 0), 1000) == Advice(4, 2, 2, 1)


def test_more_shards() -> None:
    """If one shard is too busy, there must be more shards, a power of two times as many, and so many partitions that
    the parts of this shard are not all in one.
    """
    assert advice_for(load(1, 0.1), 1000) == Advice(4, 4, 2, 1.1)
    assert advice_for(load(3, 0.1), 1000) == Advice(8, 8, 4, 3.1)
    assert advice_for(load(1, 1), 1000) == Advice(4, 4, 3, 2)
    assert str(advice_for(load(1, 0.1), 1000)) == "4 shards on 4 partitions and 2 cores are enough"
    assert str(advice_for(load(0.1), 1000)) == "1 shard on 1 partition and 1 core are enough"


def test_one_key_over_its_share() -> None:
    """More shards do not divide a key; they do separate it from the other keys of its shard."""
    shards = [ShardLoad(1.2, "a1", 0.9), ShardLoad(0.1)]
    found = advice_for(Load(1000, 0, shards, 2, 0), 1000)
    assert found.shards == 2
    (limit,) = found.limits
    assert limit == (
        "one key (a1) alone would keep its shard busy 90% of the time, and more shards do not divide a key: `cepheid "
        "explain` says whether the pattern lets it be divided"
    )
    assert str(found).startswith("2 shards on 2 partitions and 2 cores: more would not help; one key (a1) alone")
    separated = advice_for(Load(1000, 0, [ShardLoad(1.2, "a1", 0.6), ShardLoad(0.1)], 2, 0), 1000)
    assert (separated.shards, separated.limits) == (8, ())


def test_more_shards_than_keys() -> None:
    """More shards than keys stay empty, and without a key there is one shard."""
    measured = load(1, 0.1)
    few = advice_for(measured._replace(keys=2), 1000)
    assert few.shards == 2
    assert few.limits == ("there are only 2 keys for 2 shards: more shards would stay empty",)
    assert advice_for(measured._replace(keys=3), 1000).limits == ()
    without = advice_for(measured._replace(keyed=False), 1000)
    assert without.limits == (
        "without a key, one shard has all events, and it would be busy 100% of the time: name a key",
    )


def shard(events: int, seconds: float) -> ShardProgress:
    return ShardProgress(0, events, timedelta(seconds=seconds))


def test_the_load_of_shards() -> None:
    """Shards of the same number count together. Of its shard's time, a hot key has the same part as of the events."""
    one = [shard(60, 3), shard(40, 1)], KeySample(100, {"a": Counted(0, 45), "b": Counted(0, 15), "c": Counted(1, 10)})
    other = [shard(10, 0.5)], KeySample(20, {"a": Counted(0, 20)})
    first, second = shard_loads([one, other])
    assert first == ShardLoad(3.5, "a", pytest.approx(3 * 45 / 60 + 0.5))
    assert second == ShardLoad(1, "c", pytest.approx(0.25))
    assert shard_loads([([ShardProgress()], KeySample())]) == [ShardLoad(0)]


def test_the_number_of_keys() -> None:
    """The number of keys is known only if it is known for all patterns that have events."""
    known, unknown = KeySample(20, {"a": Counted(0, 10), "b": Counted(0, 10)}), KeySample(20, {}, complete=False)
    assert number_of_keys([known, KeySample()]) == 2
    assert number_of_keys([known, unknown]) is None
    assert number_of_keys([KeySample()]) is None
