"""Nanoseconds in columns that only the output has. All others have microseconds, as on Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.identity import is_in_nanoseconds
from cepheid.plan.plan_set import PlanSet
from cepheid.plan.used_columns import lifted_columns

P = TypeVar("P", bound=PlanSet[Any])


def with_nanoseconds(plans: P, events: pa.Table) -> P:
    """The plans, for rows in which a time that is no whole number of microseconds stays as it is. Times that a
    condition, a measure or the order needs are left in microseconds.
    """
    schema = plans.schema
    elsewhere = {*schema.key, *schema.times, *schema.sequence, *lifted_columns(plans)}
    fine = [name for name in plans.columns if name not in elsewhere and _is_fine(events.column(name))]
    if not fine or plans.functions:
        return plans
    columns = schema.columns
    for name in fine:
        place = columns.get_field_index(name)
        columns = columns.set(place, columns.field(place).with_type(events.schema.field(name).type))
    in_nanoseconds = replace(schema, columns=columns)
    return replace(plans, each=tuple(replace(plan, schema=in_nanoseconds) for plan in plans.each))


def has_nanoseconds(type_: pa.DataType) -> bool:
    """Whether values of the type, or in lists and structs of it, are times in nanoseconds."""
    if pa.types.is_nested(type_):
        return any(has_nanoseconds(type_.field(i).type) for i in range(type_.num_fields))
    return is_in_nanoseconds(type_)


def _is_fine(column: pa.ChunkedArray) -> bool:
    """Whether a time of the column is no whole number of microseconds."""
    if not is_in_nanoseconds(column.type):
        return False
    numbers = column.cast(pa.int64())
    whole = pc.multiply(pc.divide(numbers, 1000), 1000)
    return bool(pc.any(pc.not_equal(whole, numbers)).as_py())
