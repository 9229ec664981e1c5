"""Why events did not match, on Spark: the workers count starts, and the driver adds their counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.detect import warn_of_ties
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.hosts.in_process.why import check_key, trace_in_process
from cepheid.hosts.spark.batch.detect import (
    in_order,
    prepared_on_spark,
    row_type,
    without_worker_messages,
)
from cepheid.hosts.spark.batch.why_worker import FUNNEL, FUNNELS
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema
from cepheid.hosts.spark.failures import event_failures
from cepheid.hosts.spark.lift import named, session_zone
from cepheid.hosts.spark.sequence import with_sequence
from cepheid.hosts.spark.shipping import mapped
from cepheid.output.funnel import Funnel, total
from cepheid.output.near_misses import NearMisses
from cepheid.output.trace import Trace
from cepheid.output.why import Why
from cepheid.plan.reserved import ROW_NUMBER
from cepheid.plan.sequence import order_items
from cepheid.requests.request import Request

WORK = "cepheid.hosts.spark.batch.why_worker.count_starts"

MOST_TRACED = 100_000
"""The most events of a key that are collected. The definition of matching takes some seconds for them."""

MOST_COLLECTED = 1_000_000
"""The most events that are collected for near misses. Finding them takes some seconds for so many."""


@dataclass(frozen=True)
class WhyOnSpark(Why):
    """Why events of Spark did not match."""

    _events: DataFrame = field(repr=False, compare=False)
    _request: Request = field(repr=False, compare=False)

    @cached_property
    def changes(self) -> NearMisses:
        """As in Why. The events are collected, and the changed patterns run in process.

        Raises:
            SchemaError: there are more than MOST_COLLECTED events; or as in Why.
            PatternError: a condition has a function that is available on Spark only.
            EventError, LimitExceeded: as in process.
        """
        some = self._events.limit(MOST_COLLECTED + 1)
        table = _ordered(some, self._request).toArrow()
        if table.num_rows > MOST_COLLECTED:
            raise SchemaError(
                f"near misses: there are more than {MOST_COLLECTED:,} events, which are not collected. Choose some of "
                "them, such as those of some keys: why(events.where(…), …)"
            )
        found = near_misses_in_process(table, self._in_zone)
        return replace(found, table=found.table.drop_columns([ROW_NUMBER]))

    @property
    def near_misses(self) -> DataFrame:
        """As in Why, without `row_number`, as events of Spark have no numbers. Raises as `changes`."""
        return self._events.sparkSession.createDataFrame(self.changes.table)

    @property
    def _in_zone(self) -> Request:
        """The request, with the zone of the session."""
        return replace(self._request, time_zone=self._request.time_zone or session_zone(self._events))

    def _trace(self, key: Mapping[str, Any]) -> Trace:
        """As in Why. The key's events are collected, and the definition of matching runs in process.

        Raises:
            SchemaError: as in Why; or more than MOST_TRACED events have the key.
            PatternError: a condition has a function that is available on Spark only.
        """
        check_key(self._request, key)
        chosen = reduce(lambda events, part: events.where(_has(events, *part)), key.items(), self._events)
        table = chosen.limit(MOST_TRACED + 1).toArrow()
        if key and not table.num_rows:
            raise SchemaError(f"trace: no event has the key {dict(key)!r}")
        if table.num_rows > MOST_TRACED:
            advice = "Choose some of them: why(events.where(…), …)"
            raise SchemaError(
                f"trace: more than {MOST_TRACED:,} events have the key, which are not collected. {advice}"
            )
        return trace_in_process(table, self._in_zone)


def why_on_spark(events: DataFrame, request: Request) -> WhyOnSpark:
    """What became of the events that started a partial match. Unlike `detect_on_spark` it runs at once.

    Raises:
        PatternError, SchemaError: as `detect_on_spark`.
        EventError: what an action on the result of `detect_on_spark` raises.
    """
    read, counts = Observation(), Observation()
    ready = prepared_on_spark(events, request, read)
    rows = row_type(FUNNELS)
    by_key = in_order(ready.shipped(), ready.plans.schema, ready.lift)
    found = without_worker_messages(by_key.mapInArrow(mapped(WORK, tuple(ready.task()), rows), rows), counts)
    with event_failures():
        parts = found.select(named(FUNNEL)).toArrow().column(FUNNEL).to_pylist()
    warn_of_ties(counts.get["ties"], request)
    nothing = request.family.empty_funnel(request.only.pattern, read.get)
    return WhyOnSpark(total([nothing, *(Funnel.from_dict(json.loads(part)) for part in parts)]), events, request)


def _ordered(events: DataFrame, request: Request) -> DataFrame:
    """The events in the order of key, time and sequence, so that equally near misses have the same order each time."""
    first = [named(name) for name in (*request.key, *([] if request.time is None else [request.time]))]
    ties = [
        named(item.column).desc() if item.direction.descending else named(item.column)
        for item in order_items(request.sequence, arrow_schema(events.schema), SparkEngine(events))
    ]
    return with_sequence(events, request.sequence).orderBy(*first, *ties).select(*map(named, events.columns))


def _has(events: DataFrame, name: str, value: Any) -> Column:
    """Whether the column has the value. Values of other types equal nothing."""
    return named(name) == F.lit(value).try_cast(events.schema[name].dataType)
