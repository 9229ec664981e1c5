"""What a timeline shows: which rows it has, and what is drawn at which place in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.events.batch import python_values
from cepheid.plotting.clock import Clock, Floats, Ints
from cepheid.plotting.labels import labels_of
from cepheid.plotting.matches import MATCH_END, MATCH_START, Matches
from cepheid.plotting.request import PlotRequest, is_time

MOST_PANELS = 12
MOST_LANES = 30
IN_NO_MATCH = "in no match"


class Marks(NamedTuple):
    """Events that are drawn, one entry each."""

    table: pa.Table
    """(events,) their columns."""
    x: Floats
    end: Floats | None
    """Where intervals end."""
    y: Floats | None
    row: Ints
    """The number of the panel or lane; -1: it is not shown."""
    match: Ints
    """The number of the match; -1 for none."""

    def at(self, chosen: npt.NDArray[np.bool_] | Ints) -> Marks:
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        end, y = (None if part is None else part[places] for part in (self.end, self.y))
        return Marks(self.table.take(pa.array(places)), self.x[places], end, y, self.row[places], self.match[places])


class Windows(NamedTuple):
    """From the first to the last event of each match."""

    begin: Floats
    end: Floats
    row: Ints
    """The panel or lane; -1: all of them."""
    match: Ints


@dataclass(frozen=True)
class Scene:
    """A timeline. Panels have a line through the events; lanes have dots and bars."""

    clock: Clock
    rows: list[str]
    are_panels: bool
    events: Marks
    taken: Marks
    stage: list[str]
    """(taken,) the stage of each event of a match."""
    stages: list[str]
    windows: Windows
    matches: Matches | None
    count: int
    """The number of matches."""
    notes: tuple[str, ...] = ()


def scene_of(asked: PlotRequest, clock: Clock, events: pa.Table, matches: Matches | None) -> Scene:
    """The timeline of the events, and of the matches if there are any.

    Raises:
        SchemaError: the events of the matches lack columns that the picture needs.
    """
    if matches is not None:
        check_taken(asked, matches)
    keys, of_event, of_match = _keys(asked, clock, events, matches)
    shown, notes = _shown(asked, keys, of_event, of_match)
    if len(shown) < len(keys):
        number = {key: place for place, key in enumerate(shown)}
        chosen = np.array([number.get(place, -1) for place in range(len(keys))], np.int64)
        kept = chosen[of_event] >= 0
        events, of_event, of_match = events.filter(pa.array(kept)), chosen[of_event[kept]], chosen[of_match]
        keys = [keys[place] for place in shown]
    base = _marks(asked, clock, events, of_event)
    taken, stage = _taken(asked, clock, matches, of_match)
    scene = Scene(
        clock,
        keys,
        bool(asked.y),
        base,
        taken,
        stage,
        [name for name in (matches.stages if matches is not None else ()) if name in set(stage)],
        _windows(clock, matches, taken, of_match),
        matches,
        int((of_match >= 0).sum()),
        notes,
    )
    return _in_panels(asked, scene) if asked.y else _in_lanes(asked, scene)


def check_taken(asked: PlotRequest, matches: Matches) -> None:
    """Checks that the events of the matches can be drawn.

    Raises:
        SchemaError: they lack columns.
    """
    if not matches.events.num_rows:
        return
    if missing := [name for name in asked.used if name not in matches.events.schema.names]:
        listed = ", ".join(map(repr, missing))
        raise SchemaError(
            f"matches: their events have no column {listed}, which the picture needs: let "
            f"detect(…, columns=[…]) include it, or leave columns out"
        )


def _keys(asked: PlotRequest, clock: Clock, events: pa.Table, matches: Matches | None) -> tuple[list[str], Ints, Ints]:
    """All keys, and the number of the key of each event and of each match."""
    if matches is None:
        (of_event,), keys = labels_of([events], asked.key, clock)
        return keys, of_event, np.zeros(0, np.int64)
    (of_event, of_match), keys = labels_of([events, matches.rows], asked.key, clock)
    return keys, of_event, of_match


def _shown(
    asked: PlotRequest, keys: Sequence[str], of_event: Ints, of_match: Ints
) -> tuple[list[int], tuple[str, ...]]:
    """The numbers of the keys that are shown, and what to say about others: the keys with the most matches, then those
    with the most events.
    """
    panels = max(len(asked.y), 1)
    most = MOST_PANELS // panels if asked.y else MOST_LANES
    if len(keys) <= most or asked.lanes is not None:
        return [*range(len(keys))], ()
    counts = [np.bincount(numbers, minlength=len(keys)) for numbers in (of_event, of_match)]
    order = np.lexsort([np.arange(len(keys)), -counts[0], -counts[1]])[:most]
    what = "matches" if len(of_match) else "events"
    note = f"{most} of {len(keys):,} keys, those with the most {what}; choose others with only={{…}}"
    return sorted(order.tolist()), (note,)


def _marks(asked: PlotRequest, clock: Clock, table: pa.Table, row: Ints) -> Marks:
    x = clock.places(table.column(asked.time[0]))
    end = clock.places(table.column(asked.time[1])) if asked.are_intervals else None
    return Marks(table, x, end, None, row, np.full(len(row), -1, np.int64))


def _taken(asked: PlotRequest, clock: Clock, matches: Matches | None, of_match: Ints) -> tuple[Marks, list[str]]:
    if matches is None or not matches.events.num_rows:
        empty = np.zeros(0)
        none = np.zeros(0, np.int64)
        return Marks(pa.table({}), empty, empty if asked.are_intervals else None, None, none, none), []
    row = of_match[matches.match]
    marks = _marks(asked, clock, matches.events, row)._replace(match=matches.match)
    order = np.lexsort([marks.x, marks.match])
    order = order[row[order] >= 0]
    patterns = matches.rows.column("pattern").to_pylist() if len(matches.patterns) > 1 else None
    stage = [
        matches.stage[place] if patterns is None else f"{patterns[match]}: {matches.stage[place]}"
        for place, match in zip(order.tolist(), marks.match[order].tolist(), strict=True)
    ]
    return marks.at(order), stage


def _windows(clock: Clock, matches: Matches | None, taken: Marks, row: Ints) -> Windows:
    """From the times of the matches, or from their events if the axis is not one of times."""
    if matches is None:
        return Windows(np.zeros(0), np.zeros(0), row, row)
    count = matches.rows.num_rows
    begin: Floats = np.full(count, np.nan)
    end: Floats = np.full(count, np.nan)
    np.fmin.at(begin, taken.match, taken.x)
    np.fmax.at(end, taken.match, taken.x if taken.end is None else taken.end)
    named = {*matches.rows.schema.names}
    if clock.is_time and {MATCH_START, MATCH_END} <= named and is_time(matches.rows.schema.field(MATCH_START).type):
        begin, end = (
            np.where(np.isnan(places), clock.places(matches.rows.column(name)), places)
            for name, places in ((MATCH_START, begin), (MATCH_END, end))
        )
    known = np.flatnonzero(np.isfinite(begin) & np.isfinite(end) & (row >= 0))
    return Windows(begin[known], end[known], row[known], known)


# Panels: a line for each key and each column


def _in_panels(asked: PlotRequest, scene: Scene) -> Scene:
    panels = [(place, name) for place in range(len(scene.rows)) for name in asked.y]
    if len(asked.y) > 1:
        titles = [" · ".join(filter(None, (scene.rows[place], name))) for place, name in panels]
    else:
        titles = [scene.rows[place] for place, _ in panels]
    return replace(
        scene,
        rows=titles,
        events=_for_each(asked.y, scene.events),
        taken=_for_each(asked.y, scene.taken),
        stage=scene.stage * len(asked.y),
        windows=_windows_for_each(asked.y, scene.windows),
    )


def _for_each(names: Sequence[str], marks: Marks) -> Marks:
    """The marks once for each column: in the panels of their key, at its values."""
    if not len(marks.x):
        return marks._replace(y=marks.x)
    count, length = len(names), len(marks.x)
    values = [marks.table.column(name).cast(pa.float64()).to_numpy() for name in names]
    row = np.concatenate([marks.row * count + place for place in range(count)])
    repeated = marks.at(np.tile(np.arange(length), count))
    return repeated._replace(y=np.concatenate(values).astype(np.float64), row=row)


def _windows_for_each(names: Sequence[str], windows: Windows) -> Windows:
    count = len(names)
    row = np.concatenate([windows.row * count + place for place in range(count)])
    return Windows(np.tile(windows.begin, count), np.tile(windows.end, count), row, np.tile(windows.match, count))


# Lanes


def _in_lanes(asked: PlotRequest, scene: Scene) -> Scene:
    free = scene.events.at(~in_a_match(asked, scene))
    scene = replace(scene, events=free)
    if asked.lanes is not None:
        return _lanes_of_column(asked, scene)
    if len(scene.rows) > 1 or scene.matches is None or not scene.stages:
        return scene
    number = {stage: place for place, stage in enumerate(scene.stages)}
    last = len(scene.stages)
    return replace(
        scene,
        rows=[*scene.stages, *([IN_NO_MATCH] if len(free.x) else [])],
        events=free._replace(row=np.full(len(free.x), last, np.int64)),
        taken=scene.taken._replace(row=np.array([number[stage] for stage in scene.stage], np.int64)),
        windows=_everywhere(scene.windows),
    )


def _lanes_of_column(asked: PlotRequest, scene: Scene) -> Scene:
    """A lane for each value, those of the earliest events first."""
    assert asked.lanes is not None
    both = (scene.taken, scene.events)
    tables = [marks.table.select([asked.lanes]) for marks in both if len(marks.x)]
    (found, words) = labels_of(tables, [asked.lanes], scene.clock)
    of_rows = [found.pop(0) if len(marks.x) else marks.row for marks in both]
    first: Floats = np.full(len(words), np.inf)
    for marks, codes in zip(both, of_rows, strict=True):
        np.fmin.at(first, codes, marks.x)
    lanes = sorted(range(len(words)), key=lambda lane: (first[lane], words[lane]))
    notes = scene.notes
    if len(lanes) > MOST_LANES:
        in_matches = set(of_rows[0].tolist())
        notes = (*notes, f"{MOST_LANES} of {len(lanes):,} values of {asked.lanes}, those in matches first")
        chosen = {*sorted(lanes, key=lambda lane: lane not in in_matches)[:MOST_LANES]}
        lanes = [lane for lane in lanes if lane in chosen]
    number = np.full(len(words), -1, np.int64)
    number[lanes] = np.arange(len(lanes))
    taken, events = (marks._replace(row=number[codes]) for marks, codes in zip(both, of_rows, strict=True))
    rows = [words[lane] for lane in lanes]
    return replace(scene, rows=rows, taken=taken, events=events, windows=_everywhere(scene.windows), notes=notes)


def _everywhere(windows: Windows) -> Windows:
    """Behind all lanes. The window of a single match would shade everything, and says nothing."""
    if len(windows.row) == 1:
        return Windows(windows.begin[:0], windows.end[:0], windows.row[:0], windows.match[:0])
    return windows._replace(row=np.full(len(windows.row), -1, np.int64))


def in_a_match(asked: PlotRequest, scene: Scene) -> npt.NDArray[np.bool_]:
    """(events,) whether an event is one of a match: it has the time of one, and the same simple columns."""
    same: npt.NDArray[np.bool_] = np.isin(scene.events.x, scene.taken.x)
    if not same.any():
        return same
    taken, events = scene.taken.table, scene.events.table
    shared = [
        name
        for name in events.schema.names
        if name in taken.schema.names
        and name not in asked.time
        and not (pa.types.is_nested(taken.schema.field(name).type) or is_time(taken.schema.field(name).type))
    ]
    known = set(_contents(taken, shared, scene.taken.x))
    places = np.flatnonzero(same)
    few = events.take(pa.array(places))
    same[places] = [content in known for content in _contents(few, shared, scene.events.x[places])]
    return same


def _contents(table: pa.Table, names: Sequence[str], x: Floats) -> Iterable[tuple[object, ...]]:
    columns = [[str(value) for value in python_values(table.column(name))] for name in names]
    return zip(x.tolist(), *columns, strict=True)
