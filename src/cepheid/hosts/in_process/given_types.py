"""Converts output columns back to the types of the event columns that their values come from.

Events are processed in the types that Spark has, so that all hosts find the same matches. The output has the types of
the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.events.batch import NUMBER
from cepheid.lang.expression import Name
from cepheid.plan.conditions.script import StageValue
from cepheid.plan.lifted import Measure
from cepheid.plan.plan_set import PatternPlan, PlanSet
from cepheid.plan.reserved import ROW_NUMBER

Sources: TypeAlias = Mapping[str, str]
"""Output column → the event column that its values come from."""


def sources(plans: PlanSet[Any]) -> dict[str, str]:
    """The sources of the key, of the times of the first and the last event, of measures that are just a column and, for
    rows of events, of their columns and numbers.
    """
    schema = plans.schema
    source_of = {name: name for name in schema.key}
    if schema.time is not None:
        source_of |= {"match_start": schema.time, "match_end": schema.end or schema.time}
    if plans.each[0].rows_per == "event":
        source_of |= {name: name for name in plans.columns} | {ROW_NUMBER: NUMBER}
    measures: dict[str, set[str | None]] = {}
    for plan in plans.each:
        for name in plan.computed_times:
            source_of.pop(name, None)
        for measure in plan.measures or ():
            measures.setdefault(measure.name, set()).add(_column_of(plan, measure))
    # A measure that several patterns have is one column of the output. It has a source if all agree on it.
    source_of |= {
        name: column
        for name, columns in measures.items()
        for column in columns
        if column is not None and len(columns) == 1
    }
    return source_of


def _column_of(plan: PatternPlan, measure: Measure) -> str | None:
    """The event column, if the measure is just a column of one event."""
    if not isinstance(measure.expression, Name):
        return None
    slot = plan.slots.get(measure.expression.parts[0])
    if not isinstance(slot, StageValue):
        return None
    value = plan.values[slot.column].expression
    if not isinstance(value, Name) or len(value.parts) > 1:
        return None
    same = [name for name in plan.schema.columns.names if name.lower() == value.parts[0].lower()]
    return same[0] if len(same) == 1 else None


def in_types_of(events: pa.Schema, rows: pa.Table, columns: Sources) -> pa.Table:
    """The rows, with these columns in the types of the event columns, as far as Arrow can convert them. A column's
    chunks share one dictionary, because joins and files need that.
    """
    for name, source in columns.items():
        at, event = rows.schema.get_field_index(name), events.get_field_index(source)
        if at < 0 or event < 0:
            continue
        if rows.schema.field(at).type == events.field(event).type:
            rows = rows.set_column(at, rows.schema.field(at), _with_one_dictionary(rows.column(at)))
            continue
        type_ = events.field(event).type
        if pa.types.is_dictionary(type_) and pa.types.is_string_view(type_.value_type):  # as of polars
            type_ = pa.dictionary(type_.index_type, pa.string(), type_.ordered)  # Arrow cannot decode one of views
        with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):
            converted = _with_one_dictionary(rows.column(at).cast(type_))
            rows = rows.set_column(at, rows.schema.field(at).with_type(type_), converted)
    return rows


def _with_one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    with suppress(pa.ArrowNotImplementedError):
        return column.unify_dictionaries()
    return column
