"""Tiers on Spark: a shuffle for each tier (`cepheid.plan.tiers`), by the values that its events have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_schema

from cepheid.events.batch import SUB_KEY_PREFIX, TIME, VALUE_PREFIX
from cepheid.events.direction import SEQUENCE_PREFIX
from cepheid.hosts.spark.batch.tier_worker import TierTask, tier_output_schema
from cepheid.hosts.spark.batch.worker import Task
from cepheid.hosts.spark.engine import arrow_schema
from cepheid.hosts.spark.lift import Lift, compared, in_direction
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


def divided(rows: DataFrame, values: Sequence[str], order: Mapping[str, str]) -> DataFrame:
    """The rows in partitions by the columns of these names, sorted by them and then by `order`: SQL by the name that
    the column has in a batch. A row that lacks a value may be in any partition, as all rows may without values; but
    rows of equal order are in the same one.
    """
    is_known = " AND ".join(f"{value} IS NOT NULL" for value in values) or "FALSE"
    spread = [F.expr(f"CASE WHEN NOT ({is_known}) THEN {column} END") for column in order.values()]
    parts = counted_before_sort(rows.repartition(*values, *spread))
    return parts.sortWithinPartitions(*values, *(in_direction(F.expr(column), name) for name, column in order.items()))


def counted_before_sort(rows: DataFrame) -> DataFrame:
    """The same rows. If no row is left to sort, Spark's adaptive execution replaces the sort and everything before it
    by an empty relation, and the counts of events read would be lost. It does not replace an observation.
    """
    return rows.observe(Observation(), F.expr("count(1) AS shipped"))


def _divided_again(rows: DataFrame, tier: Tier, lift: Lift) -> DataFrame:
    """The rows of the tier before, with this tier's sub-keys as further columns."""

    def part(column: str, stage: int) -> str:
        """The column of the row's event or, in a partial match, of the event that this stage has taken."""
        return _of_event(f"{EVENT}.{lift[column]}", f"{TAKEN_PREFIX}{stage}.{lift[column]}")

    def value(side: Side, event: str) -> str:
        return compared(f"{event}.{lift[f'{VALUE_PREFIX}{side.column}']}", side)

    def of_link(link: Link) -> str:
        return _of_event(value(link.value, EVENT), value(link.earlier, f"{TAKEN_PREFIX}{link.stage}"))

    names = [f"{SUB_KEY_PREFIX}{number}" for number in range(len(tier.links))]
    links = (f"{of_link(link)} AS {name}" for name, link in zip(names, tier.links, strict=True))
    with_values = rows.selectExpr("*", *links)
    return divided(with_values, names, {name: part(name, tier.first - 1) for name in _order(lift)})


def _of_event(value: str, otherwise: str) -> str:
    """The value, if the row is an event and no partial match."""
    return f"CASE WHEN {EVENT} IS NOT NULL THEN {value} ELSE {otherwise} END"


def _order(lift: Lift) -> list[str]:
    return [TIME, *(name for name in lift.layout if name.startswith(SEQUENCE_PREFIX))]
