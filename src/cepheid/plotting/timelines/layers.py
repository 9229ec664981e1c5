"""The layers of a timeline as charts of Altair. They have no colours of their own but styles, which a theme defines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt

from cepheid.plotting.altair_values import AnyChart, only_what
from cepheid.plotting.request import PlotRequest
from cepheid.plotting.text import in_one_line, tooltip_encoding
from cepheid.plotting.time_axis import x_axis
from cepheid.plotting.timelines.drawn import Drawn
from cepheid.plotting.timelines.kinds import Kind
from cepheid.plotting.timelines.scene import Scene

_MOST_DOTS = 60
"""The most events of a panel of which each has a visible dot on the line."""
_MOST_TITLES = 2
"""The most panels of which each names its axis."""


@dataclass(frozen=True)
class Layers:
    """What the layers of one timeline share."""

    asked: PlotRequest
    scene: Scene
    drawn: Drawn
    domain: tuple[float, float]

    def of_panel(self) -> list[AnyChart]:
        """The layers of each panel: shaded windows, the line, the events of matches."""
        if self.drawn.events.steps:
            lines = [self._spread(), self._line()]
        else:
            visible = len(self.drawn.events.rows) <= _MOST_DOTS * len(self.scene.rows)
            dots = self._layer("events", self.drawn.events).encode(x=self._x(), y=self._y)
            lines = [
                self._line().encode(order="x:Q"),
                dots.mark_circle(style="event", size=16, opacity=1.0 if visible else 0.0, clip=True),
            ]
        return [self._windows(), *lines, self._stages_as_dots().encode(y=self._y)]

    def of_lanes(self) -> list[AnyChart]:
        """The layers of all lanes: shaded windows, lines from event to event, events, those of matches, words."""
        bars = self.asked.are_intervals and not self.drawn.taken.steps
        layers = [self._windows(), self._threads(), self._events_in_lanes()]
        if self.asked.planned:
            layers += [layer for what in ("events", "taken") for layer in self._planned(what)]
        layers.append(self._stages_as_bars() if bars else self._stages_as_dots().encode(y=self._lane))
        if self.asked.label is not None:
            layers += [layer for what in ("events", "taken") for layer in self._words(what)]
        return layers

    # Channels

    def _x(self, field: str = "x") -> alt.X:
        return x_axis(self.scene.clock, self.asked.time[0], self.domain, field=field, on_top=not self.scene.are_panels)

    @property
    def _y(self) -> alt.Y:
        return self._y_of("y")

    def _y_of(self, field: str) -> alt.Y:
        titled = len(self.asked.y) == 1 and len(self.scene.rows) <= _MOST_TITLES
        scale = alt.Scale(zero=False, nice=False, padding=7)
        # Not the title of the channel: Vega-Lite would put that into an expression as it is.
        axis = alt.Axis(title=in_one_line(self.asked.y[0]) if titled else None, tickCount=5)
        return alt.Y(f"{field}:Q", scale=scale, axis=axis)

    @property
    def _lane(self) -> alt.Y:
        lanes = self.scene.rows
        axis = alt.Axis(title=None, labelLimit=240, labelFontSize=13, ticks=False, domain=False, grid=True, zindex=0)
        return alt.Y("row:N", sort=lanes, scale=alt.Scale(domain=lanes), axis=axis)

    def _layer(self, what: str, kind: Kind) -> AnyChart:
        chart = alt.Chart().transform_filter(only_what(what))
        return chart.encode(tooltip=tooltip_encoding(kind.tooltip)) if kind.tooltip else chart

    def _kind(self, what: str) -> Kind:
        return self.drawn.events if what == "events" else self.drawn.taken

    # What lies behind

    def _windows(self) -> AnyChart:
        layer = self._layer("windows", self.drawn.windows)
        if self.drawn.windows.steps:
            share = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.06, 0.5]), legend=None)
            layer = layer.mark_rect(style="window", strokeWidth=0, clip=True).encode(opacity=share)
        else:
            layer = layer.mark_rect(style="window", opacity=0.15, strokeWidth=1, clip=True)
        layer = layer.encode(x=self._x(), x2="x2:Q")
        in_lanes = not self.scene.are_panels and bool((self.scene.windows.row >= 0).any())
        return layer.encode(y=self._lane) if in_lanes else layer

    def _threads(self) -> AnyChart:
        layer = self._layer("threads", self.drawn.threads)
        layer = layer.mark_line(style="thread", strokeDash=[2, 4], strokeWidth=1.4, clip=True)
        return layer.encode(x=self._x(), y=self._lane, detail="match:N", order="n:Q")

    # Events

    def _line(self) -> AnyChart:
        line = self._layer("events", self.drawn.events).mark_line(style="trend", strokeWidth=1.4, clip=True)
        return line.encode(x=self._x(), y=self._y)

    def _spread(self) -> AnyChart:
        spread = self._layer("events", self.drawn.events).mark_area(style="spread", opacity=0.3, clip=True)
        return spread.encode(x=self._x(), y=self._y_of("low"), y2="high:Q")

    def _events_in_lanes(self) -> AnyChart:
        layer = self._layer("events", self.drawn.events).encode(x=self._x(), y=self._lane)
        if self.drawn.events.steps:
            share = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.15, 1]), legend=None)
            return layer.mark_bar(style="event", height=10, clip=True, strokeWidth=0).encode(x2="x2:Q", opacity=share)
        if self.asked.are_intervals:
            return layer.mark_bar(style="event", opacity=0.5, **self._bar_form).encode(x2="x2:Q")
        return layer.mark_circle(style="event", size=36, opacity=0.6, clip=True)

    @property
    def _bar_form(self) -> dict[str, Any]:
        below = {"height": 18, "yOffset": 6} if self.asked.planned else {"height": 14}
        return {**below, "cornerRadius": 3, "clip": True}

    # Events of matches

    def _stages_as_bars(self) -> AnyChart:
        layer = self._choosable(self._layer("taken", self.drawn.taken)).mark_bar(**self._bar_form)
        return layer.encode(x=self._x(), x2="x2:Q", y=self._lane, **self._stage(shape=False))

    def _stages_as_dots(self) -> AnyChart:
        layer = self._choosable(self._layer("taken", self.drawn.taken))
        size = 60 if len(self.drawn.taken.rows) <= 600 else 36
        layer = layer.mark_point(filled=True, size=size, opacity=1, clip=True)
        layer = layer.encode(x=self._x(), **self._stage(shape=True))
        if not self.drawn.taken.steps:
            return layer
        scale, legend = alt.Scale(type="sqrt", range=[20, 400]), alt.Legend(title="events", orient="top")
        return layer.encode(size=alt.Size("count:Q", scale=scale, legend=legend))

    @property
    def _has_legend(self) -> bool:
        """Whether stages need a legend: there are some, and the lanes do not name them."""
        stages = self.scene.stages
        return bool(stages) and (self.scene.are_panels or self.scene.rows[: len(stages)] != stages)

    def _stage(self, *, shape: bool) -> dict[str, Any]:
        """Colour and, for dots, shape, so that stages can also be told apart without colours."""
        stages, found = self.scene.stages, dict[str, Any]()
        if not stages:
            return found
        legend = alt.Legend(title=None, orient="top", direction="horizontal", offset=14) if self._has_legend else None
        found["color"] = alt.Color("stage:N", scale=alt.Scale(domain=stages), legend=legend, sort=stages)
        if shape:
            found["shape"] = alt.Shape("stage:N", scale=alt.Scale(domain=stages), legend=legend, sort=stages)
        if self._has_legend:
            found["opacity"] = alt.when(self._chosen).then(alt.value(1)).otherwise(alt.value(0.12))
        return found

    @property
    def _chosen(self) -> alt.Parameter:
        return alt.selection_point(name="chosen", fields=["stage"], bind="legend")

    def _choosable(self, layer: AnyChart) -> AnyChart:
        """The layer, in which a click on the legend chooses a stage."""
        return layer.add_params(self._chosen) if self._has_legend else layer

    # Beside events

    def _planned(self, what: str) -> list[AnyChart]:
        """A pale bar for the plan, and a line from a planned start to a later real one."""
        layer = self._layer(what, self._kind(what)).encode(x=self._x("p"), y=self._lane)
        late = layer.transform_filter("datum.p < datum.x")
        return [
            layer.mark_bar(style="plan", height=8, yOffset=-14, cornerRadius=2, clip=True).encode(x2="p2:Q"),
            late.mark_rule(style="delay", strokeWidth=2.5, yOffset=6, clip=True).encode(x2="x:Q"),
            late.mark_circle(style="delay", size=46, yOffset=6, opacity=1, clip=True),
        ]

    def _words(self, what: str) -> list[AnyChart]:
        """The words to the right of each event; first their outline, in the colour of the paper."""
        layer = self._layer(what, self._kind(what))
        layer = layer.encode(x=self._x("x2" if self.asked.are_intervals else "x"), y=self._lane, text="words:N")
        form: dict[str, Any] = {"align": "left", "dx": 8, "fontSize": 12, "limit": 320, "clip": True}
        form |= {"yOffset": 6} if self.asked.planned else {}
        return [layer.mark_text(style="outline", strokeWidth=4, **form), layer.mark_text(style="words", **form)]
