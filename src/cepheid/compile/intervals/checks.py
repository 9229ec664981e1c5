"""The checks of an interval pattern, each placed where the events that it is about are bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cepheid.compile.intervals.tables import Check
from cepheid.lang.intervals.values import Related, Relation, related, variables_of
from cepheid.plan.conditions.script import can_fail
from cepheid.plan.intervals.bounds import Bounds, excludes, listed_pairs
from cepheid.plan.intervals.plan import IntervalPlan

RELATION_NUMBERS = {relation: number for number, relation in enumerate(Relation)}

_Row: TypeAlias = tuple[int, int, int, int, int, tuple[int, ...]]
_NO_COUNTS = (0,) * 5


def placed_checks(plan: IntervalPlan, order: Sequence[int], bounds: Bounds) -> Iterator[list[_Row]]:
    """For each number of bound events, the checks that become possible with the last of these events. What follows
    from `bounds`, which all bound events satisfy, is not checked.

    A script that can fail comes after all other checks, because SQL would not compute it for events that they reject.
    """
    checks = list(_checks(plan, bounds))
    for there in range(1, len(order) + 1):
        known, last = set(order[:there]), there == len(order)
        ready = [(row, fails) for row, about, fails in checks if order[there - 1] in about and about <= known]
        now = [row for row, fails in ready if not fails]
        if last:
            now += [row for row, _, fails in checks if fails]
        # A condition without variables is checked at the beginning.
        yield ([row for row, about, fails in checks if not about and not fails] if there == 1 else []) + now


def _checks(plan: IntervalPlan, bounds: Bounds) -> Iterator[tuple[_Row, frozenset[int], bool]]:
    """Each check, with the variables that it is about, and whether it can fail."""
    for pair in plan.pattern.pairs:
        if not _follows(plan, (pair.left,), pair.relations, (pair.right,), bounds):
            yield _relation_check(plan, (pair.left,), pair.relations, (pair.right,))
    for node in related(plan.pattern.tree) if plan.pattern.tree is not None else ():
        left, right = tuple(variables_of(node.left)), tuple(variables_of(node.right))
        if not _follows(plan, left, (node.relation,), right, bounds):
            yield _relation_check(plan, left, (node.relation,), right)
        if node.counts is not None:
            yield _count_check(plan, node, left, right)
    for before, after in listed_pairs(plan.pattern):
        parts = variable_set(plan, (before,)), variable_set(plan, (after,))
        yield (Check.LISTED, *parts, 0, 0, _NO_COUNTS), _numbers(plan, (before, after)), False
    for number, one in enumerate(plan.scripts):
        yield (Check.SCRIPT, 0, 0, 0, number, _NO_COUNTS), one.variables, can_fail(one.script)


def _follows(
    plan: IntervalPlan, left: tuple[str, ...], relations: Sequence[Relation], right: tuple[str, ...], bounds: Bounds
) -> bool:
    """Whether one of the relations holds between all events that satisfy the bounds."""
    if len(left) == len(right) == 1:
        events = plan.number(left[0]), plan.number(right[0])
        return all(excludes(bounds, *events, other) for other in Relation if other not in relations)
    if Relation.AFTER in relations:
        left, right = right, left
    elif Relation.BEFORE not in relations:
        return False
    pairs = [(2 * plan.number(v) + 1, 2 * plan.number(w)) for v in left for w in right]
    return all(bounds[end, start] < 0 for end, start in pairs)


def _relation_check(
    plan: IntervalPlan, left: tuple[str, ...], relations: Sequence[Relation], right: tuple[str, ...]
) -> tuple[_Row, frozenset[int], bool]:
    allowed = sum(1 << RELATION_NUMBERS[relation] for relation in set(relations))
    row = (Check.RELATION, variable_set(plan, left), variable_set(plan, right), allowed, 0, _NO_COUNTS)
    return row, _numbers(plan, (*left, *right)), False


def _count_check(
    plan: IntervalPlan, node: Related, left: tuple[str, ...], right: tuple[str, ...]
) -> tuple[_Row, frozenset[int], bool]:
    found = node.counts
    assert found is not None
    counts = (found.contain, found.finished_by, found.meet, found.overlap, found.start)
    return (
        (Check.COUNTS, variable_set(plan, left), variable_set(plan, right), 0, 0, counts),
        _numbers(plan, (*left, *right)),
        False,
    )


def _numbers(plan: IntervalPlan, variables: Sequence[str]) -> frozenset[int]:
    return frozenset(map(plan.number, variables))


def variable_set(plan: IntervalPlan, variables: Sequence[str]) -> int:
    """A set of variables as one number."""
    return sum(1 << number for number in _numbers(plan, variables))
