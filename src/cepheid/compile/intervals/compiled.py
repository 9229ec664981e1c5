"""An interval plan as arrays (bounds, checks, negations, scripts): everything the kernel knows about a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cepheid.compile.arrays import INSTRUCTION
from cepheid.compile.instructions import SlotKind
from cepheid.compile.intervals.tables import (
    CHECK,
    DIFFERENCE,
    JOIN_SCRIPT,
    JOIN_SETTINGS,
    NEGATION,
    Check,
    IntervalTables,
    ScopeNumber,
)
from cepheid.compile.script import Program, Slot, columns_of, orders_texts
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import Comparison, Endpoint, Related, Relation, Window, related, variables_of
from cepheid.plan.conditions.script import can_fail
from cepheid.plan.intervals.bounds import bounds_of, comparison_differences, listed_pairs
from cepheid.plan.intervals.constants import FREE
from cepheid.plan.intervals.growth import Purge, guard_of, purge_of
from cepheid.plan.intervals.join_order import join_order
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import Words

RELATION_NUMBERS = {relation: number for number, relation in enumerate(Relation)}


@dataclass(frozen=True)
class CompiledIntervals:
    """An interval plan ready to run."""

    plan: IntervalPlan
    tables: IntervalTables
    string_constants: dict[int, str]
    """The strings among the constants, by number. The matcher sets their codes."""
    deadlines: ClassVar[None] = None
    script_columns: frozenset[int]
    orders_texts: bool
    purges: tuple[Purge, ...]
    """One per negation."""
    delay: int | None
    lateness: End
    external_clock: bool
    """Whether the clock is set from outside, and not moved by events."""


def compile_intervals(
    plan: IntervalPlan,
    *,
    delay: int | None,
    lateness: End,
    frequencies: Mapping[str, float] | None = None,
    external_clock: bool = False,
    may_start: int = 0,
) -> CompiledIntervals:
    """The plan as arrays. `delay` is in microseconds; None: no event is late. `may_start` is the bit of the events that
    may be first in a match; 0: any may.
    """
    slots = tuple(Slot(SlotKind.LAST, stage) for stage in range(len(plan.pattern.variables)))
    program = Program(slots, [value.type for value in plan.values])
    joint = [one for scripts in (plan.scripts, *plan.negated) for one in scripts]
    ranges = [program.add(one.script) for one in joint]
    orders = join_order(plan, frequencies).orders
    checks = [check for order in orders for check in _placed_checks(plan, order)]
    negations, differences, negation_scripts = _negations(plan, lateness)
    tables = IntervalTables(
        settings=np.array(
            [
                (
                    plan.positives,
                    FREE if delay is None else delay,
                    external_clock,
                    lateness is End.END,
                    FREE if plan.window is None else min(plan.window, FREE),
                    plan.pattern.window_of is Window.STARTS,
                    *join_limits(plan.limits).values(),
                    may_start,
                )
            ],
            JOIN_SETTINGS,
        ),
        bits=np.array(plan.variable_bits, np.int64),
        bounds=bounds_of(plan.pattern),
        order=np.array(orders, np.int64),
        checks=np.array([row for level in checks for row in level], CHECK),
        check_at=np.cumsum([0, *map(len, checks)]).astype(np.int64),
        negations=np.array(negations, NEGATION),
        differences=np.array(differences, DIFFERENCE),
        negation_scripts=np.array(negation_scripts, np.int64),
        scripts=np.array(ranges, JOIN_SCRIPT),
        code=np.array(program.instructions, INSTRUCTION),
        constants=np.array(program.constants, np.int64),
    )
    return CompiledIntervals(
        plan=plan,
        tables=tables,
        string_constants=program.strings,
        script_columns=frozenset(column for one in joint for column in columns_of(one.script)),
        orders_texts=any(orders_texts(one.script) for one in joint),
        purges=tuple(purge_of(plan.pattern, negation) for negation in plan.pattern.negations),
        delay=delay,
        lateness=lateness,
        external_clock=external_clock,
    )


@dataclass(frozen=True)
class CompiledIntervalPlans:
    """Several plans, and which events matter to each: the events of one of its types."""

    plans: IntervalPlans

    @property
    def relevant_to(self) -> tuple[Words, ...]:
        """For each pattern, a mask of all plans' bits: an event with one of them matters to the pattern."""
        plans = zip(self.plans.each, self.plans.places, strict=True)
        return tuple(self.plans.words(place, (1 << len(plan.bits)) - 1) for plan, place in plans)


