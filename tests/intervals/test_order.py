"""The order in which events are joined: the cheapest one, or, for many variables, the cheapest next step each time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.intervals.test_problems import planned

from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.plan.intervals.join_order import MOST_EXACT, join_order
from cepheid.plan.intervals.plan import IntervalPlan

Equalities = set[tuple[int, int]]


def chain(count: int, equalities: Equalities) -> IntervalPlan:
    """A pattern of so many variables with one type each. The given variables are equal in a column, which a tenth of
    the pairs satisfies.
    """
    pattern = IntervalPattern.pal(**{f"v{i}": f"T{i}" for i in range(count)})
    for one, other in equalities:
        pattern = pattern.where(f"v{one}.user = v{other}.user")
    return planned(pattern)


def results(chosen: Sequence[int], rates: Sequence[float], equalities: Equalities) -> float:
    """The number of partial results for one event of the first variable."""
    size = 1.0
    for v in chosen[1:]:
        size *= rates[v]
    for pair in combinations(sorted(chosen), 2):
        size *= 0.1 if pair in equalities else 1
    return size


def cost(order: Sequence[int], rates: Sequence[float], equalities: Equalities) -> float:
    return sum(results(order[:length], rates, equalities) for length in range(2, len(order) + 1))


def drawn(count: int) -> tuple[st.SearchStrategy[list[float]], st.SearchStrategy[Equalities]]:
    rates = st.lists(st.sampled_from([0.5, 1.0, 3.0, 20.0]), min_size=count, max_size=count)
    return rates, st.sets(st.sampled_from([*combinations(range(count), 2)]), max_size=count)


@settings(max_examples=30, deadline=None)
@given(*drawn(5))
def test_no_order_of_few_variables_is_cheaper(rates: list[float], equalities: Equalities) -> None:
    """With few variables, all orders that begin with a given variable are compared."""
    found = join_order(chain(5, equalities), rates)
    for first, (order, reported) in enumerate(zip(found.orders, found.costs, strict=True)):
        assert order[0] == first
        assert reported == pytest.approx(cost(order, rates, equalities))
        least = min(cost(other, rates, equalities) for other in permutations(range(5)) if other[0] == first)
        assert reported == pytest.approx(least)


@settings(max_examples=10, deadline=None)
@given(*drawn(MOST_EXACT + 1))
def test_each_next_one_of_many_variables_is_the_cheapest(rates: list[float], equalities: Equalities) -> None:
    """With many variables, comparing all orders would take too long."""
    count = len(rates)
    found = join_order(chain(count, equalities), rates)
    for order, reported in zip(found.orders, found.costs, strict=True):
        assert sorted(order) == list(range(count))
        assert reported == pytest.approx(cost(order, rates, equalities))
        for length in range(1, count):
            sizes = [results((*order[:length], v), rates, equalities) for v in range(count) if v not in order[:length]]
            assert results(order[: length + 1], rates, equalities) == pytest.approx(min(sizes))
