"""Rows of events from matches that are there already: their stage columns, unnested."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.of_matches.matched_events import event_columns, events_in, has_occurrences
from cepheid.hosts.in_process.of_matches.order_in_match import Numbers, Placed, order_in_matches
from cepheid.hosts.in_process.tables import column_faults, without_views
from cepheid.plan.problems import taken_name
from cepheid.plan.reserved import CAUSE, COMMON, OF_EVENTS, OF_MATCHES, POSITION, STAGE, STAGE_POSITION

_AFTER = "detected_at"
"""The column of matches after which those of stages come."""
_ADVICE = "Find matches without measures, or with rows_per='event', which gives a row for each event"


def match_events_of(matches: pa.Table, time: str | None, sequence: Sequence[str]) -> pa.Table:
    """A row for each event of each match: the columns of the match, the event's stage and places, and its columns.

    Raises:
        SchemaError: these are no matches, or they have no events, or no such time or sequence, or columns of the events
            have the names of others in the result.
    """
    matches = without_views(matches)
    key = _key_of(matches)
    matches, stages = _stage_columns(matches, key)
    if not stages:
        return _nothing(matches)
    found = [events_in(matches, name, order) for order, name in enumerate(stages)]
    events = pa.concat_tables([one.columns for one in found], promote_options="permissive")
    parts = zip(*((one.match, one.order, one.place) for one in found), strict=True)
    match, order, place = (np.concatenate(part) for part in parts)
    stage = pa.concat_arrays([one.stage for one in found])
    rows = order_in_matches(Placed(match, order, place, stage, events), time, sequence)
    match = match[rows]
    begins = np.flatnonzero(np.diff(match, prepend=-1))
    position = np.arange(len(match)) - np.repeat(begins, np.diff(begins, append=len(match))) + 1
    of_matches = [name for name in matches.column_names if name not in stages and name != "event"]
    _check_names(events.column_names, key, {*of_matches, *OF_EVENTS} - {*key})
    chosen, taken = matches.select(of_matches).take(match), events.take(rows)
    columns = {name: chosen.column(name) for name in of_matches}
    columns |= _places(stage.take(pa.array(rows)), position, place[rows])
    columns |= {name: taken.column(name) for name in taken.column_names if name not in columns}
    return pa.table(columns)


def _places(stage: pa.Array, position: Numbers, place: Numbers) -> dict[str, pa.Array]:
    return {STAGE: stage, POSITION: pa.array(position), STAGE_POSITION: pa.array(place)}


def _nothing(matches: pa.Table) -> pa.Table:
    """The result for a table without rows, whose columns of stages have no types."""
    none = np.zeros(0, np.int64)
    for name, column in _places(pa.array([], pa.string()), none, none).items():
        matches = matches.append_column(name, column)
    return matches


def _key_of(matches: pa.Table) -> list[str]:
    """The columns of the key, which stand between the match's id and its times."""
    names = matches.column_names
    if "match_id" not in names or _AFTER not in names:
        raise SchemaError(f"match_events takes what detect returns: there is no column match_id or no {_AFTER}")
    return list(takewhile(lambda name: name not in OF_MATCHES, names[names.index("match_id") + 1 :]))


def _stage_columns(matches: pa.Table, key: list[str]) -> tuple[pa.Table, list[str]]:
    """The matches without columns that would have events and have none, as their type then is not known in pandas; and
    the columns with the events of stages.
    """
    names = matches.column_names
    if STAGE in names:
        raise SchemaError("match_events: these rows are about one event each already")
    if faults := column_faults(matches.schema, names[names.index(_AFTER) + 1 :]):
        raise SchemaError("\n".join([*faults, _ADVICE]))
    found = event_columns(matches.schema, key)
    if has_occurrences(matches.schema, found):
        raise SchemaError(f"match_events: matches of occurrences have no stages. {_ADVICE}")
    without_type = [
        field.name
        for field in matches.schema
        if pa.types.is_null(field.type) and field.name not in (*key, *COMMON, CAUSE)
    ]
    if not found and (matches.num_rows or not without_type):
        raise SchemaError(f"match_events: these matches have no columns of stages. {_ADVICE}")
    taken = [name for name in OF_EVENTS if name in names]
    if taken:
        raise SchemaError(f"match_events: a column of the matches is named {taken[0]!r}, as in the result. Rename it")
    return matches.drop_columns(without_type), found


def _check_names(events: list[str], key: list[str], taken: set[str]) -> None:
    """Checks that no column of the events but those of the key has the name of another column in the result."""
    faults = [taken_name(name, is_key=False) for name in events if name not in key and name.lower() in taken]
    if faults:
        raise SchemaError("\n".join(faults))