def join_limits(limits: Limits) -> dict[str, int]:
    """The fields of JOIN_SETTINGS that limits decide, in their order."""
    return {"most_matches": limits.max_matches_per_event, "drops": limits.on_limit == "drop"}


# Checks

_Row = tuple[int, int, int, int, int, tuple[int, ...]]
_NO_COUNTS = (0,) * 5


def _placed_checks(plan: IntervalPlan, order: Sequence[int]) -> Iterator[list[_Row]]:
    """For each number of bound events, the checks that become possible with the last of these events.

    A script that can fail comes after all other checks, because SQL would not compute it for events that they reject.
    """
    checks = list(_checks(plan))
    for there in range(1, len(order) + 1):
        known, last = set(order[:there]), there == len(order)
        ready = [(row, fails) for row, about, fails in checks if order[there - 1] in about and about <= known]
        now = [row for row, fails in ready if not fails]
        if last:
            now += [row for row, _, fails in checks if fails]
        # A condition without variables is checked at the beginning.
        yield ([row for row, about, fails in checks if not about and not fails] if there == 1 else []) + now


def _checks(plan: IntervalPlan) -> Iterator[tuple[_Row, frozenset[int], bool]]:
    """Each check, with the variables that it is about, and whether it can fail."""
    for pair in plan.pattern.pairs:
        yield _relation_check(plan, (pair.left,), pair.relations, (pair.right,))
    for node in related(plan.pattern.tree) if plan.pattern.tree is not None else ():
        left, right = tuple(variables_of(node.left)), tuple(variables_of(node.right))
        yield _relation_check(plan, left, (node.relation,), right)
        if node.counts is not None:
            yield _count_check(plan, node, left, right)
    for before, after in listed_pairs(plan.pattern):
        parts = _set(plan, (before,)), _set(plan, (after,))
        yield (Check.LISTED, *parts, 0, 0, _NO_COUNTS), _numbers(plan, (before, after)), False
    for number, one in enumerate(plan.scripts):
        yield (Check.SCRIPT, 0, 0, 0, number, _NO_COUNTS), one.variables, can_fail(one.script)


def _relation_check(
    plan: IntervalPlan, left: tuple[str, ...], relations: Sequence[Relation], right: tuple[str, ...]
) -> tuple[_Row, frozenset[int], bool]:
    allowed = sum(1 << RELATION_NUMBERS[relation] for relation in set(relations))
    row = (Check.RELATION, _set(plan, left), _set(plan, right), allowed, 0, _NO_COUNTS)
    return row, _numbers(plan, (*left, *right)), False


def _count_check(
    plan: IntervalPlan, node: Related, left: tuple[str, ...], right: tuple[str, ...]
) -> tuple[_Row, frozenset[int], bool]:
    found = node.counts
    assert found is not None
    counts = (found.contain, found.finished_by, found.meet, found.overlap, found.start)
    return (Check.COUNTS, _set(plan, left), _set(plan, right), 0, 0, counts), _numbers(plan, (*left, *right)), False


def _numbers(plan: IntervalPlan, variables: Sequence[str]) -> frozenset[int]:
    return frozenset(map(plan.number, variables))


def _set(plan: IntervalPlan, variables: Sequence[str]) -> int:
    return sum(1 << number for number in _numbers(plan, variables))


# Negations


def _negations(
    plan: IntervalPlan, lateness: End
) -> tuple[list[tuple[int, ...]], list[tuple[int, int, int]], list[int]]:
    rows, differences, scripts = list[tuple[int, ...]](), list[tuple[int, int, int]](), list[int]()
    number = len(plan.scripts)
    for negation, joint in zip(plan.pattern.negations, plan.negated, strict=True):
        order, first = len(differences), len(scripts)
        differences += [d for comparison in negation.order for d in _differences(plan, comparison)]
        scripts += range(number, number + len(joint))
        number += len(joint)
        rows.append(
            (
                -1 if negation.scope is None else ScopeNumber[negation.scope.name],
                _set(plan, negation.left),
                _set(plan, negation.right),
                *(order, len(differences)),
                *(first, len(scripts)),
                guard_of(negation, lateness),
            )
        )
    return rows, differences, scripts


def _differences(plan: IntervalPlan, comparison: Comparison) -> Iterator[tuple[int, int, int]]:
    def number(endpoint: Endpoint) -> int:
        return 2 * plan.number(endpoint.variable) + (endpoint.end is End.END)

    for left, right, most in comparison_differences(comparison):
        yield number(left), number(right), most
