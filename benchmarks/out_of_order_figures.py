"""Draws the measures of `out_of_order.py`: ten small figures in one file, as in Zhou et al.'s paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from out_of_order_engines import ENGINES

FIGURES = (
    ("out of order", "behind", "latency, s"),
    ("out of order", "retracted", "retracted, %"),
    ("out of order", "precision", "precision, %"),
    ("out of order", "recall", "recall, %"),
    ("out of order", "speed", "M events/s"),
    ("K", "behind", "latency, s"),
    ("K", "recall", "recall, %"),
    ("length", "precision", "precision, %"),
    ("length", "speed", "M events/s"),
    ("instants", "recall", "recall, %"),
)
"""The experiment and the measure of each figure."""
ACROSS = {
    "out of order": ("out_of_order", "out of order, %"),
    "K": ("k", "K, s"),
    "length": ("length", "events of a match"),
    "instants": ("out_of_order", "out of order, %, instants"),
}
SHARES = {"out_of_order", "retracted", "precision", "recall"}
STYLES = dict(zip(ENGINES, ("o-", "s-", "^--", "x:"), strict=True))


def draw(rows: Sequence[Mapping[str, Any]], to: Path) -> None:
    """Writes a PNG file. The same measures give the same bytes."""
    with mpl.rc_context({"font.size": 8}):
        figure = Figure(figsize=(13, 5.2), layout="constrained")
        for axes, (experiment, measure, label) in zip(figure.subplots(2, 5).flat, FIGURES, strict=True):
            _draw_one(axes, [row for row in rows if row["experiment"] == experiment], experiment, measure)
            axes.set(ylabel=label, xlabel=ACROSS[experiment][1], ylim=(0, None))
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
        figure.savefig(to, format="png", dpi=90, metadata={"Software": None})


def _draw_one(axes: Axes, rows: Sequence[Mapping[str, Any]], experiment: str, measure: str) -> None:
    for engine, style in STYLES.items():
        own = [row for row in rows if row["engine"] == engine]
        x, y = ([_shown(row, name) for row in own] for name in (ACROSS[experiment][0], measure))
        axes.plot(x, y, style, label=engine, markersize=4, linewidth=1.2)
    axes.spines[["top", "right"]].set_visible(False)


def _shown(row: Mapping[str, Any], name: str) -> float:
    return float(row[name]) * (100 if name in SHARES else 1)
