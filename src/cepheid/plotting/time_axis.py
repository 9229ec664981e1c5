"""The axis of time, or of numbers where there is no time."""

from __future__ import annotations

import altair as alt

from cepheid.plotting.clock import Clock
from cepheid.plotting.text import in_one_line

_FORMATS = {
    "milliseconds": "%H:%M:%S.%L",
    "seconds": "%H:%M:%S",
    "minutes": "%H:%M",
    "hours": "%H:%M",
    "date": "%-d %b",
    "day": "%-d %b",
    "week": "%-d %b",
    "month": "%b",
    "quarter": "%b",
    "year": "%Y",
}
"""How a tick is written, by the largest unit of time that begins there."""


def x_axis(
    clock: Clock, name: str, domain: tuple[float, float] | None = None, *, field: str = "x", on_top: bool = False
) -> alt.X:
    """The channel x. Times are those of the clock on the wall, written as if they were UTC, so that the zone of the
    browser does not matter.
    """
    name = in_one_line(name)
    ends = alt.Undefined if domain is None else [*domain]
    if not clock.is_time:
        axis = alt.Axis(title=name, orient="top" if on_top else "bottom", tickCount=9)
        return alt.X(f"{field}:Q", scale=alt.Scale(domain=ends, zero=False, nice=False), axis=axis)
    title = name if clock.zone is None else f"{name} ({clock.zone})"
    axis = alt.Axis(title=title, format=_FORMATS, orient="top" if on_top else "bottom", tickCount=9, labelOverlap=True)
    return alt.X(f"{field}:T", scale=alt.Scale(type="utc", domain=ends, nice=False), axis=axis)
