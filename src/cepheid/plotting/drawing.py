"""From tables to a picture: a timeline of events, or an overview of matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.plotting.clock import Clock, are_mixed, clock_of
from cepheid.plotting.matches import MATCH_END, MATCH_ID, MATCH_START, Matches, matches_of
from cepheid.plotting.overview import overview
from cepheid.plotting.picture import Picture
from cepheid.plotting.request import PlotRequest, check
from cepheid.plotting.tables import table_of
from cepheid.plotting.timelines.chart import Chart, timeline
from cepheid.plotting.timelines.drawn import Drawn, drawn
from cepheid.plotting.timelines.scene import Scene, scene_of

_AROUND = 0.35
"""How much of a match's length is drawn before and after it, if one match is chosen."""


def draw(asked: PlotRequest, events: object, matches: object) -> Picture:
    """The picture; the errors are those of `plot`."""
    if events is None and matches is None:
        raise SchemaError("plot draws events, matches or both: give it what detect was given, and what it found")
    found = None if matches is None else matches_of(table_of(matches, "matches", asked.only), asked.key, asked.time)
    if found is not None and MATCH_ID in asked.only and not found.rows.num_rows:
        ids = ", ".join(map(str, asked.only[MATCH_ID]))
        raise SchemaError(f"only: there is no match {ids}. Ids depend on the columns of the events, see match_id")
    if events is None:
        assert found is not None
        return _overview(asked, found)
    return _timeline(asked, table_of(events, "events", _only_events(asked, found)), found)


def _overview(asked: PlotRequest, matches: Matches) -> Picture:
    check(asked, None)
    count = matches.rows.num_rows
    chart, notes = overview(asked, matches)
    return _picture(asked.title or f"{count:,} match{'es' * (count != 1)}", [*_given(asked), *notes], chart)


def _timeline(asked: PlotRequest, events: pa.Table, matches: Matches | None) -> Picture:
    check(asked, events.schema)
    _check_only(asked, events, matches)
    clock = _clock(asked, events.schema, matches)
    if matches is not None and MATCH_ID in asked.only:
        events = _around(asked, clock, events, matches)
    scene = scene_of(asked, clock, events, matches)
    marks = drawn(asked, scene)
    return _picture(asked.title or _title(asked, scene), _notes(asked, scene, marks), timeline(asked, scene, marks))


def _picture(title: str, notes: Sequence[str], chart: Chart) -> Picture:
    heading = alt.TitleParams(text=title, subtitle=[*notes]) if notes else alt.TitleParams(text=title)
    spec = chart.chart.properties(title=heading).to_dict()
    spec.pop("config", None)
    return Picture(title, spec, chart.height + 90 + 20 * len(notes))


def _only_events(asked: PlotRequest, matches: Matches | None) -> Mapping[str, Sequence[Any]]:
    """The values that events must have: for a chosen match, those of its key."""
    only = {name: values for name, values in asked.only.items() if name != MATCH_ID}
    if MATCH_ID in asked.only and matches is not None:
        for name in asked.key:
            only.setdefault(name, pc.unique(matches.rows.column(name)).to_pylist())
    return only


def _check_only(asked: PlotRequest, events: pa.Table, matches: Matches | None) -> None:
    known = {*events.schema.names, *(matches.rows.schema.names if matches is not None else ())}
    if unknown := [name for name in asked.only if name not in known]:
        raise SchemaError(f"only: no column named {unknown[0]!r}; choose by {', '.join((*asked.key, MATCH_ID))}")
    if not events.num_rows:
        raise SchemaError("there is no event to draw" + (f" with {dict(asked.only)!r}" if asked.only else ""))


def _clock(asked: PlotRequest, events: pa.Schema, matches: Matches | None) -> Clock:
    """The clock of all times that are drawn.

    Raises:
        SchemaError: some of them have a zone and others have none, and `time_zone` does not say how to read these.
    """
    names = (*asked.time, *asked.planned)
    types = {f"{name!r} of the events": events.field(name).type for name in names}
    if matches is not None:
        schemas = ((matches.events.schema, names), (matches.rows.schema, (MATCH_START, MATCH_END)))
        own = {name: schema.field(name).type for schema, of in schemas for name in of if name in schema.names}
        types |= {f"{name!r} of the matches": type_ for name, type_ in own.items()}
    if are_mixed([*types.values()]) and asked.time_zone is None:
        listed = ", ".join(f"{what} is {type_}" for what, type_ in types.items())
        raise SchemaError(
            f"times with a zone and times without one cannot be drawn together: {listed}. Say with time_zone=… which "
            "zone those without one are in"
        )
    return clock_of([*types.values()], asked.time_zone)


def _around(asked: PlotRequest, clock: Clock, events: pa.Table, matches: Matches) -> pa.Table:
    """The events at the time of the matches, and somewhat before and after it."""
    if not (matches.rows.num_rows and clock.is_time and {MATCH_START, MATCH_END} <= {*matches.rows.schema.names}):
        return events
    first = float(np.nanmin(clock.places(matches.rows.column(MATCH_START))))
    last = float(np.nanmax(clock.places(matches.rows.column(MATCH_END))))
    margin = (last - first) * _AROUND
    begin, end = (clock.places(events.column(name)) for name in (asked.time[0], asked.time[-1]))
    end = np.where(np.isfinite(end), end, begin)
    return events.filter(pa.array((end >= first - margin) & (begin <= last + margin)))


# Words


def _given(asked: PlotRequest) -> list[str]:
    return [] if asked.subtitle is None else [asked.subtitle]


def _title(asked: PlotRequest, scene: Scene) -> str:
    """What is drawn, in words."""
    chosen = ", ".join(str(value) for name in asked.key for value in asked.only.get(name, ()))
    return f"{chosen}: " * bool(chosen) + (
        _events_in_words(asked) if scene.matches is None else _matches_in_words(scene)
    )


def _events_in_words(asked: PlotRequest) -> str:
    return " and ".join(asked.y or ("events",)) + (f" by {', '.join(asked.key)}" if asked.key else "")


def _matches_in_words(scene: Scene) -> str:
    assert scene.matches is not None
    count = scene.count
    names = f" of {' and '.join(scene.matches.patterns)}" if scene.matches.patterns else ""
    return f"{count:,} match{'es' * (count != 1)}{names}"


def _notes(asked: PlotRequest, scene: Scene, marks: Drawn) -> list[str]:
    what = [] if asked.subtitle is not None else [_what(asked, scene, marks)]
    return [*_given(asked), *filter(None, [*what, *scene.notes, marks.note])]


def _what(asked: PlotRequest, scene: Scene, marks: Drawn) -> str:
    """What the marks are."""
    found = [_events_in_words(asked)] if asked.y and scene.matches is not None else []
    if scene.stages and not marks.taken.steps:
        found.append("coloured: the events of matches")
    if marks.windows.rows and not marks.windows.steps:
        found.append("shaded: from the first to the last event of a match")
    if asked.planned:
        found.append("pale: what was planned; red: a late start")
    words = "; ".join(found)
    return words[:1].upper() + words[1:] if not asked.y else words
