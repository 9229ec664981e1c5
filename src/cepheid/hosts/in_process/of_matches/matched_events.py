"""Reads the events in rows of matches: from a column per stage, or from one column with those of all stages."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.in_process.prepare import whole
from cepheid.hosts.in_process.tables import kind_of
from cepheid.plan.reserved import CAUSE, COMMON, KIND

_ALL_STAGES = "stages"
_ALL_EVENTS = "events"
_FIRST_OF_OCCURRENCES = ["type", "time"]


class MatchedEvents(NamedTuple):
    """The events in one column of matches."""

    match: npt.NDArray[np.int64]
    """(n,) the row of each event's match."""
    stage: pa.Array
    """(n,) the name of the stage."""
    order: npt.NDArray[np.int64]
    """(n,) by which the stages of a match are ordered."""
    place: npt.NDArray[np.int64]
    """(n,) the place among the events of the stage, from 1."""
    columns: pa.Table
    """(n,) the columns of the events."""


def event_columns(columns: pa.Schema, key: Container[str]) -> list[str]:
    """The columns of matches that have events. Those of the key have none, nor have measures that are not structs."""
    return [
        field.name
        for field in columns
        if field.name not in key
        and field.name not in (*COMMON, CAUSE)
        and (_has_all_stages(columns, field.name) or _has_events(field.type))
    ]


def with_plain_maps(matches: Any) -> object:
    """The matches; in pandas, the pairs of stage and events in `stages` become dicts, which Arrow can hold."""
    if kind_of(matches) != "pandas.DataFrame" or _ALL_STAGES not in matches.columns or KIND not in matches.columns:
        return matches
    return matches.assign(stages=matches[_ALL_STAGES].map(_as_dicts))


def _as_dicts(pairs: object) -> list[dict[str, Any]] | None:
    return [{"stage": stage, "events": [*events]} for stage, events in pairs] if isinstance(pairs, list) else None


def has_occurrences(columns: pa.Schema, names: list[str]) -> bool:
    """Whether these are rows of occurrences, given their columns with events.

    The structs in their list `events` begin with the type and the time. Those of a stage named `events` have the
    columns of the events, as the other stages have.
    """
    fields = {name: _field_names(columns.field(name).type) for name in names}
    own = fields.pop(_ALL_EVENTS, [])
    is_list = _ALL_EVENTS in names and _is_list(columns.field(_ALL_EVENTS).type)
    return is_list and own[:2] == _FIRST_OF_OCCURRENCES and own not in fields.values()


def events_in(matches: pa.Table, name: str, order: int) -> MatchedEvents:
    """The events in a column. `order` is that of its stage; in the column of all stages these have their own."""
    column = whole(matches.column(name))
    if _has_all_stages(matches.schema, name):
        return _of_all_stages(column)
    if not pa.types.is_struct(column.type):
        stages = pa.repeat(pa.scalar(name), len(column))
        return _of_lists(column, np.arange(len(column)), stages, np.full(len(column), order))
    there = np.flatnonzero(column.is_valid())
    stages, ones = pa.repeat(pa.scalar(name), len(there)), np.ones(len(there), np.int64)
    return MatchedEvents(there, stages, ones * order, ones, _columns(column.take(pa.array(there))))


def _of_all_stages(column: pa.Array) -> MatchedEvents:
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    match = pc.list_parent_indices(column).to_numpy()
    stages, lists = pc.list_flatten(column).flatten()
    return _of_lists(lists, match, stages, np.arange(len(stages)))


def _of_lists(
    lists: pa.Array, match: npt.NDArray[np.int64], stages: pa.Array, order: npt.NDArray[np.int64]
) -> MatchedEvents:
    """The events in lists. Each list has a match, a stage and an order."""
    parent = pc.list_parent_indices(lists).to_numpy()
    begins = np.flatnonzero(np.diff(parent, prepend=-1))
    place = np.arange(len(parent)) - np.repeat(begins, np.diff(begins, append=len(parent))) + 1
    events = _columns(pc.list_flatten(lists))
    return MatchedEvents(match[parent], stages.take(pa.array(parent)), order[parent], place, events)


def _columns(structs: pa.Array) -> pa.Table:
    return pa.table(structs.flatten(), names=[field.name for field in structs.type])


def _has_all_stages(columns: pa.Schema, name: str) -> bool:
    """Whether the column has the events of all stages: a map, or a list of its entries where there are no maps.

    The type alone does not say it: a stage that loops is a list of structs, which may have two columns.
    """
    if name != _ALL_STAGES or KIND not in columns.names:
        return False
    type_ = columns.field(name).type
    if pa.types.is_map(type_):
        return _has_events(type_.item_type)
    return _is_list(type_) and type_.value_type.num_fields == 2 and _has_events(type_.value_type.field(1).type)


def _has_events(type_: pa.DataType) -> bool:
    """Whether the values are events, or lists of events."""
    return bool(pa.types.is_struct(type_) or (_is_list(type_) and pa.types.is_struct(type_.value_type)))


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _field_names(type_: pa.DataType) -> list[str]:
    """The fields of a struct, or of the structs in a list."""
    inner = type_.value_type if _is_list(type_) else type_
    return [field.name for field in inner] if pa.types.is_struct(inner) else []
