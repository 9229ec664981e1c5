"""The way of a batch's events through Spark's shuffle in blocks of many events.

Spark's own shuffle and sort handle row by row, and cost more than matching. Here a task packs its events into a block
for each target partition, Spark moves these few rows, and a worker sorts the events of its blocks by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from cepheid.hosts.spark.batch.blocks.form import PARTS_OF_BLOCKS, TARGET
from cepheid.hosts.spark.batch.blocks.pack import Packing
from cepheid.hosts.spark.batch.tiers import counted_before_sort
from cepheid.hosts.spark.lift import checked
from cepheid.hosts.spark.shipping import mapped
from cepheid.hosts.spark.stream.placement import Placement

WORK = "cepheid.hosts.spark.batch.blocks.find.find_in_blocks"
_PACK = "cepheid.hosts.spark.batch.blocks.pack.pack"

_ARROW_BYTES = 1 << 26
"""The bytes that Spark hands to Python at once, about, with as many rows as its setting says."""
_TARGETS = 200
"""The number of target partitions where a platform chooses that of partitions itself (`auto`): Spark's default."""
_LEAST_PART, _MOST_PART = 1 << 10, 1 << 18


def in_blocks(shipped: DataFrame, key: Sequence[str]) -> DataFrame:
    """The events in parts of blocks, those of each key in one partition, without order."""
    conf = shipped.sparkSession.conf
    partitions = str(conf.get("spark.sql.shuffle.partitions"))
    targets = int(partitions) if partitions.isdigit() else _TARGETS
    rows = int(str(conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")))
    part = min(_MOST_PART, max(_LEAST_PART, _ARROW_BYTES // rows)) if rows > 0 else _MOST_PART
    packing = Packing(tuple(Placement(targets).numbers(0).tolist()), part)
    with_target = shipped.selectExpr("*", f"pmod(hash({', '.join(key)}), {targets}) AS {TARGET}")
    type_ = from_arrow_schema(PARTS_OF_BLOCKS, prefer_timestamp_ntz=True)
    parts = checked(with_target.mapInArrow(mapped(_PACK, tuple(packing), type_), type_))
    return counted_before_sort(parts.repartition(TARGET))
