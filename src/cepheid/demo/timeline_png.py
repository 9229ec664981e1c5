"""The timeline as a PNG, for places that cannot show HTML. Only this module imports matplotlib (extra `demo`)."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cepheid.demo import timeline as t
from cepheid.demo.timeline import Axis, Chain, Flight

_PAPER, _INK, _SOFT, _LINE = "#fbfaf7", "#1d2433", "#667085", "#e3e1da"
_PLAN, _REAL, _DELAY, _TURN = "#c9d2de", "#2f6f9f", "#d9482b", "#98a2b3"


def png_image(chain: Chain) -> bytes:
    """A picture 1,800 pixels wide."""
    axis, rows = t.axis_of(chain), len(chain.flights)
    inches = 1.9 + 0.95 * rows
    figure = Figure(figsize=(12, inches), dpi=150, facecolor=_PAPER)
    axes = figure.add_axes((0.115, 0.5 / inches, 0.74, 0.95 * rows / inches), facecolor=_PAPER)
    _grid(axes, axis, rows)
    for row, flight in enumerate(chain.flights):
        _draw_flight(axes, axis, row, flight)
        if row:
            _draw_turn(axes, axis, row, chain.flights[row - 1], flight)
    figure.text(0.02, 1 - 0.42 / inches, t.title(chain), size=18, weight="bold", color=_INK)
    figure.text(0.02, 1 - 0.70 / inches, t.subtitle(chain), size=11, color=_SOFT)
    _legend(figure, 1 - 0.78 / inches)
    image = BytesIO()
    figure.savefig(image, format="png")
    return image.getvalue()


def _grid(axes: Axes, axis: Axis, rows: int) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(rows, 0)
    axes.xaxis.tick_top()
    ticks = axis.ticks()
    axes.set_xticks([axis.fraction(tick) for tick in ticks], [f"{tick:%H:%M}" for tick in ticks], color=_SOFT, size=9.5)
    axes.set_yticks([])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for tick in ticks:
        midnight = tick.hour == 0
        color, style = (_SOFT, (0, (2, 4))) if midnight else (_LINE, "-")
        axes.axvline(axis.fraction(tick), color=color, linewidth=0.9, linestyle=style, zorder=0)
        if midnight:
            axes.text(axis.fraction(tick), rows + 0.22, t.day(tick), color=_SOFT, size=9.5, ha="center")


def _draw_flight(axes: Axes, axis: Axis, row: int, flight: Flight) -> None:
    _bar(axes, axis, t.plan(flight), y=row + 0.28, height=0.09, color=_PLAN)
    _bar(axes, axis, t.reality(flight), y=row + 0.52, height=0.21, color=_REAL)
    planned, left, landed = (axis.fraction(time) for time in (flight.scheduled_at, *t.reality(flight)))
    middle = row + 0.625
    axes.plot([planned, left], [middle, middle], color=_DELAY, linewidth=2.6, marker="o", markevery=[0], markersize=5.5)
    leaves, lands = t.departure_words(flight), t.arrival_words(flight)
    axes.text((planned + left) / 2, row + 0.86, leaves, color=_DELAY, size=10, weight="bold", ha="center", va="center")
    axes.text(landed + 0.008, middle, lands, color=_DELAY, size=10, weight="bold", va="center")
    axes.text(-0.126, row + 0.46, t.label(flight), color=_INK, size=12.5, weight="bold", va="center")
    axes.text(-0.126, row + 0.70, t.route(flight), color=_SOFT, size=10.5, va="center")


def _draw_turn(axes: Axes, axis: Axis, row: int, before: Flight, after: Flight) -> None:
    landed, left = (axis.fraction(time) for time in t.turn(before, after))
    axes.plot([landed, left], [row - 0.27, row + 0.52], color=_TURN, linewidth=1.3, linestyle=(0, (1.5, 3)), zorder=1)


def _bar(axes: Axes, axis: Axis, times: tuple[datetime, datetime], *, y: float, height: float, color: str) -> None:
    start, end = (axis.fraction(time) for time in times)
    axes.broken_barh([(start, end - start)], (y, height), facecolors=color, zorder=2)


def _legend(figure: Figure, y: float) -> None:
    figure.legend(
        handles=[
            Patch(color=_PLAN, label="planned"),
            Patch(color=_REAL, label="real"),
            Line2D([], [], color=_DELAY, marker="o", markersize=5, label="late departure"),
            Line2D([], [], color=_TURN, linestyle=(0, (1.5, 3)), label="the way back to New York, not in the data"),
        ],
        loc="upper left",
        bbox_to_anchor=(0.012, y),
        ncols=4,
        frameon=False,
        fontsize=9.5,
        labelcolor=_SOFT,
    )
