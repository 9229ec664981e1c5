"""The numbers of shards: unique, small, and even for Spark, however many patterns share the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from cepheid.hosts.spark.stream.placement import Placement, murmur3, partitions_for, uneven

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = [*range(300), 65_535, 1 << 20, (1 << 31) - 1, -1, -(1 << 31)]


@pytest.mark.parametrize("shards", [1, 2, 12, 16, 64, 100])
def test_every_divisor_is_even(shards: int) -> None:
    """Each pattern has equally many shards in each partition, if the number of partitions divides that of its shards;
    all numbers differ, and a number says whose it is.
    """
    placement, seen = Placement(shards), dict[int, tuple[int, int]]()
    for pattern in range(9):
        numbers = placement.numbers(pattern)
        assert numbers.min() >= 0
        for partitions in (number for number in range(1, shards + 1) if shards % number == 0):
            each = np.bincount(murmur3(numbers) % partitions, minlength=partitions)
            assert each.tolist() == [shards // partitions] * partitions
        seen |= {number: (pattern, shard) for shard, number in enumerate(numbers.tolist())}
    assert len(seen) == 9 * shards
    assert {number: placement.shard_of(number) for number in seen} == seen


def test_the_numbers_stay_small() -> None:
    """The figures of the documentation; and the largest number of shards has numbers that fit."""
    assert [int(Placement(shards).numbers(0).max()) for shards in (16, 64)] == [49, 239]
    before = np.bincount(murmur3(Placement(16, even=False).numbers(0)) % 8, minlength=8)
    assert before.tolist() == [3, 2, 2, 4, 0, 1, 2, 2]
    assert int(Placement(65_536).numbers(0).max()) < 1 << 31


def test_numbers_of_earlier_versions() -> None:
    """Checkpoints without a placement have the numbers that earlier versions gave."""
    placement = Placement.of({"shards": 4})
    assert placement == Placement(4, even=False)
    assert placement.numbers(2).tolist() == [8, 9, 10, 11]
    assert [placement.shard_of(number) for number in (7, 8, 11, 12)] == [(1, 3), (2, 0), (2, 3), (3, 0)]
    assert [Placement.of(one.made_for) for one in (placement, Placement(4))] == [placement, Placement(4)]


@pytest.mark.spark
def test_spark_agrees(spark: SparkSession) -> None:
    """Spark hashes numbers as we do, and divides the shards evenly when it repartitions by their numbers."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

    given = spark.createDataFrame([(number,) for number in NUMBERS], "n INT")
    assert [row[0] for row in given.select(F.hash("n")).collect()] == murmur3(NUMBERS).tolist()
    numbers = [(number,) for pattern in range(3) for number in Placement(12).numbers(pattern).tolist()]
    divided = spark.createDataFrame(numbers, "n INT").repartition(6, "n")
    assert sorted(row[1] for row in divided.groupBy(F.spark_partition_id()).count().collect()) == [6] * 6


def test_advice() -> None:
    """A number of partitions that does not divide the shards is refused with the nearest that do."""
    assert uneven(16, 8) is None
    assert uneven(16, 12) == (
        "spark.sql.shuffle.partitions: 12 partitions cannot have equally many of 16 shards, and the busiest one "
        "decides how long a micro-batch takes. Set it to 8 or 16"
    )
    assert uneven(16, 200) == (
        "spark.sql.shuffle.partitions: 200 partitions are more than the 16 shards, so some have none, and each costs a "
        "commit in every micro-batch. Set it to 16 or a divisor of that"
    )


def test_partitions_for_cores() -> None:
    """The busiest core has as few shards as possible; of equal choices the one with fewer commits is taken."""
    assert [partitions_for(16, cores) for cores in (1, 2, 3, 6, 8, 12, 16, 100)] == [1, 2, 2, 4, 8, 8, 16, 16]
    assert [partitions_for(7, cores) for cores in (1, 2, 4, 7)] == [1, 1, 7, 7]
