"""An interval plan as arrays: bounds, checks, negations and scripts, all that the kernel knows of a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cepheid.compile.script import Program, Slot, SlotKind, columns_of, orders_texts
from cepheid.compile.stages.tables import INSTRUCTION, Ints, Records
from cepheid.lang.intervals.values import (
    Comparison,
    End,
    Endpoint,
    Related,
    Relation,
    Scope,
    related,
    variables_of,
)
from cepheid.plan.conditions.script import can_fail
from cepheid.plan.intervals.bounds import FREE, bounds_of, comparison_differences, listed_pairs
from cepheid.plan.intervals.growth import Purge, guard_of, purge_of
from cepheid.plan.intervals.join_order import join_order
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import Limits


class Check(IntEnum):
    """What is looked at once the events that it is about are there."""

    SCRIPT = 0
    """Script number `script` is true."""
    RELATION = 1
    """What `left` and `right` (sets of variables) span is in one of `relations`, a set of numbers of Relation."""
    COUNTS = 2
    """Of the events of `left` so many as `counts` contain, are finished by, meet, overlap and start that of `right`."""
    LISTED = 3
    """The event of `left` is not behind that of `right` in order of (start, end)."""


CHECK = np.dtype(
    [
        ("kind", np.int64),
        ("left", np.int64),
        ("right", np.int64),
        ("relations", np.int64),
        ("script", np.int64),
        ("counts", np.int64, (5,)),
    ]
)
NEGATION = np.dtype(
    [
        ("scope", np.int64),  # a number of Scope, or -1
        ("left", np.int64),  # a set of variables
        ("right", np.int64),
        ("order", np.int64),  # its differences: IntervalTables.differences[order:order_end]
        ("order_end", np.int64),
        ("scripts", np.int64),  # IntervalTables.negation_scripts[scripts:scripts_end]
        ("scripts_end", np.int64),
        ("guard", np.int64),
    ]
)
DIFFERENCE = np.dtype([("left", np.int64), ("right", np.int64), ("most", np.int64)])
"""Endpoint left - endpoint right <= most; 2 v is the start of variable v, 2 v + 1 its end."""
JOIN_SETTINGS = np.dtype(
    [
        ("positives", np.int64),
        ("delay", np.int64),  # microseconds
        ("told", np.int64),  # 1: the clock goes where it is told to; 0: it is the latest end of an event
        ("by_end", np.int64),  # 1: lateness is that of ends
        ("most_matches", np.int64),  # that one event completes
        ("drops", np.int64),  # 1: of more those with the earliest start are dropped
    ]
)
JOIN_SCRIPT = np.dtype([("start", np.int64), ("end", np.int64)])

SCOPES = {scope: number for number, scope in enumerate(Scope)}
RELATION_NUMBERS = {relation: number for number, relation in enumerate(Relation)}


class IntervalTables(NamedTuple):
    """A compiled interval pattern of n events and t variables."""

    settings: Records
    """(1,) JOIN_SETTINGS."""
    bits: Ints
    """(t,) the bit that events of a variable have."""
    bounds: Ints
    """(2 n, 2 n) endpoint i - endpoint j <= bounds[i, j], FREE for no bound."""
    order: Ints
    """(n, n) row v: the order in which events are looked for when one of variable v has come, v itself first."""
    checks: Records
    """(any,) CHECK."""
    check_at: Ints
    """(n * n + 1,) when d events of row v are there, checks[check_at[n v + d - 1]:check_at[n v + d]] are looked at."""
    negations: Records
    """(t - n,) NEGATION."""
    differences: Records
    """(any,) DIFFERENCE."""
    negation_scripts: Ints
    scripts: Records
    """(scripts,) JOIN_SCRIPT: where a script is in the code."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints


@dataclass(frozen=True)
class CompiledIntervals:
    """An interval plan ready to run."""

    plan: IntervalPlan
    tables: IntervalTables
    string_constants: dict[int, str]
    """Strings among the constants, by number; their codes are the matcher's."""
    script_columns: frozenset[int]
    orders_texts: bool
    purges: tuple[Purge, ...]
    """Of each negation."""
    delay: int | None
    lateness: End
    told: bool
    """Whether the clock goes where it is told to, and no event moves it."""


def compile_intervals(
    plan: IntervalPlan,
    *,
    delay: int | None,
    lateness: End,
    frequencies: Mapping[str, float] | None = None,
    told: bool = False,
) -> CompiledIntervals:
    """`delay` None: no event is late."""
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
                    told,
                    lateness is End.END,
                    *join_limits(plan.limits).values(),
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
        told=told,
    )


def join_limits(limits: Limits) -> dict[str, int]:
    """Those of JOIN_SETTINGS, in its order."""
    return {"most_matches": limits.max_matches_per_event, "drops": limits.on_limit == "drop"}


# Checks

_Row = tuple[int, int, int, int, int, tuple[int, ...]]
_NO_COUNTS = (0,) * 5


def _placed_checks(plan: IntervalPlan, order: Sequence[int]) -> Iterator[list[_Row]]:
    """For each number of events that are there, those that can be looked at then and not before.

    A script that can fail waits for all the others: SQL would not compute it for events that these refuse.
    """
    checks = list(_checks(plan))
    for there in range(1, len(order) + 1):
        known, last = set(order[:there]), there == len(order)
        ready = [(row, fails) for row, about, fails in checks if order[there - 1] in about and about <= known]
        now = [row for row, fails in ready if not fails]
        if last:
            now += [row for row, _, fails in checks if fails]
        # A condition without variables is looked at in the beginning.
        yield ([row for row, about, fails in checks if not about and not fails] if there == 1 else []) + now


def _checks(plan: IntervalPlan) -> Iterator[tuple[_Row, frozenset[int], bool]]:
    """Each with the variables that it is about, and whether it can fail."""
    for pair in plan.pattern.pairs:
        yield _relation_check(plan, (pair.left,), pair.relations, (pair.right,))
    for node in related(plan.pattern.tree) if plan.pattern.tree is not None else ():
        left, right = tuple(variables_of(node.left)), tuple(variables_of(node.right))
        yield _relation_check(plan, left, (node.relation,), right)
        if node.counts is not None:
            yield _count_check(plan, node, left, right)
    for before, behind in listed_pairs(plan.pattern):
        parts = _set(plan, (before,)), _set(plan, (behind,))
        yield (Check.LISTED, *parts, 0, 0, _NO_COUNTS), _numbers(plan, (before, behind)), False
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
                -1 if negation.scope is None else SCOPES[negation.scope],
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
