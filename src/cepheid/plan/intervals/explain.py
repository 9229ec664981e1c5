"""Interval patterns and plans as readable text, and the joins as a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.printer import interval_text
from cepheid.lang.pictures.mermaid import label
from cepheid.plan.conditions.parameters import described
from cepheid.plan.intervals.growth import interval_warnings
from cepheid.plan.intervals.join_order import join_order, rates_of
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.semantics.explain import lifted_text, shortened
from cepheid.plan.undivided import division_lines


def explain_interval_pattern(pattern: IntervalPattern) -> str:
    """The pattern as text: its query, the types, and warnings for input that does not end."""
    return "\n".join([*_query(pattern), *_warnings(interval_warnings(pattern))])


def explain_intervals(
    plan: IntervalPlan,
    frequencies: Mapping[str, float] | None = None,
    *,
    ways: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """The plan as text: what the pattern looks for, what is evaluated for each event, in which order events are looked
    up, the ways to divide a key, and warnings.
    """
    pattern, order = plan.pattern, join_order(plan, rates_of(plan, frequencies))
    by_id = "" if (id_ := plan.schema.event_id) is None else f", which rows with the same {id_!r} open and close"
    lines = [*_query(pattern), *lifted_text(pattern.knowledge, plan.answers), f"Events{by_id}:"]
    for variable, bit in zip(pattern.variables, plan.variable_bits, strict=True):
        negated = "" if pattern.variables.index(variable) < plan.positives else "not "
        lines.append(f"  {negated}{variable}: {shortened(plan.bits[bit].sql)}")
    lines.append("Joins:")
    for variables, cost in zip(order.orders, order.costs, strict=True):
        names = [pattern.variables[v] for v in variables]
        number = f"{cost:.3g}"
        results = "result" if number == "1" else "results"
        lines.append(f"  when {names[0]} comes: {' ⋈ '.join(names)}, about {number} partial {results}")
    return "\n".join([*lines, *division_lines(ways), *_warnings(warnings)])


def _query(pattern: IntervalPattern) -> list[str]:
    lines = [f"Pattern {pattern.name!r}: intervals of", *(f"  {line}" for line in interval_text(pattern).split("\n"))]
    if pattern.types is not None:
        lines.append(f"Types: column {pattern.types.column!r}")
        lines += [f"  {kind} is a kind of {', '.join(above)}" for kind, above in pattern.types.kinds if above]
    return [*lines, *described(pattern.parameters)]


def _warnings(warnings: Sequence[str]) -> list[str]:
    return [f"Warning: {warning}" for warning in warnings]


def join_diagram(plan: IntervalPlan, frequencies: Mapping[str, float] | None = None) -> str:
    """The joins as a Mermaid flowchart: one tree for each variable that may come last, with the negations above it."""
    names, orders = [label(v) for v in plan.pattern.variables], join_order(plan, rates_of(plan, frequencies)).orders
    lines = ["flowchart BT"]
    for order in orders:
        tree = f"v{order[0]}"
        at = f"{tree}_0"
        lines.append(f'    {at}["{names[order[0]]} comes"]')
        for level, variable in enumerate(order[1:], 1):
            joined = f"{tree}_{level}"
            lines.append(f'    {joined}(("⋈"))')
            lines.append(f"    {at} --> {joined}")
            lines.append(f'    {joined}s[("{names[variable]}")] --> {joined}')
            at = joined
        for number, name in enumerate(names[plan.positives :]):
            lines.append(f'    {at} --> {tree}_n{number}{{"no {name}"}}')
            at = f"{tree}_n{number}"
    return "\n".join(lines)
