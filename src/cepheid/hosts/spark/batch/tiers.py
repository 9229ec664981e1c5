"""Tiers on Spark: a shuffle for each tier (`cepheid.plan.tiers`), by the values that its events have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_schema

from cepheid.events.batch import SUB_KEY_PREFIX, TIME, VALUE_PREFIX
from cepheid.events.direction import SEQUENCE_PREFIX
from cepheid.hosts.spark.batch.tier_worker import TierTask, tier_output_schema
from cepheid.hosts.spark.batch.worker import Task
from cepheid.hosts.spark.engine import arrow_schema
from cepheid.hosts.spark.lift import Lift, compared, in_direction, named
from cepheid.hosts.spark.shipping import mapped
from cepheid.matchers.shipped_events import EVENT, TAKEN_PREFIX, ShippedEvents
from cepheid.plan.tiers import Link, Side, Tier

WORK = "cepheid.hosts.spark.batch.tier_worker.find_in_tier"


def from_tiers(events: DataFrame, tiers: Sequence[Tier], lift: Lift, task: Task) -> DataFrame:
    """The workers' rows for a pattern in several tiers. The events have the first tier's sub-keys."""
    shipped = ShippedEvents(lift.layout, arrow_schema(events.schema))
    rows = events
    for number, tier in enumerate(tiers):
        if number == 0:
            by_value = divided(rows, lift.sub_keys, {name: lift[name] for name in _order(lift)})
        else:
            by_value = _divided_again(rows, tier, lift)
        tier_task = TierTask(*task, number, number == len(tiers) - 1, shipped.columns)
        type_ = from_arrow_schema(tier_output_schema(tier_task, shipped), prefer_timestamp_ntz=True)
        rows = by_value.mapInArrow(mapped(WORK, tuple(tier_task), type_), type_)
    return rows


def divided(rows: DataFrame, values: Sequence[Column], order: Mapping[str, Column]) -> DataFrame:
    """The rows in partitions by these values, sorted by them and in this order, whose columns are given by their names
    in a batch. A row that lacks a value may be in any partition, as all rows may without values; but rows of equal
    order are in the same one.
    """
    known = reduce(Column.__and__, [value.isNotNull() for value in values], F.lit(bool(values)))
    spread = [F.when(~known, column) for column in order.values()]
    parts = counted_before_sort(rows.repartition(*values, *spread))
    return parts.sortWithinPartitions(*values, *(in_direction(column, name) for name, column in order.items()))


def counted_before_sort(rows: DataFrame) -> DataFrame:
    """The same rows. If no row is left to sort, Spark's adaptive execution replaces the sort and everything before it
    by an empty relation, and the counts of events read would be lost. It does not replace an observation.
    """
    return rows.observe(Observation(), F.count(F.lit(1)).alias("shipped"))


def _divided_again(rows: DataFrame, tier: Tier, lift: Lift) -> DataFrame:
    """The rows of the tier before, with this tier's sub-keys as further columns."""
    is_event = named(EVENT).isNotNull()

    def part(column: str, stage: int) -> Column:
        """The column of the row's event or, in a partial match, of the event that this stage has taken."""
        shipped = lift.layout[column]
        return F.when(is_event, named(EVENT)[shipped]).otherwise(named(f"{TAKEN_PREFIX}{stage}")[shipped])

    def value(side: Side, event: Column) -> Column:
        return compared(event[lift.layout[f"{VALUE_PREFIX}{side.column}"]], side)

    def of_link(link: Link) -> Column:
        earlier = value(link.earlier, named(f"{TAKEN_PREFIX}{link.stage}"))
        return F.when(is_event, value(link.value, named(EVENT))).otherwise(earlier)

    names = [f"{SUB_KEY_PREFIX}{number}" for number in range(len(tier.links))]
    links = (of_link(link).alias(name) for name, link in zip(names, tier.links, strict=True))
    with_values = rows.select("*", *links)
    return divided(
        with_values, [named(name) for name in names], {name: part(name, tier.first - 1) for name in _order(lift)}
    )


def _order(lift: Lift) -> list[str]:
    return [TIME, *(name for name in lift.layout if name.startswith(SEQUENCE_PREFIX))]
