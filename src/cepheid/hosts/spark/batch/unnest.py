"""Rows of events from matches of Spark that are there already: workers unnest their stage columns, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StringType, StructField, StructType

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.of_matches.unnest import match_events_of
from cepheid.hosts.spark.engine import arrow_schema, is_carried, quoted, sql_name
from cepheid.hosts.spark.lift import checked
from cepheid.hosts.spark.shipping import mapped
from cepheid.plan.reserved import POSITION, STAGE, STAGE_POSITION
from cepheid.requests.request import ERROR

WORK = "cepheid.hosts.spark.batch.unnest_worker.unnested"
_PLACES: dict[str, DataType] = {STAGE: StringType(), POSITION: LongType(), STAGE_POSITION: LongType()}


def match_events_on_spark(matches: DataFrame, time: str | None, sequence: Sequence[str]) -> DataFrame:
    """A row for each event of each match. The DataFrame is lazy, and may be a stream.

    Raises:
        SchemaError: as `match_events_of`; or a column has a type that workers do not take.
    """
    nothing = match_events_of(arrow_schema(matches.schema).empty_table(), time, sequence)
    types = {**_event_types(matches.schema), **{field.name: field.dataType for field in matches.schema}, **_PLACES}
    if faults := [
        f"column {name!r} is of type {sql_name(types[name])}, which cannot be sent to a worker. Cast it"
        for name in nothing.column_names
        if not is_carried(types[name])
    ]:
        raise SchemaError("\n".join(faults))
    columns = [StructField(name, types[name]) for name in nothing.column_names]
    rows = StructType([StructField(ERROR, StringType()), *columns])
    found = checked(matches.mapInArrow(mapped(WORK, (time, tuple(sequence)), rows), rows))
    return found.selectExpr(*map(quoted, nothing.column_names))


def _event_types(matches: StructType) -> dict[str, DataType]:
    """The types of the columns of events."""
    types: dict[str, DataType] = {}
    for field in matches:
        inner = field.dataType
        if isinstance(inner, MapType):
            inner = inner.valueType
        if isinstance(inner, ArrayType):
            inner = inner.elementType
        if isinstance(inner, StructType):
            types |= {part.name: part.dataType for part in inner if part.name not in types}
    return types
