"""Converts the times of rows to the types of the events' own time columns, as the user gave them.

Matchers work with instants in microseconds. Hosts convert their rows at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import Schema
from cepheid.events.clock import instants_of, on_clock
from cepheid.events.time import TIME_TYPE, arrow_zone
from cepheid.output.events import unnested, unnested_schema
from cepheid.plan.plan_set import PatternPlan


def given_schema(plan: PatternPlan, rows: pa.Schema) -> pa.Schema:
    """The columns of a matcher's rows, with the times in the types of the events' time columns, and the events of a
    match in rows of their own if the output has them so.
    """
    types = _types(plan, rows.names)
    return pa.schema([field.with_type(_given_type(plan, field, types)) for field in unnested_schema(rows)])


def given_rows(plan: PatternPlan, rows: pa.Table, zone: str) -> pa.Table:
    """Converts rows of a matcher to those of `given_schema`. Times without a zone show the clock in `zone`."""
    schema, rows = given_schema(plan, rows.schema), unnested(rows)
    columns = [_converted(column, field.type, zone) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)


def repeated_hours(rows: pa.Table, zone: str) -> int:
    """The number of rows of `given_rows` whose detected_at the clock in the zone shows twice."""
    at = rows.column("detected_at")
    if at.type.tz is not None or not rows.num_rows:
        return 0
    first, second = (instants_of(at, arrow_zone(zone), ambiguous=which) for which in ("earliest", "latest"))
    return int(pc.sum(pc.not_equal(first, second)).as_py() or 0)


def _types(plan: PatternPlan, names: Sequence[str]) -> dict[str, pa.DataType]:
    """The types of the time columns, by the name of the output column."""
    schema = plan.schema
    if schema.time is None:
        return {}
    computed = _computed_type(schema)
    start, end = (schema.columns.field(name).type for name in (schema.time, schema.end or schema.time))
    types = {"match_start": start, "match_end": end, "detected_at": computed, "deadline": computed}
    types |= {name: computed for name, parts in plan.computed_times.items() if not parts}
    return {name: type_ for name, type_ in types.items() if name in names and name not in schema.key}


def _computed_type(schema: Schema) -> pa.DataType:
    """The type of computed times. Its unit is microseconds, because deadlines may fall on any microsecond."""
    given = schema.columns.field(schema.time).type
    return pa.timestamp("us", given.tz if pa.types.is_timestamp(given) else None)


def _given_type(plan: PatternPlan, field: pa.Field, types: dict[str, pa.DataType]) -> pa.DataType:
    if field.type == TIME_TYPE:
        return types.get(field.name, field.type)
    parts = plan.computed_times.get(field.name, ())
    if not parts:
        return field.type
    struct = field.type.value_type if pa.types.is_list(field.type) else field.type
    computed = _computed_type(plan.schema)
    made = pa.struct([part.with_type(computed) if part.name in parts else part for part in struct])
    return pa.list_(made) if pa.types.is_list(field.type) else made


def _converted(column: pa.ChunkedArray, type_: pa.DataType, zone: str) -> pa.ChunkedArray:
    if column.type == type_:
        return column
    return pa.chunked_array([_converted_array(chunk, type_, zone) for chunk in column.chunks], type_)


def _converted_array(array: pa.Array, type_: pa.DataType, zone: str) -> pa.Array:
    if array.type == type_:
        return array
    if pa.types.is_list(type_):
        whole = pa.concat_arrays([array])  # `from_arrays` takes no mask with a sliced array
        values = _converted_array(whole.values, type_.value_type, zone)
        return pa.ListArray.from_arrays(whole.offsets, values, type=type_, mask=whole.is_null())
    if pa.types.is_struct(type_):
        parts = [_converted_array(part, field.type, zone) for part, field in zip(array.flatten(), type_, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=[*type_], mask=array.is_null())
    assert array.type == TIME_TYPE, array.type
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return array.cast(type_)
    return on_clock(array, zone).cast(type_)
