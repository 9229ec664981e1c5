"""In which order the events of a match are looked for, once one of them has come: the cheapest tree of joins.

Whichever event comes last completes a match, so there is an order for each variable to begin with. The cost of an order
is the number of partial results that it makes, as the types' frequencies and the conditions let one expect. Of up to
MOST_EXACT variables the least is found over all orders, by dynamic programming over sets of variables, which takes
twice as long and more for each further one; of more variables each next one is that which makes the fewest. Both are
DP-LD and GREEDY of Kolchinsky and Schuster, Join Query Optimization Techniques for Complex Event Processing
Applications, PVLDB 11(11), 2018.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from cepheid.plan.conditions.script import Operation, Operator
from cepheid.plan.intervals.bounds import FREE, Bounds, bounds_of
from cepheid.plan.intervals.plan import IntervalPlan

_BOTH_SIDES, _ONE_SIDE, _EQUALITY, _OTHER = 0.02, 0.4, 0.1, 0.5
"""The share of events that a bound on both sides, or on one, lets pass, and a condition that is an equality or not."""

MOST_EXACT = 9
"""Variables of which all orders are compared: of 9 in 23 ms, of 10 in 54, of 12 in a third of a second."""


@dataclass(frozen=True)
class JoinOrder:
    """For each variable that may come last, in which order the others are looked for, and what that may cost."""

    orders: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    """Expected partial results for an event of the variable; in multiples of what one event of each type would make."""


def join_order(plan: IntervalPlan, frequencies: Mapping[str, float] | None = None) -> JoinOrder:
    """The cheapest orders; `frequencies` has for types how many of their events there are, 1 where nothing is said."""
    known = frequencies or {}
    rates = [known.get(positive.type, 1.0) for positive in plan.pattern.positives]
    selectivity = _selectivities(plan, bounds_of(plan.pattern))
    found = [_cheapest(first, rates, selectivity) for first in range(plan.positives)]
    return JoinOrder(tuple(order for order, _ in found), tuple(cost for _, cost in found))


def _selectivities(plan: IntervalPlan, bounds: Bounds) -> dict[frozenset[int], float]:
    """For each two variables the share of pairs that may go together; of conditions on more what they say of two."""
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
    """Of sets of variables: partial results for an event of the first."""
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {start: (0.0, (first,))}
    for _ in range(len(rates) - 1):
        following: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for chosen, (cost, order) in best.items():
            for v in everyone - chosen:
                larger = chosen | {v}
                if larger not in sizes:
                    shares = prod(selectivity[frozenset((u, v))] for u in chosen)
                    sizes[larger] = sizes[chosen] * rates[v] * shares
                candidate = cost + sizes[larger], (*order, v)
                if larger not in following or candidate < following[larger]:
                    following[larger] = candidate
        best = following if len(rates) <= MOST_EXACT else dict([min(following.items(), key=lambda item: item[1])])
    cost, order = best[everyone]
    return order, cost
