"""The figures of Zhou et al.'s paper that the measures of `out_of_order.py` repeat, as tables and as one drawing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from measuring import print_table
from out_of_order_engines import ENGINES


class Figure(NamedTuple):
    number: int
    """In the paper."""
    experiment: str
    measure: str
    label: str


FIGURES = (
    Figure(5, "instants", "behind", "latency, s"),
    Figure(6, "instants", "retracted", "compensations, %"),
    Figure(7, "instants", "accuracy", "accuracy, %"),
    Figure(8, "durations", "accuracy", "accuracy, %"),
    Figure(9, "durations", "seconds", "s for a million events"),
    Figure(10, "buffer", "behind", "latency, s"),
    Figure(11, "buffer", "recall", "matches found, %"),
    Figure(12, "buffer", "seconds", "s for a million events"),
    Figure(13, "length", "behind", "latency, s"),
    Figure(14, "length", "seconds", "s for a million events"),
)
ACROSS = {
    "instants": ("out_of_order", "out of order, %, instants"),
    "durations": ("out_of_order", "out of order, %, durations"),
    "buffer": ("buffer", "events of the buffer, durations"),
    "K": ("k", "K, s, durations"),
    "length": ("length", "events of a match, instants"),
}
"""Experiment → the field that varies, and its label."""
_SHARES = {"out_of_order", "retracted", "accuracy", "recall"}
_STYLES = dict(zip(ENGINES, ("o-", "s-", "^--", "x:"), strict=True))
_Rows = Sequence[Mapping[str, Any]]


class Point(NamedTuple):
    x: float
    mean: float
    spread: float
    """The standard deviation among the seeds; 0 if there is one."""


def points(rows: _Rows, figure: Figure, engine: str) -> list[Point]:
    """An engine's line in a figure."""
    field = ACROSS[figure.experiment][0]
    found: dict[float, list[float]] = {}
    for row in rows:
        if row["experiment"] == figure.experiment and row["engine"] == engine:
            found.setdefault(_shown(row, field), []).append(_shown(row, figure.measure))
    return [
        Point(x, statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
        for x, values in found.items()
    ]


def print_figures(rows: _Rows) -> None:
    """Prints a table for each figure: what varies, and the mean and spread of each engine."""
    both = Figure(0, "K", "recall", "matches found, %"), Figure(0, "K", "behind", "latency, s")
    for figure in (*FIGURES, *both):
        across = ACROSS[figure.experiment][1]
        title = f"Fig. {figure.number}: {figure.label}" if figure.number else figure.label
        print_table(title, (across, *ENGINES), [*_lines(rows, figure)])


def _lines(rows: _Rows, figure: Figure) -> Iterator[list[str]]:
    for line in zip(*(points(rows, figure, engine) for engine in ENGINES), strict=True):
        yield [f"{line[0].x:g}", *map(_written, line)]


def _written(point: Point) -> str:
    """The mean with about three digits, and the spread with as many decimals."""
    decimals = max(0, 2 - math.floor(math.log10(point.mean))) if point.mean > 0 else 0
    return f"{point.mean:,.{decimals}f} ± {point.spread:,.{decimals}f}"


def draw(rows: _Rows, to: Path) -> None:
    """Writes a PNG file. The same measures give the same bytes."""
    with mpl.rc_context({"font.size": 8}):
        drawing = Drawing(figsize=(13, 5.2), layout="constrained")
        for axes, figure in zip(drawing.subplots(2, 5).flat, FIGURES, strict=True):
            for engine, style in _STYLES.items():
                _draw_line(axes, points(rows, figure, engine), engine, style)
            axes.set(ylabel=figure.label, xlabel=ACROSS[figure.experiment][1], ylim=(0, None))
            axes.set_title(f"Fig. {figure.number}", fontsize=8)
            if figure.experiment == "buffer":
                axes.set_xscale("symlog", linthresh=1)
                axes.set_xlim(left=0)
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = drawing.axes[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
        drawing.savefig(to, format="png", dpi=90, metadata={"Software": None})


def _draw_line(axes: Axes, line: Sequence[Point], engine: str, style: str) -> None:
    x, mean, spread = zip(*line, strict=True)
    axes.errorbar(x, mean, spread, fmt=style, label=engine, markersize=4, linewidth=1.2, capsize=2)


def _shown(row: Mapping[str, Any], name: str) -> float:
    return float(row[name]) * (100 if name in _SHARES else 1)
