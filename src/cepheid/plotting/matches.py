"""Reads the rows that `detect` gives: the matches, and the events in them, whatever the form of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.plan.reserved import CAUSE, COMMON, KIND, OF_EVENTS, PATTERN, POSITION, ROW_NUMBER, STAGE

MATCH_ID, MATCH_START, MATCH_END = "match_id", "match_start", "match_end"
_NO_STAGES = (*COMMON, CAUSE)


@dataclass(frozen=True)
class Matches:
    """Matches and their events."""

    rows: pa.Table
    """One row per match: its columns without those of its events."""
    match: npt.NDArray[np.int64]
    """(events,) the row of the match that each event belongs to, ascending."""
    stage: list[str]
    """(events,) the stage, variable or type that each event has in its match."""
    events: pa.Table
    """(events,) the columns of the events; those of the match are not among them."""

    @property
    def stages(self) -> list[str]:
        """The stages that have events, in the order in which they come in matches."""
        places: dict[str, list[int]] = {}
        counts = np.zeros(self.rows.num_rows, np.int64)
        for match, stage in zip(self.match.tolist(), self.stage, strict=True):
            places.setdefault(stage, []).append(int(counts[match]))
            counts[match] += 1
        return sorted(places, key=lambda stage: (min(places[stage]), np.mean(places[stage])))

    @property
    def patterns(self) -> list[str]:
        """The names of the patterns, where the rows have them."""
        return sorted(pc.unique(self.rows.column(PATTERN)).to_pylist()) if PATTERN in self.rows.schema.names else []


def matches_of(table: pa.Table, key: Sequence[str], time: Sequence[str]) -> Matches:
    """The matches and their events.

    Raises:
        SchemaError: these are no rows that `detect` gives.
    """
    faults = [f"matches: they have no column {name!r}" for name in (MATCH_ID, *key) if name not in table.schema.names]
    if faults:
        raise SchemaError("\n".join([*faults, "matches are what detect(…) gives, with the key of the picture"]))
    if _has_kinds(table):
        table = table.filter(pc.not_equal(table.column(KIND), "late"))  # about no match
    return (
        _from_rows_of_events(table, key) if {STAGE, POSITION} <= {*table.schema.names} else _from_rows(table, key, time)
    )


def _has_kinds(table: pa.Table) -> bool:
    return KIND in table.schema.names and pa.types.is_string(table.schema.field(KIND).type)


def _from_rows_of_events(table: pa.Table, key: Sequence[str]) -> Matches:
    ids = pc.dictionary_encode(pc.cast(table.column(MATCH_ID), pa.string())).combine_chunks()
    codes = np.asarray(ids.indices, np.int64) if len(ids) else np.zeros(0, np.int64)
    order = np.lexsort([np.asarray(table.column(POSITION), np.float64), codes])
    table, codes = table.take(pa.array(order)), codes[order]
    firsts = np.flatnonzero(np.diff(codes, prepend=-1))
    about = [name for name in (*COMMON, *key) if name in table.schema.names]
    own = {*COMMON, *OF_EVENTS, ROW_NUMBER} - {*key}
    events = table.select([name for name in table.schema.names if name not in own])
    return Matches(table.select(list(dict.fromkeys(about))).take(pa.array(firsts)), codes, _names(table), events)


def _names(table: pa.Table) -> list[str]:
    return ["event" if name is None else str(name) for name in table.column(STAGE).to_pylist()]


def _from_rows(table: pa.Table, key: Sequence[str], time: Sequence[str]) -> Matches:
    nested = [
        field.name
        for field in table.schema
        if field.name not in key and field.name not in _NO_STAGES and _has_events(field.type)
    ]
    rows = table.select([name for name in table.schema.names if name not in {*nested, "event"} - {*key}])
    parts = [part for part in _parts(table, nested) if part.events.num_rows]
    if not parts:
        return Matches(rows, np.zeros(0, np.int64), [], pa.table({}))
    match = np.concatenate([part.match for part in parts])
    order = np.argsort(match, kind="stable")
    events = pa.concat_tables([part.events for part in parts], promote_options="permissive").take(pa.array(order))
    if len(time) == 1 and time[0] not in events.schema.names and "time" in events.schema.names:
        events = events.rename_columns([time[0] if name == "time" else name for name in events.schema.names])
    stages = [stage for part in parts for stage in part.stages]
    for name in key:
        if name not in events.schema.names:
            events = events.append_column(name, rows.column(name).take(pa.array(match[order])))
    return Matches(rows, match[order], [stages[place] for place in order], events)


def _has_events(type_: pa.DataType) -> bool:
    """Whether the values are events, or lists or maps of events; other nested columns are measures."""
    if pa.types.is_struct(type_):
        return True
    if pa.types.is_map(type_):
        return _has_events(type_.item_type)
    return (pa.types.is_list(type_) or pa.types.is_large_list(type_)) and bool(pa.types.is_struct(type_.value_type))


@dataclass(frozen=True)
class _Part:
    """The events of one column."""

    match: npt.NDArray[np.int64]
    stages: list[str]
    events: pa.Table


def _parts(table: pa.Table, names: Sequence[str]) -> Iterator[_Part]:
    """The events of the columns, or of the column `events` of occurrences, which has all of them."""
    for name in ["events"] if _has_all_events(table.schema, names) else names:
        column = table.column(name).combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_map(column.type) or _is_pairs(column.type):
            yield from _of_map(column)
        elif pa.types.is_struct(column.type):
            taken = np.flatnonzero(np.asarray(pc.is_valid(column)))
            yield _part(taken, name, column.take(pa.array(taken)))
        else:
            yield _part(_parents(column), name, column.flatten())


def _has_all_events(columns: pa.Schema, names: Sequence[str]) -> bool:
    """Whether these are rows of occurrences. Unlike a stage of the name `events`, the list of all events has other
    parts than the columns beside it, as the type and the time come first.
    """
    parts = {name: _field_names(columns.field(name).type) for name in names}
    return "events" in parts and all(parts["events"] != other for name, other in parts.items() if name != "events")


def _field_names(type_: pa.DataType) -> list[str]:
    """The fields of a struct, or of the structs in a list."""
    inner = type_ if pa.types.is_struct(type_) or pa.types.is_map(type_) else type_.value_type
    return [field.name for field in inner] if pa.types.is_struct(inner) else []


def _is_pairs(type_: pa.DataType) -> bool:
    """Whether the type is that of a map as a list of pairs, as polars and pandas have it."""
    if not pa.types.is_list(type_) and not pa.types.is_large_list(type_):
        return False
    inner = type_.value_type
    return bool(
        pa.types.is_struct(inner)
        and inner.num_fields == 2
        and pa.types.is_string(inner.field(0).type)
        and pa.types.is_nested(inner.field(1).type)
    )


def _of_map(column: pa.Array) -> Iterator[_Part]:
    if pa.types.is_map(column.type):
        pairs = pa.StructArray.from_arrays([column.keys, column.items], names=["stage", "events"])
        column = pa.ListArray.from_arrays(column.offsets, pairs, mask=column.is_null())
    pairs = column.flatten()
    parents, names, lists = _parents(column), pairs.field(0), pairs.field(1)
    for name in pc.unique(names).to_pylist():
        own = np.flatnonzero(np.asarray(pc.equal(names, name)))
        chosen = lists.take(pa.array(own))
        if pa.types.is_struct(chosen.type.value_type):
            yield _part(parents[own][_parents(chosen)], name, chosen.flatten())


def _parents(lists: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.asarray(pc.list_parent_indices(lists), np.int64)
    return found


def _part(match: npt.NDArray[np.int64], name: str, structs: pa.StructArray) -> _Part:
    events = pa.Table.from_arrays(structs.flatten(), names=[field.name for field in structs.type])
    own_types = name == "events" and "type" in events.schema.names
    stages = [str(type_) for type_ in events.column("type").to_pylist()] if own_types else [name] * len(match)
    return _Part(match, stages, events)
