"""plot: a picture of events and of the matches in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import EllipsisType
from typing import Any

from cepheid.lang.known_arguments import known_arguments
from cepheid.plotting.picture import Picture


@known_arguments()
def plot(
    events: object = None,
    matches: object = None,
    *,
    time: str | Sequence[str] | EllipsisType = ...,
    y: str | Sequence[str] | None = None,
    key: str | Sequence[str] | None = None,
    lanes: str | None = None,
    planned: Sequence[str] | None = None,
    label: str | None = None,
    columns: str | Sequence[str] | None = None,
    only: Mapping[str, Any] | None = None,
    time_zone: str | None = None,
    title: str | None = None,
    subtitle: str | None = None,
) -> Picture:
    """A picture of events over time, in which matches are marked; without events, an overview of many matches.

    With `y` each key has a panel with a line, in which the events of matches are dots and their windows are shaded.
    Without, events are dots in lanes, or bars if they have a start and an end. Above 5,000 marks it aggregates, and
    says so. A notebook shows the picture, which can be zoomed and has tooltips; `save` writes it as HTML, PNG or SVG.

    Args:
        events: A table as for `detect`. A Spark DataFrame is read into this process, at most a million rows. None: the
            picture is an overview of when the matches were, which keys they have, and how long they are.
        matches: What `detect` has found in the events, with stage columns or with `rows_per="event"`. Their events need
            the columns that are drawn.
        time: The column of the event times, or those of start and end; a column of numbers if there is no time.
        y: Column or columns of numbers.
        key: Column or columns, as for `detect`.
        lanes: The column whose values are lanes. Without it these are the keys; the stages if there is only one key.
        planned: The columns of planned start and end, drawn above each event, and what it is late by in red.
        label: The column with words to write beside each event.
        columns: The columns in tooltips (default: all). A page contains their values.
        only: What to draw, as in {"symbol": "AMZN"}, {"symbol": ["AMZN", "IBM"]} or {"match_id": "…"}, for keys or a
            match with the time around it.
        time_zone: The zone of the clock (default: that of the column of times). It is also the zone of times without
            one, if others have one.
        title: The heading (default: what is drawn).
        subtitle: The line below it, before the notes on what is drawn.

    Raises:
        SchemaError: a column does not exist or has an unsuitable type, an argument is of the wrong kind, or the events
            on Spark are too many; the message has all such faults.
        ModuleNotFoundError: the extra `plot` is not installed.
    """
    missing = [package for package in ("altair", "vl_convert") if find_spec(package) is None]
    if missing:
        raise ModuleNotFoundError("plot needs Altair and vl-convert: pip install 'cepheid[plot]'", name=missing[0])
    from cepheid.plotting.request import PlotRequest, chosen, names, word, zone

    asked = PlotRequest(
        time=() if isinstance(time, EllipsisType) else names(time, "time"),
        key=names(key, "key"),
        y=names(y, "y"),
        lanes=word(lanes, "lanes"),
        planned=names(planned, "planned"),
        label=word(label, "label"),
        columns=None if columns is None else names(columns, "columns"),
        only=chosen(only),
        time_zone=zone(time_zone),
        title=word(title, "title"),
        subtitle=word(subtitle, "subtitle"),
    )
    from cepheid.plotting.drawing import draw

    return draw(asked, events, matches)
