"""A timeline as a chart of Altair: panels with lines, or lanes with dots and bars."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import numpy as np

from cepheid.plotting.altair_values import AnyChart, inline
from cepheid.plotting.clock import Floats
from cepheid.plotting.request import PlotRequest
from cepheid.plotting.timelines.drawn import Drawn
from cepheid.plotting.timelines.layers import Layers
from cepheid.plotting.timelines.scene import Marks, Scene

WIDTH = 860
_PANEL_HEIGHTS = ((1, 340), (2, 200), (4, 140), (12, 96))
"""The most panels, and the height of each in pixels."""
_LANE, _PLANNED_LANE, _FLAT_LANE = 34, 64, 22
"""Heights of lanes in pixels: plain, with plans, and where there are many."""
_MOST_HIGH_LANES = 15
_WORDS = 0.28
"""How much of the time there is is added on the right for words."""


class Chart(NamedTuple):
    """A chart, and how many pixels high it is without its title."""

    chart: AnyChart
    height: int


def timeline(asked: PlotRequest, scene: Scene, drawn: Drawn) -> Chart:
    """The chart of the marks."""
    kinds = {"windows": drawn.windows, "events": drawn.events, "threads": drawn.threads, "taken": drawn.taken}
    rows = [{"what": what, **row} for what, kind in kinds.items() for row in kind.rows]
    layers = Layers(asked, scene, drawn, _domain(asked, scene))
    parts = layers.of_panel() if scene.are_panels else layers.of_lanes()
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"])
    chart = alt.layer(parts[0].add_params(zoom), *parts[1:], data=inline(rows))
    return _as_panels(scene, chart) if scene.are_panels else _as_lanes(asked, scene, chart)


def _as_panels(scene: Scene, chart: AnyChart) -> Chart:
    height = next(height for most, height in _PANEL_HEIGHTS if len(scene.rows) <= most)
    chart = chart.properties(width=WIDTH, height=height)
    if scene.rows == [""]:
        return Chart(chart, height + 60)
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start", labelPadding=4)
    facets = chart.facet(row=alt.Row("row:N", sort=scene.rows, header=header), spacing=18)
    return Chart(facets.resolve_scale(y="independent"), (height + 46) * len(scene.rows) + 60)


def _as_lanes(asked: PlotRequest, scene: Scene, chart: AnyChart) -> Chart:
    step = _PLANNED_LANE if asked.planned else _LANE if len(scene.rows) <= _MOST_HIGH_LANES else _FLAT_LANE
    return Chart(chart.properties(width=WIDTH, height=alt.Step(step)), step * len(scene.rows) + 60)


def _domain(asked: PlotRequest, scene: Scene) -> tuple[float, float]:
    """From the first to the last place, with a margin; a wide one where there are words to the right of marks."""
    places = np.concatenate([scene.windows.begin, scene.windows.end, *_places(asked, scene)])
    places = places[np.isfinite(places)]
    if not len(places):
        return 0.0, 1.0
    first, last = float(places.min()), float(places.max())
    margin = (last - first) * 0.02 or (60_000.0 if scene.clock.is_time else 1.0)
    return first - margin, last + margin + (_WORDS * (last - first) if asked.label is not None else 0.0)


def _places(asked: PlotRequest, scene: Scene) -> list[Floats]:
    found = []
    for marks in (scene.events, scene.taken):
        found += [marks.x, *([marks.end] if marks.end is not None else []), *_plans(asked, scene, marks)]
    return found


def _plans(asked: PlotRequest, scene: Scene, marks: Marks) -> list[Floats]:
    return [scene.clock.places(marks.table.column(name)) for name in asked.planned] if len(marks.x) else []
