"""The simulation of rates: the draws, the thresholds, and every row of the table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from tests.distribution.facts import FACTS

from cepheid.allocation.load import AVERAGED_OVER
from cepheid.allocation.thresholds import THRESHOLDS, wanted_copies
from cepheid.distribution.rates.comparison import SCHEMES, SEEDS, figures_of, outcome_of
from cepheid.distribution.rates.simulation import SETTING, Setting, counted, targets

FACT = FACTS["simulation"]
ROWS = {f"{row['scheme']}, {row['order']}, {row['standbys']}": row for row in FACT["rows"]}
NAMES = {
    "none, None, 0": "none",
    **{
        f"each control thread alone, {order}, {n}": f"alone, {order}, {n}"
        for order in ("circulated", "random")
        for n in (50, 100, 200)
    },
    **{f"one place sees all counts, least busy, {n}": f"one place, {n}" for n in (64, 80)},
}
OTHERS = [seed for seed in SEEDS if seed != FACT["seed"]]
STORED = json.loads((Path(__file__).parents[2] / "docs" / "data" / "distribution.json").read_text("utf-8"))
RUNS: dict[str, dict[int, dict[str, Any]]] = {
    name: {int(seed): figures for seed, figures in own.items()} for name, own in STORED["rates"].items()
}
"""What `make distribution` stored."""


def test_the_setting() -> None:
    """The sizes, the loads and the thresholds are those of the facts."""
    assert SETTING.inputs == FACT["inputs"] == FACT["messages_per_second"]
    assert (SETTING.controls, SETTING.originals) == (FACT["control_threads"], FACT["originals"])
    assert (SETTING.capacity, SETTING.hot) == (FACT["capacity_per_second"], FACT["hot_originals"])
    assert (SETTING.share_to_hot, SETTING.seconds) == (FACT["share_to_hot"], FACT["ticks"])
    assert SETTING.hot_for == FACT["hot_set_changes_every"]
    grow, shrink, seconds = FACT["thresholds"].values()
    assert (THRESHOLDS.grow, THRESHOLDS.shrink, AVERAGED_OVER) == (grow, shrink, seconds)
    assert (FACTS["thresholds"]["grow_over"], FACTS["thresholds"]["shrink_under"]) == (grow, shrink)


def test_a_setting_leaves_seconds_to_judge() -> None:
    """A setting in which no second would be judged is an error."""
    message = "^judged_after=10 must be less than 10, the seconds after the last change$"
    with pytest.raises(ValueError, match=message):
        Setting(seconds=20, hot_for=10)


def test_the_draws() -> None:
    """Half of the messages go to five originals, after a minute to others; each control thread has a hundred inputs."""
    seconds = [*targets(FACT["seed"])]
    totals = [np.bincount(second, minlength=SETTING.originals) for second in seconds]
    hot = [{*np.argsort(total)[-5:].tolist()} for total in totals]
    assert {*map(frozenset, hot[:60])} == {frozenset(hot[0])} != {*map(frozenset, hot[60:])} == {frozenset(hot[60])}
    assert all((counts.sum(axis=1) == 100).all() for counts in counted(FACT["seed"])[:2])
    mean = sum(total[[*now]].mean() for total, now in zip(totals, hot, strict=True)) / len(totals)
    assert mean == pytest.approx(FACT["expected"]["mean_load_of_a_hot_original"], rel=0.01)


def test_expected_copies() -> None:
    """A hot original needs twelve copies, so five need sixty, and fifty if threads worked at full capacity."""
    expected = FACT["expected"]
    load = expected["mean_load_of_a_hot_original"]
    assert load == 5000 / 5 + 5000 / 1000
    assert expected["mean_load_of_a_cold_one"] == 5000 / 1000
    copies = wanted_copies(load, capacity=SETTING.capacity)
    assert (copies, 5 * copies) == (expected["copies_for_80_percent_each"], expected["copies_for_all_five"])
    assert round(load / SETTING.capacity) * 5 == expected["copies_at_full_capacity_all_five"]


@pytest.mark.parametrize("name", ROWS)
def test_each_row(name: str) -> None:
    """The run with the seed of the facts gives their figures exactly, but for rounding; and the stored figures."""
    row, found = ROWS[name], outcome_of(NAMES[name], FACT["seed"])
    for figure in ("peak_arrival", "median_peak", "longest_queue", "queue_at_end"):
        assert round(getattr(found, figure)) == row[figure], figure
    assert found.standbys_used == row["standbys_used"]
    shared = found.shared_at_end if row["order"] == "least busy" else found.shared_at_most
    assert shared == row["standbys_with_two_or_more_keys"]
    assert found.reached == row["first_second_at_or_under_120_percent"]
    alone = FACT["control_message_count"]["alone"]
    if row["order"] == "least busy":
        one = FACT["control_message_count"]["one_place"]
        assert (found.growths, found.releases) == (one["growths"], one["releases"])
        assert found.control_messages == one["counted_as_alone"]
        assert 2 * found.growths + 2 * found.releases == row["control_messages"] == one["total"]
    elif found.growths:
        assert (found.growths, found.releases) == (alone["growths"], alone["releases"])
        assert found.control_messages == row["control_messages"] == alone["total"]
    assert figures_of(found) == RUNS[NAMES[name]][FACT["seed"]]


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row["twenty_other_seeds"]])
def test_twenty_other_seeds(name: str) -> None:
    """The least, the median and the greatest figure of twenty other seeds, as `make distribution` stored them."""
    row, runs = ROWS[name], [RUNS[NAMES[name]][seed] for seed in OTHERS]
    for figure, expected in row["twenty_other_seeds"].items():
        values = [of(figure, run, one_place=row["order"] == "least busy") for run in runs]
        assert len(values) == expected["seeds"]
        for found, fact in ((min(values), "min"), (median(values), "median"), (max(values), "max")):
            assert math.floor(found) <= expected[fact] <= math.ceil(found), figure  # rounded up or down


def test_stored_runs_are_fresh() -> None:
    """A run of another seed gives what `make distribution` stored."""
    assert figures_of(outcome_of("alone, circulated, 200", 7)) == RUNS["alone, circulated, 200"][7]
    assert {*RUNS} == {*SCHEMES}


def test_orderings() -> None:
    """Over all seeds: with how many standbys peaks and queues are lower, and what one place reaches with 64."""
    facts = dict(FACT["orderings_over_21_seeds"])

    def fewer(figure: str, less: str, more: str) -> str:
        return f"{sum(RUNS[less][s][figure] < RUNS[more][s][figure] for s in SEEDS)}/21"

    def count(name: str, holds: Callable[[Any], bool], figure: str) -> str:
        return f"{sum(holds(RUNS[name][seed][figure]) for seed in SEEDS)}/21"

    none, at_50, at_100, at_200, one = "none", *(f"alone, circulated, {n}" for n in (50, 100, 200)), "one place, 64"
    assert len(SEEDS) == 21
    assert fewer("peak_arrival", one, at_200) == facts["peak: 64 with one place < 200 circulated"]
    assert fewer("peak_arrival", at_200, at_100) == facts["peak: 200 < 100 circulated"]
    assert fewer("peak_arrival", at_100, at_50) == facts["peak: 100 < 50 circulated"]
    assert fewer("peak_arrival", at_50, none) == facts["peak: 50 circulated < none"]
    pairs = [fewer("longest_queue", *pair) for pair in ((at_200, at_100), (at_100, at_50), (at_50, none))]
    assert [*{*pairs}] == [facts["queue: 200 < 100 < 50 < none, circulated"].removesuffix(" each pair")]
    against_random = [fewer("peak_arrival", f"alone, circulated, {n}", f"alone, random, {n}") for n in (50, 100, 200)]
    assert ", ".join(against_random) == facts["peak: circulated < random, 50 / 100 / 200"]
    assert count(at_200, lambda at: at is not None, "reached") == facts["reaches 120 %: 200 circulated"]
    assert count(at_200, lambda at: at is not None, "stayed") == facts["stays at or under 120 %: 200 circulated"]
    assert (
        count(one, lambda at: at in (4, 5), "stayed")
        == facts["stays at or under 120 % from second 4 or 5: 64 with one place"]
    )


def test_an_original_that_is_hot_again() -> None:
    """Where an original is hot twice running, its queue without standbys doubles, and fewer copies change."""
    again = max(SEEDS, key=lambda seed: RUNS["none"][seed]["longest_queue"])
    assert f"its queue is {round(RUNS['none'][again]['longest_queue'])}" in FACT["hot_again"]
    sent = [
        of("control_messages", RUNS["alone, circulated, 50"][again], one_place=False),
        of("control_messages", RUNS["one place, 64"][again], one_place=True),
    ]
    assert f"control messages {sent[0]} and {sent[1]}" in FACT["hot_again"]


def of(figure: str, run: dict[str, Any], *, one_place: bool) -> float:
    """A figure of a stored run. The facts count two messages for each release of one place."""
    if figure == "control_messages":
        return 2 * run["growths"] + (2 if one_place else 1) * run["releases"]
    return run[figure]
