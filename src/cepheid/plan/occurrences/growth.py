"""The longest duration of the occurrences of each operator, and which patterns store more and more of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.occurrences.constants import UNBOUNDED, Kind
from cepheid.plan.occurrences.plan import OccurrencePlan, Operator


def windows_of(operators: Sequence[Operator], roots: Iterable[int]) -> list[int]:
    """For each operator, the longest duration of an occurrence that anything can still use, in microseconds; -1 if no
    root needs the operator.
    """
    windows = [-1] * len(operators)
    for root in roots:
        windows[root] = UNBOUNDED
    for row in range(len(operators) - 1, -1, -1):  # operators come after their operands
        operator, window = operators[row], windows[row]
        if operator.kind is Kind.WITHIN:
            window = min(window, operator.number)
        elif operator.kind is Kind.DELAYED:
            window = UNBOUNDED  # a temporal event is an instant, however long the occurrence before it
        for operand in operator.operands:
            windows[operand] = max(windows[operand], window)
    return windows


def spans_of(operators: Sequence[Operator]) -> list[int]:
    """For each operator, the longest duration that one of its occurrences can have, in microseconds."""
    spans: list[int] = []
    for operator in operators:
        match operator.kind:
            case Kind.LEAF | Kind.DELAYED:
                spans.append(0)
            case Kind.BOTH | Kind.THEN:
                spans.append(UNBOUNDED)
            case Kind.EITHER:
                spans.append(max(spans[operator.left], spans[operator.right]))
            case Kind.WITHIN:
                spans.append(min(spans[operator.left], operator.number))
            case _:
                spans.append(spans[operator.left])
    return spans


def occurrence_growth(plan: OccurrencePlan) -> Iterator[str]:
    """What a matcher stores of a key for ever, if the input does not end: one sentence per cause, with advice."""
    if plan.semantics is not None:
        stored = "what the events of each key say, as facts are never taken back"
        yield f"{stored}. That is needed because {plan.semantics.why}. Choose a key that ends, such as a session's"
    joins = [row for row, operator in enumerate(plan.operators) if operator.kind in (Kind.BOTH, Kind.THEN)]
    if plan.by_operator or plan.policy is Policy.SNOOP_RECENT or not joins:
        return  # an operator stores only the latest occurrence
    if plan.policy.is_context:
        stored = "all occurrences that no other has used up, as in a context within(…) drops none"
        yield f"{stored}. Take the policy 'recent', or 'unrestricted' with within(…)"
        return
    windows = windows_of(plan.operators, [plan.root])
    if any(windows[row] >= UNBOUNDED for row in joins):
        other = "" if plan.policy is Policy.RECENT else ", or take the policy 'recent'"
        yield f"all occurrences that a future event may be joined with. Bound them with within(…){other}"
