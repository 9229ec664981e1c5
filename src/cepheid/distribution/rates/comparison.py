"""The schemes side by side, over many seeds: what `make distribution` runs and the page about distribution shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from cepheid.distribution.full_size import full_size
from cepheid.distribution.lists import Order
from cepheid.distribution.rates.schemes import EachAlone, Nobody, OnePlace
from cepheid.distribution.rates.simulation import Counts, Outcome, Scheme, Setting, counted, run

SEEDS = (2022, *range(20))
"""The first is that of the pictures."""


class Compared(NamedTuple):
    """A scheme: who decides, in words, how many standbys there are, and how a run begins."""

    who: str
    standbys: int
    new: Callable[[], Scheme]


def _alone(order: Order, standbys: int) -> Compared:
    return Compared(f"each alone, lists {order.value}", standbys, lambda: EachAlone(standbys, order))


def _one_place(standbys: int) -> Compared:
    return Compared("one place", standbys, lambda: OnePlace(standbys))


SCHEMES: Mapping[str, Compared] = {
    "none": Compared("nobody", 0, Nobody),
    **{f"alone, {order.value}, {number}": _alone(order, number) for order in Order for number in (50, 100, 200)},
    **{f"one place, {number}": _one_place(number) for number in (64, 80)},
}
BY_MESSAGE = Setting(seconds=20, hot_for=10, judged_after=5)
"""What is run message by message at full size."""

Figures: TypeAlias = dict[str, Any]
Runs: TypeAlias = Mapping[str, Mapping[int, Figures]]
"""The figures of each scheme and seed."""


def outcome_of(name: str, seed: int) -> Outcome:
    """Runs one scheme with one seed."""
    return run(SCHEMES[name].new(), _counts(seed))


@cache
def _counts(seed: int) -> list[Counts]:
    return counted(seed)


def figures_of(outcome: Outcome) -> Figures:
    """The figures of an outcome that are compared over seeds."""
    return {
        "peak_arrival": outcome.peak_arrival,
        "median_peak": outcome.median_peak,
        "longest_queue": outcome.longest_queue,
        "queue_at_end": outcome.queue_at_end,
        "growths": outcome.growths,
        "releases": outcome.releases,
        "reached": outcome.reached,
        "stayed": outcome.stayed,
    }


def by_message() -> Figures:
    """The run at full size, message by message, beside the simulation of rates of the same seconds."""
    found = full_size(SEEDS[0], standbys=200, setting=BY_MESSAGE)
    rates = run(EachAlone(200, Order.CIRCULATED, BY_MESSAGE), counted(SEEDS[0], BY_MESSAGE), BY_MESSAGE)
    return {
        "events": found.events,
        "means_equal": found.means == found.expected,
        "copies": [found.requests, rates.growths],
        "releases": [found.releases, rates.releases],
        "peak": [max(found.peaks[-5:]), max(rates.peaks[-5:])],
        "references_left": found.copies_left,
        "waiting_left": found.waiting,
    }


def rates_table(runs: Runs) -> str:
    """A row for each scheme, with the medians over all seeds."""
    rows = [_row(name, [own[seed] for seed in SEEDS]) for name, own in runs.items()]
    return (
        "| who decides | standbys | peak | longest queue | control messages | reaches 120 % | stays there |\n"
        "|---|---:|---:|---:|---:|---:|---:|\n" + "".join(rows)
    )


def _row(name: str, runs: list[Figures]) -> str:
    compared = SCHEMES[name]
    peaks, queues = ([round(run[figure]) for run in runs] for figure in ("peak_arrival", "longest_queue"))
    sent = median(2 * run["growths"] + run["releases"] for run in runs)
    reached, stayed = (sum(run[figure] is not None for run in runs) for figure in ("reached", "stayed"))
    return (
        f"| {compared.who} | {compared.standbys} | {_spread(peaks)} | {_spread(queues)} | {sent:,.0f} "
        f"| {reached} of {len(runs)} | {stayed} of {len(runs)} |\n"
    )


def _spread(values: list[int]) -> str:
    """The median, and the range."""
    return f"**{median(values):,.0f}** ({min(values):,} to {max(values):,})"


def by_message_table(figures: Figures) -> str:
    """What the run message by message came to, beside the simulation of rates."""
    rows = [
        ("copies requested", *figures["copies"]),
        ("copies released", *figures["releases"]),
        ("greatest arrivals at a thread in the last five seconds", *figures["peak"]),
    ]
    return "| | message by message | simulation of rates |\n|---|---:|---:|\n" + "".join(
        f"| {what} | {one:,.0f} | {other:,.0f} |\n" for what, one, other in rows
    )
