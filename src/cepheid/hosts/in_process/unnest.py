"""Rows of events from matches that are there already: their stage columns, unnested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError, did_you_mean
from cepheid.hosts.in_process.prepare import whole
from cepheid.hosts.in_process.tables import column_faults, without_views
from cepheid.plan.reserved import OF_EVENTS, POSITION, STAGE, STAGE_POSITION

_AFTER = "detected_at"
"""The column of matches after which those of stages come."""
_ADVICE = "Find matches without measures, or with rows_per='event', which gives a row for each event"


class _Events(NamedTuple):
    """The events of one stage of all matches."""

    match: npt.NDArray[np.int64]
    """(n,) the row of each event's match."""
    stages: pa.Array
    """(n,) the name of the stage."""
    order: npt.NDArray[np.int64]
    """(n,) by which the stages of a match are ordered."""
    place: npt.NDArray[np.int64]
    """(n,) the place among the events of the stage, from 1."""
    columns: pa.Table


def match_events_of(matches: pa.Table, time: str | None) -> pa.Table:
    """A row for each event of each match: the columns of the match, the event's stage and places, and its columns.

    Raises:
        SchemaError: these are no matches, or they have no events, or no such time.
    """
    matches = without_views(matches)
    stages = _stage_columns(matches)
    found = [one for order, name in enumerate(stages) for one in _events_of(matches, name, order)]
    events = pa.concat_tables([one.columns for one in found], promote_options="permissive")
    parts = zip(*((one.match, one.order, one.place) for one in found), strict=True)
    match, order, place = (np.concatenate(part) for part in parts)
    stage = pa.concat_arrays([one.stages for one in found])
    rows = np.lexsort((place, order, *_times(events, time), match))
    match = match[rows]
    begins = np.flatnonzero(np.diff(match, prepend=-1))
    position = np.arange(len(match)) - np.repeat(begins, np.diff(begins, append=len(match))) + 1
    of_matches = [name for name in matches.column_names if name not in stages and name != "event"]
    chosen, taken = matches.select(of_matches).take(match), events.take(rows)
    columns = {name: chosen.column(name) for name in of_matches}
    columns |= {STAGE: stage.take(pa.array(rows)), POSITION: pa.array(position), STAGE_POSITION: pa.array(place[rows])}
    columns |= {name: taken.column(name) for name in taken.column_names if name not in columns}
    return pa.table(columns)


def _stage_columns(matches: pa.Table) -> list[str]:
    """The columns with the events of stages."""
    names = matches.column_names
    if "match_id" not in names or _AFTER not in names:
        raise SchemaError(f"match_events takes what detect returns: there is no column match_id or no {_AFTER}")
    if STAGE in names:
        raise SchemaError("match_events: these rows are about one event each already")
    after = names[names.index(_AFTER) + 1 :]
    if faults := column_faults(matches.schema, after):
        raise SchemaError("\n".join([*faults, _ADVICE]))
    if "events" in after:
        raise SchemaError(f"match_events: matches of occurrences have no stages. {_ADVICE}")
    found = [name for name in after if name != "event" and _has_events(matches.schema.field(name).type)]
    if not found:
        raise SchemaError(f"match_events: these matches have no columns of stages. {_ADVICE}")
    taken = [name for name in OF_EVENTS if name in names]
    if taken:
        raise SchemaError(f"match_events: a column of the matches is named {taken[0]!r}, as in the result. Rename it")
    return found


def _has_events(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return _has_events(type_.item_type)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return bool(pa.types.is_struct(type_.value_type))
    return bool(pa.types.is_struct(type_))


def _is_of_entries(type_: pa.DataType) -> bool:
    """Whether the type has the entries of a map from stages to lists of events, as where there are no maps (polars)."""
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)) or type_.value_type.num_fields != 2:
        return False
    stage, events = (type_.value_type.field(i).type for i in range(2))
    return not pa.types.is_nested(stage) and pa.types.is_nested(events) and _has_events(events)


def _events_of(matches: pa.Table, name: str, order: int) -> Iterator[_Events]:
    """The events in a column: of one stage, or a map with those of all."""
    column = whole(matches.column(name))
    rows = np.arange(len(column))
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    if _is_of_entries(column.type):
        entry = pc.list_parent_indices(column).to_numpy()
        names, lists = pc.list_flatten(column).flatten()
        yield _of_lists(lists, entry, names, np.arange(len(names)))
    elif pa.types.is_struct(column.type):
        there = np.flatnonzero(column.is_valid())
        structs = column.take(pa.array(there))
        stages = pa.repeat(pa.scalar(name), len(there))
        yield _Events(there, stages, np.full(len(there), order), np.ones(len(there), np.int64), _columns(structs))
    else:
        yield _of_lists(column, rows, pa.repeat(pa.scalar(name), len(column)), np.full(len(column), order))


def _of_lists(lists: pa.Array, match: npt.NDArray[np.int64], names: pa.Array, order: npt.NDArray[np.int64]) -> _Events:
    """The events in lists, of which each has a match, a stage and an order."""
    parent = pc.list_parent_indices(lists).to_numpy()
    begins = np.flatnonzero(np.diff(parent, prepend=-1))
    place = np.arange(len(parent)) - np.repeat(begins, np.diff(begins, append=len(parent))) + 1
    return _Events(match[parent], names.take(pa.array(parent)), order[parent], place, _columns(pc.list_flatten(lists)))


def _columns(structs: pa.Array) -> pa.Table:
    return pa.table(dict(zip([field.name for field in structs.type], structs.flatten(), strict=True)))


def _times(events: pa.Table, time: str | None) -> list[npt.NDArray[np.int64]]:
    """The ranks of the events' times, if a column has them."""
    if time is None:
        return []
    if time not in events.column_names:
        raise SchemaError(f"time: no column named {time!r} in the events. {did_you_mean(time, events.column_names)}")
    ranks: npt.NDArray[np.int64] = pc.rank(whole(events.column(time)), tiebreaker="dense").to_numpy().astype(np.int64)
    return [ranks]
