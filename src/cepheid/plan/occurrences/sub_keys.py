"""Sub-keys of occurrences: values that all events of an occurrence have in common, so that they may extend the key.

A value is a sub-key if the equalities between the variables of an expression lead from each of its events to each other
one, and those of a `minus_if` from the events on its right to one on its left. Then an occurrence has events of one
value alone, and no event of another value takes it away. NULL equals nothing, so events without the value are a group
like any other, whose occurrences are single events.

Policies that choose among the occurrences of a key would see those of one value only, so they are excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.conditions.script import Operation, StageValue, can_fail, conjuncts
from cepheid.plan.conditions.script import Operator as ScriptOperator
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import OccurrencePlan, Operator
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.sub_keys import common_sub_keys, in_order, is_identified, side_of
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided

Groups: TypeAlias = list[frozenset[int]]
"""The events of each occurrence of an expression in groups of one value, by the variables (numbers) that they are bound
to. Each event is in a group; its variable, if it has one, may be bound to nothing.
"""


class _Equality(NamedTuple):
    """Two variables whose events have the same value."""

    value: Side
    variables: tuple[int, int]


def sub_keys_of_occurrences(plans: OccurrencePlans) -> tuple[Side, ...] | Undivided:
    """The sub-keys that all patterns have in common, with the columns' numbers among those of all patterns."""
    return common_sub_keys(plans, [sub_keys_of(plan) for plan in plans.each])


def sub_keys_of(plan: OccurrencePlan) -> tuple[Side, ...] | Undivided:
    """All sub-keys of the pattern, which together extend the key; otherwise the reasons why there are none."""
    reasons = (*_obstacles(plan),)
    equal = {one.value for operator in plan.operators for one in _equalities(operator)}
    tied = in_order(side for side in equal if not _untied(plan, side))
    if reasons or not tied:
        return Undivided(reasons or (_why_untied(plan, in_order(equal)),))
    if known := in_order(side for side in tied if is_identified(side, plan)):
        return known
    return Undivided(
        (f"{_names(tied, plan)} is not among the columns that identify an event: choose it with columns=",)
    )


def sub_keys_text(plan: OccurrencePlan) -> str:
    """Whether sub-keys divide a key, in words."""
    sides = sub_keys_of(plan)
    if isinstance(sides, Undivided):
        return f"by a value: cannot, because {sides.text}"
    same = "because all events of an occurrence have the same value"
    return f"by {_names(sides, plan)}: Spark does so in any case, {same}"


def _obstacles(plan: OccurrencePlan) -> Iterator[str]:
    """The clauses for which events of other values matter."""
    if plan.policy is not Policy.UNRESTRICTED:
        yield f"policy {plan.policy.value!r} chooses among all occurrences of a key"
    if any(operator.kind is Kind.DELAYED for operator in plan.operators):
        yield "plus makes temporal events, which have no value"
    if plan.semantics is not None:
        yield "what events mean is asked of all events of a key"
    if plan.limits.on_limit == "drop" or plan.limits.max_partial_matches is not None:
        yield "limits count the occurrences of a key"
    for operator in plan.operators:
        if operator.script is not None and can_fail(operator.script):
            yield f"the condition ({operator.text}) can fail, also on events of different values"


def _untied(plan: OccurrencePlan, side: Side) -> bool:
    """Whether an occurrence may have events of different values, or be taken away by some of another value."""

    @cache
    def groups(row: int) -> Groups:
        operator = plan.operators[row]
        of = [groups(operand) for operand in operator.operands]
        match operator.kind:
            case Kind.LEAF:
                return [frozenset()]
            case Kind.EITHER if all(len(one) == 1 for one in of):
                return [of[0][0] | of[1][0]]
            case Kind.BOTH | Kind.THEN | Kind.EITHER:
                return of[0] + of[1]
            case Kind.BOUND if plan.variables[operator.number].is_event:
                return [of[0][0] | {operator.number}]
            case Kind.FILTERED:
                return _merged(of[0], operator, side)
            case _:
                return of[0]

    def takes_away_others(row: int) -> bool:
        """Whether what is on the right of this minus may be of another value than what is on its left."""
        left, right = (groups(operand) for operand in plan.operators[row].operands)
        inside = frozenset[int]().union(*left)
        ties = (one.variables for one in _equalities(plan.operators[row]) if one.value == side)
        across = any((v in inside and w in right[0]) or (w in inside and v in right[0]) for v, w in ties)
        return len(right) > 1 or not across

    minus = [row for row, operator in enumerate(plan.operators) if operator.kind is Kind.WITHOUT]
    return len(groups(plan.root)) > 1 or any(map(takes_away_others, minus))


def _merged(groups: Groups, operator: Operator, side: Side) -> Groups:
    """The groups; those that the operator's equalities connect become one."""
    for value, variables in _equalities(operator):
        if value == side:
            same = [group for group in groups if group & {*variables}]
            groups = [group for group in groups if group not in same] + [frozenset[int]().union(*same)] * bool(same)
    return groups


def _equalities(operator: Operator) -> Iterator[_Equality]:
    """The equalities of one column of two variables that hold wherever the operator's condition does."""
    for part in conjuncts(operator.script):
        if isinstance(part, Operation) and part.operator is ScriptOperator.EQUAL:
            left, right = (side_of(operand) for operand in part.operands)
            if left and right and left[1] == right[1]:
                assert isinstance(left[0], StageValue), left
                assert isinstance(right[0], StageValue), right
                yield _Equality(left[1], (left[0].stage, right[0].stage))


def _why_untied(plan: OccurrencePlan, equal: tuple[Side, ...]) -> str:
    if not equal:
        return "no condition equates the same column of two of its events"
    minus = " or of those that a minus looks at" * any(operator.kind is Kind.WITHOUT for operator in plan.operators)
    return f"the equality of {_names(equal, plan)} is not one of all of its events{minus}"


def _names(sides: tuple[Side, ...], plan: OccurrencePlan) -> str:
    return " and ".join(plan.values[side.column].sql for side in sides)
