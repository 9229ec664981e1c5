"""An interval plan as arrays (bounds, checks, negations, scripts): everything the kernel knows about a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cepheid.compile.arrays import INSTRUCTION
from cepheid.compile.instructions import SlotKind
from cepheid.compile.intervals.checks import variable_set
from cepheid.compile.intervals.joins import join_tables
from cepheid.compile.intervals.tables import (
    DIFFERENCE,
    JOIN_SCRIPT,
    JOIN_SETTINGS,
    NEGATION,
    IntervalTables,
    ScopeNumber,
)
from cepheid.compile.script import Program, Slot, columns_of, orders_texts
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import Comparison, Endpoint, Window
from cepheid.plan.intervals.bounds import bounds_of, comparison_differences
from cepheid.plan.intervals.constants import FREE
from cepheid.plan.intervals.growth import Purge, guard_of, purge_of
from cepheid.plan.intervals.join_order import costs_of, join_order, rates_of
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import Words

_WORTH = 1.1
"""The order of joins is changed if it costs more than so many times the cheapest: counted rates are never the same, and
to make the tables takes as long as some thousand events.
"""


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
    has_rates: bool
    """Whether the order of joins follows from given rates of events."""


def compile_intervals(
    plan: IntervalPlan,
    *,
    delay: int | None,
    lateness: End,
    frequencies: Mapping[str, float] | None = None,
    rates: Sequence[float] | None = None,
    external_clock: bool = False,
    may_start: int = 0,
    buffer: int | None = None,
) -> CompiledIntervals:
    """The plan as arrays. `delay` is in microseconds; None: no event is late. With a `buffer`, an event is late if more
    than so many accepted events have later lateness times. `may_start` is the bit of the events that
    may be first in a match; 0: any may. `frequencies` or `rates`, one per event of a match, decide the order of joins.
    """
    slots = tuple(Slot(SlotKind.LAST, stage) for stage in range(len(plan.pattern.variables)))
    program = Program(slots, [value.type for value in plan.values])
    joint = [one for scripts in (plan.scripts, *plan.negated) for one in scripts]
    ranges = [program.add_condition(one.script) for one in joint]
    texts = any(orders_texts(one.script) for one in joint)
    orders = join_order(plan, rates if rates is not None else rates_of(plan, frequencies)).orders
    negations, differences, negation_scripts = _negations(plan, lateness)
    settings = (
        plan.positives,
        FREE if delay is None else delay,
        -1 if buffer is None else buffer,
        external_clock,
        lateness is End.END,
        FREE if plan.window is None else min(plan.window, FREE),
        plan.pattern.window_of is Window.STARTS,
        *join_limits(plan.limits).values(),
        may_start,
    )
    tables = IntervalTables(
        settings=np.array([settings], JOIN_SETTINGS),
        bits=np.array(plan.variable_bits, np.int64),
        bounds=bounds_of(plan.pattern),
        **join_tables(plan, orders, orders_texts=texts),
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
        orders_texts=texts,
        purges=tuple(purge_of(plan.pattern, negation) for negation in plan.pattern.negations),
        delay=delay,
        lateness=lateness,
        external_clock=external_clock,
        has_rates=frequencies is not None or rates is not None,
    )


def reordered(pattern: CompiledIntervals, rates: Sequence[float]) -> CompiledIntervals:
    """The pattern with the order of joins that these rates of events, one per event of a match, make the cheapest; the
    same pattern if that is not much cheaper. Its constants and settings are those of the given one.
    """
    best = join_order(pattern.plan, rates)
    now = costs_of(pattern.plan, pattern.tables.order.tolist(), rates)
    if all(cost <= _WORTH * least for cost, least in zip(now, best.costs, strict=True)):
        return pattern
    tables = join_tables(pattern.plan, best.orders, orders_texts=pattern.orders_texts)
    return replace(pattern, tables=pattern.tables._replace(**tables))


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
                variable_set(plan, negation.left),
                variable_set(plan, negation.right),
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
