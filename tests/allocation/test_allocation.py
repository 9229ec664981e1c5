"""How a load is divided: averages, thresholds, the pool of standbys, and signed counts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.allocation.load import smoothed
from cepheid.allocation.pool import allocated, least_busy, standby_loads
from cepheid.allocation.references import counted
from cepheid.allocation.thresholds import Thresholds, next_copies, wanted_copies

LOADS = st.floats(0, 5000)


# Averages


def test_each_second_counts_for_a_fifth() -> None:
    """Each second, the average moves by a fifth of its distance from the load."""
    average = 0.0
    seen = [average := smoothed(average, 1000) for _ in range(5)]
    assert seen == pytest.approx([200, 360, 488, 590.4, 672.32])


def test_a_load_counts_for_as_long_as_it_lasted() -> None:
    """A load that lasted two of five seconds counts for two fifths; one that lasted longer than all replaces them."""
    assert smoothed(100, 200, seconds=2) == 140
    assert smoothed(100, 200, seconds=60) == 200
    assert smoothed(100, 200, seconds=1, over=10) == 110


@given(before=LOADS, load=LOADS, seconds=st.floats(0.01, 100))
def test_an_average_is_between_what_it_averages(before: float, load: float, seconds: float) -> None:
    """The new average lies between the old one and the load."""
    slack = 1e-9 * (before + load)
    assert min(before, load) - slack <= smoothed(before, load, seconds=seconds) <= max(before, load) + slack


# Thresholds


def test_copies_carry_at_most_80_percent() -> None:
    """A load of ten capacities needs twelve copies, because each thread shall carry at most 80 %."""
    assert [wanted_copies(load, capacity=100) for load in (0, 80, 81, 160, 161, 1005)] == [0, 0, 1, 1, 2, 12]
    assert wanted_copies(1000, capacity=100, thresholds=Thresholds(grow=1.0)) == 9


@pytest.mark.parametrize(
    ("load", "copies", "then"),
    [
        (80, 0, 0),
        (81, 0, 1),
        (1005, 0, 12),
        (1005, 12, 12),
        (521, 12, 12),  # between 40 % and 80 % of thirteen threads nothing changes
        (519, 12, 6),
        (0, 12, 0),
        (5, 1, 0),
        (2000, 0, 20),  # no more standbys than there are
    ],
)
def test_the_number_of_copies_changes_outside_of_the_thresholds(load: float, copies: int, then: int) -> None:
    """Copies are added over 80 % of what all threads can do, and released under 40 %, to what the load needs."""
    assert next_copies(load, copies, capacity=100, most=20) == then


@given(load=LOADS, copies=st.integers(0, 40), most=st.integers(0, 40))
def test_a_steady_load_has_a_steady_number_of_copies(load: float, copies: int, most: int) -> None:
    """Where the load does not change, the first decision is the last: copies do not come and go."""
    once = next_copies(load, min(copies, most), capacity=100, most=most)
    assert 0 <= once <= most
    assert next_copies(load, once, capacity=100, most=most) == once


@pytest.mark.parametrize(("grow", "shrink"), [(0.4, 0.8), (0.5, 0.5), (1.2, 0.4), (0.8, 0.0)])
def test_thresholds_that_cannot_work_are_refused(grow: float, shrink: float) -> None:
    """Thresholds in the wrong order, or outside of 0 to 1, are an error that names them."""
    message = rf"^grow={grow:g} and shrink={shrink:g} are not thresholds: 0 < shrink < grow <= 1 must hold$"
    with pytest.raises(ValueError, match=message):
        Thresholds(grow, shrink)


# The pool


def test_a_standby_carries_a_share_of_each_of_its_originals() -> None:
    """An original's load is divided evenly over itself and its copies."""
    assert standby_loads({"d31": 300, "d32": 100}, {"d31": ("s1", "s2"), "d32": ("s2",)}) == {"s1": 100, "s2": 150}


def test_the_least_busy_standbys_are_taken_first() -> None:
    """Standbys without copies come first, equally busy ones in their order, and those that have one are left out."""
    standbys = ["s1", "s2", "s3", "s4"]
    assert least_busy(standbys, {"s1": 5, "s3": 1}, 3) == ("s2", "s4", "s3")
    assert least_busy(standbys, {}, 3, without=("s2",)) == ("s1", "s3", "s4")
    assert least_busy(standbys, {}, 9) == ("s1", "s2", "s3", "s4")


def test_a_hot_original_takes_standbys_and_returns_them() -> None:
    """A hot original has copies while it is hot. Releasing some, it keeps the oldest."""
    standbys = ["s1", "s2", "s3", "s4"]
    hot = allocated({"d31": 240.0, "d32": 5.0}, {}, standbys, capacity=100)
    assert hot == {"d31": ("s1", "s2")}
    both = allocated({"d31": 240.0, "d32": 300.0}, hot, standbys, capacity=100)
    assert both == {"d31": ("s1", "s2"), "d32": ("s3", "s4", "s1")}
    cooler = allocated({"d31": 5.0, "d32": 130.0}, both, standbys, capacity=100)
    assert cooler == {"d32": ("s3",)}
    assert allocated({}, cooler, standbys, capacity=100) == {}


def test_the_hottest_original_is_served_first() -> None:
    """Where standbys are few, the hottest original takes the free ones and others share."""
    given_loads = {"d31": 150.0, "d32": 160.1}
    assert allocated(given_loads, {}, ["s1", "s2"], capacity=100) == {"d32": ("s1", "s2"), "d31": ("s1",)}


@given(rounds=st.lists(st.lists(LOADS, min_size=3, max_size=3), max_size=6), standbys=st.integers(0, 20))
def test_an_allocation_is_what_the_thresholds_want(rounds: list[list[float]], standbys: int) -> None:
    """Each original has as many copies as the thresholds want, on different standbys, and retains what it can."""
    pool, copies = range(standbys), dict[int, tuple[int, ...]]()
    for loads in rounds:
        before, copies = copies, allocated(dict(enumerate(loads)), copies, pool, capacity=100)
        for original, load in enumerate(loads):
            had, has = before.get(original, ()), copies.get(original, ())
            assert len(has) == next_copies(load, len(had), capacity=100, most=standbys)
            assert len({*has}) == len(has)
            assert has[: len(had)] == had[: len(has)]


# Signed counts


def test_a_release_may_overtake_its_request() -> None:
    """A count may be negative for a while; at zero it is gone."""
    assert counted({}, "d31", -1) == {"d31": -1}
    assert counted({"d31": -1, "d32": 2}, "d31", 1) == {"d32": 2}
    assert counted({"d32": 2}, "d32", 1) == {"d32": 3}


@given(st.permutations([("d31", 1), ("d31", 1), ("d31", -1), ("d31", -1), ("d32", 1), ("d32", -1), ("d32", 1)]))
def test_counts_do_not_depend_on_the_order(changes: list[tuple[str, int]]) -> None:
    """Requests and releases give the same counts in any order."""
    *_, last = itertools.accumulate(changes, lambda counts, change: counted(counts, *change), initial=dict[str, int]())
    assert last == {"d32": 1}
