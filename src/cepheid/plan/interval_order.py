"""In which order the events of a match are looked for, once one of them has come: the cheapest tree of joins.

Whichever event comes last completes a match, so there is an order for each variable to begin with. The cost of an order
is the number of partial results that it makes, as the types' frequencies and the conditions let one expect; the least
is found over all orders, by dynamic programming over sets of variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from cepheid.lang.interval import IntervalPattern
from cepheid.lang.interval_text import interval_text
from cepheid.plan.interval_bounds import FREE, Bounds, bounds_of
from cepheid.plan.interval_plan import IntervalPlan
from cepheid.plan.parameters import described
from cepheid.plan.script import Operation, Operator

_BOTH_SIDES, _ONE_SIDE, _EQUALITY, _OTHER = 0.02, 0.4, 0.1, 0.5
"""The share of events that a bound on both sides, or on one, lets pass, and a condition that is an equality or not."""

_EXACT = 12
"""Up to so many variables all orders are compared; of more each next one is the best for the moment."""


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
    everyone = frozenset(range(len(rates)))

    def results(chosen: frozenset[int]) -> float:
        size = 1.0
        for v in chosen - {first}:
            size *= rates[v]
        for pair in combinations(sorted(chosen), 2):
            size *= selectivity[frozenset(pair)]
        return size

    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset({first}): (0.0, (first,))}
    for _ in range(len(rates) - 1):
        following: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for chosen, (cost, order) in best.items():
            for v in everyone - chosen:
                larger = chosen | {v}
                candidate = cost + results(larger), (*order, v)
                if larger not in following or candidate < following[larger]:
                    following[larger] = candidate
        best = following if len(rates) <= _EXACT else dict([min(following.items(), key=lambda item: item[1])])
    cost, order = best[everyone]
    return order, cost


def explain_interval_pattern(pattern: IntervalPattern) -> str:
    """What the pattern looks for: its query, and the types."""
    lines = [f"Pattern {pattern.name!r}: intervals of", *(f"  {line}" for line in interval_text(pattern).split("\n"))]
    if pattern.types is not None:
        lines.append(f"Types: column {pattern.types.column!r}")
        lines += [f"  {kind} is a kind of {', '.join(above)}" for kind, above in pattern.types.kinds if above]
    return "\n".join([*lines, *described(pattern.parameters)])


def explain_intervals(plan: IntervalPlan, frequencies: Mapping[str, float] | None = None) -> str:
    """The plan as text: what the pattern looks for, what is asked of each event, and in which order events are looked
    for.
    """
    pattern, order = plan.pattern, join_order(plan, frequencies)
    lines = [explain_interval_pattern(pattern), "Events:"]
    for variable, bit in zip(pattern.variables, plan.variable_bits, strict=True):
        negated = "" if pattern.variables.index(variable) < plan.positives else "not "
        lines.append(f"  {negated}{variable}: {plan.bits[bit].sql}")
    lines.append("Joins:")
    for variables, cost in zip(order.orders, order.costs, strict=True):
        names = [pattern.variables[v] for v in variables]
        lines.append(f"  when {names[0]} comes: {' ⋈ '.join(names)}, about {cost:.3g} partial results")
    return "\n".join(lines)


def join_diagram(plan: IntervalPlan, frequencies: Mapping[str, float] | None = None) -> str:
    """The joins as a Mermaid flowchart: for each variable that may come last a tree, and negations above it."""
    names, orders = plan.pattern.variables, join_order(plan, frequencies).orders
    lines = ["flowchart BT"]
    for order in orders:
        first = names[order[0]]
        at = f"{first}0"
        lines.append(f'    {at}["{first} comes"]')
        for level, variable in enumerate(order[1:], 1):
            joined = f"{first}{level}"
            lines.append(f'    {joined}(("⋈")) ')
            lines.append(f"    {at} --> {joined}")
            lines.append(f'    {first}{level}s[("{names[variable]}")] --> {joined}')
            at = joined
        for number, negation in enumerate(plan.pattern.negations):
            lines.append(f'    {at} --> {first}n{number}{{"no {negation.variable}"}}')
            at = f"{first}n{number}"
    return "\n".join(line.rstrip() for line in lines)
