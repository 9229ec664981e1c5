"""Computes the expressions of a sequence on Spark, as further columns of the events."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from cepheid.hosts.spark.engine import SparkEngine, arrow_schema, expression, quoted
from cepheid.plan.sequence import order_items


def with_sequence(events: DataFrame, sequence: Sequence[str]) -> DataFrame:
    """The events with a column for each expression of the sequence that they do not have yet.

    Raises:
        SchemaError: a text is no item of ORDER BY over the events' columns.
    """
    if all(text in events.columns for text in sequence):
        return events
    items = order_items(sequence, arrow_schema(events.schema), SparkEngine(events))
    computed = {item.column: item.computed.sql for item in items if item.computed is not None}
    if not computed:
        return events
    return events.selectExpr("*", *(f"{expression(sql)} AS {quoted(name)}" for name, sql in computed.items()))
