"""Reads the rows that `detect` gives: the matches, and the events in them, whatever the form of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.of_matches.matched_events import event_columns, events_in, has_occurrences
from cepheid.output.common import INCONSISTENT, LATE, NO_MATCH, TIMEOUT
from cepheid.plan.reserved import COMMON, KIND, OF_EVENTS, PATTERN, POSITION, ROW_NUMBER, STAGE

MATCH_ID, MATCH_START, MATCH_END = "match_id", "match_start", "match_end"
_NO_MATCHES = (TIMEOUT, NO_MATCH, INCONSISTENT, LATE)
"""The kinds of rows that are about no match."""


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
        table = table.filter(pc.invert(pc.is_in(table.column(KIND), pa.array(_NO_MATCHES))))
    table = table.filter(pc.is_valid(table.column(MATCH_ID)))  # `unmatched` gives rows for events of no match
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
    nested = event_columns(table.schema, key)
    rows = table.select([name for name in table.schema.names if name not in {*nested, "event"} - {*key}])
    own_types = has_occurrences(table.schema, nested)
    columns = ["events"] if own_types else nested  # of occurrences these are all events; others are variables
    found = [events_in(table, name, order) for order, name in enumerate(columns)]
    found = [one for one in found if one.columns.num_rows]
    if not found:
        return Matches(rows, np.zeros(0, np.int64), [], pa.table({}))
    match, order, place = (
        np.concatenate(part) for part in zip(*((one.match, one.order, one.place) for one in found), strict=True)
    )
    by_match = np.lexsort([place, order, match])
    match = match[by_match]
    events = pa.concat_tables([one.columns for one in found], promote_options="permissive").take(pa.array(by_match))
    stage = (
        events.column("type") if own_types else pa.chunked_array([one.stage for one in found]).take(pa.array(by_match))
    )
    if len(time) == 1 and time[0] not in events.schema.names and "time" in events.schema.names:
        events = events.rename_columns([time[0] if name == "time" else name for name in events.schema.names])
    for name in key:
        if name not in events.schema.names:
            events = events.append_column(name, rows.column(name).take(pa.array(match)))
    return Matches(rows, match, [str(name) for name in stage.to_pylist()], events)
