"""The order in which the events of a match are looked up once one of them has come: the cheapest tree of joins.

Any event may come last and so complete a match. So there is one order for each variable to begin with. The cost of an
order is the number of partial results that it makes, as expected from the types' frequencies and the conditions. For up
to MOST_EXACT variables, dynamic programming over sets of variables finds the cheapest order; each further variable more
than doubles its time. For more variables, each next variable is the one that makes the fewest partial results. The two
algorithms are DP-LD and GREEDY of Kolchinsky and Schuster, Join Query Optimization Techniques for Complex Event
Processing Applications, PVLDB 11(11), 2018.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from cepheid.plan.conditions.script import Operation, Operator
from cepheid.plan.intervals.bounds import Bounds, bounds_of
from cepheid.plan.intervals.constants import FREE
from cepheid.plan.intervals.plan import IntervalPlan

_BOTH_SIDES, _ONE_SIDE, _EQUALITY, _OTHER = 0.02, 0.4, 0.1, 0.5
"""The assumed share of events that remain after a bound on both sides, a bound on one side, an equality, and another
condition.
"""

MOST_EXACT = 9
"""The most variables for which all orders are compared: 9 take 23 ms, 10 take 54 ms, 12 a third of a second."""


@dataclass(frozen=True)
class JoinOrder:
    """For each variable that may come last, the order in which the others are looked up, and its expected cost."""

    orders: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    """Expected partial results per event of the variable, if each type has as many events as its frequency says."""


def rates_of(plan: IntervalPlan, frequencies: Mapping[str, float] | None = None) -> list[float]:
    """One number of events per event of a match: that of its type, 1 where `frequencies` lacks it."""
    known = frequencies or {}
    return [known.get(positive.type, 1.0) for positive in plan.pattern.positives]


def join_order(plan: IntervalPlan, rates: Sequence[float]) -> JoinOrder:
    """The cheapest orders; `rates` has the number of events for each event of a match, in any unit."""
    selectivity = _selectivities(plan, bounds_of(plan.pattern))
    found = [_cheapest(first, rates, selectivity) for first in range(plan.positives)]
    return JoinOrder(tuple(order for order, _ in found), tuple(cost for _, cost in found))


def costs_of(plan: IntervalPlan, orders: Sequence[Sequence[int]], rates: Sequence[float]) -> tuple[float, ...]:
    """The expected costs of these orders, as those of a JoinOrder."""
    selectivity = _selectivities(plan, bounds_of(plan.pattern))
    return tuple(_cost(order, rates, selectivity) for order in orders)


def _cost(order: Sequence[int], rates: Sequence[float], selectivity: Mapping[frozenset[int], float]) -> float:
    size, cost = 1.0, 0.0
    for there in range(1, len(order)):
        size *= _growth(order[there], order[:there], rates, selectivity)
        cost += size
    return cost


def _growth(
    v: int, chosen: Iterable[int], rates: Sequence[float], selectivity: Mapping[frozenset[int], float]
) -> float:
    """How many partial results become of one when variable `v` is looked up."""
    return rates[v] * prod(selectivity[frozenset((u, v))] for u in chosen)


def _selectivities(plan: IntervalPlan, bounds: Bounds) -> dict[frozenset[int], float]:
    """For each pair of variables, the share of pairs of events that may match. A condition on more variables counts for
    each pair among them.
    """
    shares: dict[frozenset[int], float] = {}
    for u, v in combinations(range(plan.positives), 2):
        shares[frozenset((u, v))] = _share_of_bounds(u, v, bounds)
    for one in plan.scripts:
        equality = isinstance(one.script, Operation) and one.script.operator is Operator.EQUAL
        for pair in combinations(sorted(one.variables), 2):
            shares[frozenset(pair)] *= _EQUALITY if equality and len(one.variables) == 2 else _OTHER
    return shares


def _share_of_bounds(u: int, v: int, bounds: Bounds) -> float:
    ends = [(2 * v + i, 2 * u + j) for i in (0, 1) for j in (0, 1)]
    above = any(bounds[i, j] < FREE for i, j in ends)
    below = any(bounds[j, i] < FREE for i, j in ends)
    return _BOTH_SIDES if above and below else _ONE_SIDE if above or below else 1.0


def _cheapest(
    first: int, rates: Sequence[float], selectivity: Mapping[frozenset[int], float]
) -> tuple[tuple[int, ...], float]:
    everyone, start = frozenset(range(len(rates))), frozenset({first})
    sizes = {start: 1.0}
    """For each set of variables, the expected partial results per event of the first variable."""
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {start: (0.0, (first,))}
    for _ in range(len(rates) - 1):
        following: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for chosen, (cost, order) in best.items():
            for v in everyone - chosen:
                larger = chosen | {v}
                if larger not in sizes:
                    sizes[larger] = sizes[chosen] * _growth(v, chosen, rates, selectivity)
                candidate = cost + sizes[larger], (*order, v)
                if larger not in following or candidate < following[larger]:
                    following[larger] = candidate
        best = following if len(rates) <= MOST_EXACT else dict([min(following.items(), key=lambda item: item[1])])
    cost, order = best[everyone]
    return order, cost
