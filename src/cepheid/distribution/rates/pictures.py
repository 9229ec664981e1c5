"""Pictures of the simulation of rates, as PNG. Only this module imports matplotlib here (extra `demo`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from statistics import median
from typing import TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cepheid.distribution.rates.comparison import SEEDS
from cepheid.distribution.rates.simulation import SETTING, Outcome

Outcomes: TypeAlias = Mapping[str, Mapping[int, Outcome]]

_PAPER, _INK, _SOFT, _LINE, _LIMIT = "#fbfaf7", "#1d2433", "#667085", "#e3e1da", "#d9482b"
_COLORS = {
    "none": "#98a2b3",
    "alone, circulated, 50": "#c9a227",
    "alone, circulated, 100": "#7aa95c",
    "alone, circulated, 200": "#2f6f9f",
    "one place, 64": "#7a3e9d",
}
_NAMES = {
    "none": "no copies",
    "alone, circulated, 50": "each alone, 50 standbys",
    "alone, circulated, 100": "each alone, 100 standbys",
    "alone, circulated, 200": "each alone, 200 standbys",
    "one place, 64": "one place, 64 standbys",
}


def load_over_time(outcomes: Outcomes) -> bytes:
    """The arrivals at the busiest thread, second by second, for one seed."""
    figure, axes = _empty(
        "The busiest thread, second by second",
        "messages a second at the thread that gets most; at 0 s and 60 s five other originals get hot",
    )
    for name, color in _COLORS.items():
        axes.plot(outcomes[name][SEEDS[0]].peaks, color=color, linewidth=1.8, label=_NAMES[name])
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_yticks([50, 100, 200, 500, 1000], ["50", "100", "200", "500", "1,000"])
    axes.set_ylim(50, 1400)
    axes.set_xlim(0, SETTING.seconds)
    axes.set_xlabel("seconds", color=_SOFT)
    _limit(axes, horizontal=True)
    _legend(figure, axes)
    return _png(figure)


def queues_over_time(outcomes: Outcomes) -> bytes:
    """The longest queue, second by second, for one seed."""
    figure, axes = _empty(
        "The longest queue, second by second", "messages that wait at one thread; a thread does 100 a second"
    )
    for name, color in _COLORS.items():
        axes.plot(outcomes[name][SEEDS[0]].queues, color=color, linewidth=1.8, label=_NAMES[name])
    axes.set_yscale("symlog", linthresh=100)
    axes.minorticks_off()
    axes.set_yticks([0, 100, 1000, 10_000, 50_000], ["0", "100", "1,000", "10,000", "50,000"])
    axes.set_ylim(0, 80_000)
    axes.set_xlim(0, SETTING.seconds)
    axes.set_xlabel("seconds", color=_SOFT)
    _legend(figure, axes)
    return _png(figure)


def seeds_side_by_side(outcomes: Outcomes) -> bytes:
    """The peak of each seed, for each scheme, with the medians."""
    figure, axes = _empty(
        f"Peaks of {len(SEEDS)} seeds",
        "greatest arrivals at a thread in a second, from ten seconds after the change on",
    )
    axes.set_position((0.2, 0.12, 0.77, 0.7))
    names = [name for name in _COLORS if name != "none"]
    for row, name in enumerate(names):
        peaks = [outcome.peak_arrival for outcome in outcomes[name].values()]
        spread = [row + (number % 7 - 3) * 0.07 for number in range(len(peaks))]
        axes.plot(peaks, spread, "o", color=_COLORS[name], markersize=6, alpha=0.75)
        middle = median(peaks)
        axes.plot([middle, middle], [row - 0.36, row + 0.36], color=_INK, linewidth=2.2)
        axes.text(middle + 4, row - 0.37, f"{middle:.0f}", color=_INK, size=10, weight="bold", va="bottom")
        sent = median(outcome.control_messages for outcome in outcomes[name].values())
        axes.text(448, row, f"{sent:,.0f} control messages", color=_SOFT, size=10, ha="right", va="center")
    axes.set_yticks(range(len(names)), [_NAMES[name] for name in names], color=_INK, size=10.5)
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.set_xlim(60, 450)
    axes.set_xlabel("messages a second; the dashed line is 120 % of a thread's capacity", color=_SOFT)
    _limit(axes, horizontal=False)
    return _png(figure)


def _empty(title: str, subtitle: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(10, 5.2), dpi=130, facecolor=_PAPER)
    axes = figure.add_axes((0.085, 0.12, 0.88, 0.66), facecolor=_PAPER)
    figure.text(0.02, 0.93, title, size=16, weight="bold", color=_INK)
    figure.text(0.02, 0.875, subtitle, size=10.5, color=_SOFT)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_LINE)
    axes.tick_params(length=0, colors=_SOFT)
    axes.grid(color=_LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _limit(axes: Axes, *, horizontal: bool) -> None:
    """A line at 120 % of the capacity."""
    limit = 1.2 * SETTING.capacity
    line = axes.axhline if horizontal else axes.axvline
    line(limit, color=_LIMIT, linewidth=1.1, linestyle=(0, (4, 3)), label="120 % of a thread's capacity")


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="upper left",
        bbox_to_anchor=(0.01, 0.865),
        ncols=3,
        frameon=False,
        fontsize=9.5,
        labelcolor=_INK,
    )


def _png(figure: Figure) -> bytes:
    image = BytesIO()
    # Without the version of matplotlib, so that the same figures give the same file.
    figure.savefig(image, format="png", metadata={"Software": None})
    return image.getvalue()


PICTURES: Mapping[str, Callable[[Outcomes], bytes]] = {
    "load": load_over_time,
    "queues": queues_over_time,
    "seeds": seeds_side_by_side,
}
