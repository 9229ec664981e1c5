"""Which lifted columns and conditions of an interval pattern read the ends of events: they wait for open events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cepheid.errors import Problem
from cepheid.plan.conditions.script import Operation, Script, StageValue
from cepheid.plan.intervals.plan import IntervalPlan, JoinScript
from cepheid.plan.lifted import Lifted
from cepheid.plan.used_columns import names_in


class EndReads(NamedTuple):
    """What reads the ends of events."""

    bits: int
    """The bits of masks that do."""
    scripts: tuple[frozenset[int], ...]
    """For each of `IntervalPlan.scripts`, the variables whose end it reads."""


def reads_end(plan: IntervalPlan) -> EndReads:
    """What of the plan reads the ends of events."""
    bits = sum(1 << number for number, lifted in enumerate(plan.bits) if _reads_end(plan, lifted))
    return EndReads(bits, tuple(_variables(plan, one) for one in plan.scripts))


def unknown_negations(plan: IntervalPlan) -> list[Problem]:
    """The problems of negations whose conditions read an end in SQL: while an event is open, it would be unknown which
    events are negated.
    """
    return [*_unknown_negations(plan)]


def _unknown_negations(plan: IntervalPlan) -> Iterator[Problem]:
    bits = reads_end(plan).bits
    negated = zip(plan.pattern.negations, plan.variable_bits[plan.positives :], plan.negated, strict=True)
    for negation, bit, scripts in negated:
        if bits >> bit & 1 or any(_variables(plan, one) for one in scripts):
            what = f"the condition of the negation of {negation.variable!r} reads an end, which open events do not have"
            yield Problem(what, hint="Write it as an order of endpoints: ORDER end(d) < end(a).")


def values_of_ends(plan: IntervalPlan) -> list[int]:
    """The numbers of the lifted columns that are computed from the end alone."""
    return [number for number, lifted in enumerate(plan.values) if _reads_end(plan, lifted)]


def not_of_ends(plan: IntervalPlan) -> list[Problem]:
    """The problems of SQL that reads an end together with other columns of the event, for hosts that evaluate SQL row
    by row: the row that closes an event has its end, and the row that opens it all else.
    """
    end = str(plan.schema.end).lower()
    mixed = [
        lifted
        for lifted in (*plan.bits, *plan.values)
        if _reads_end(plan, lifted) and {name.lower() for name in names_in(lifted.expression)} != {end}
    ]
    hint = "Compare the end with the other column, without a function of both, or give an IntervalMatcher the rows."
    what = "reads the end and other columns of one event, which come in different rows: on a stream with event_id"
    return [Problem(f"the SQL {lifted.sql!r} {what} no row has both", hint=hint) for lifted in mixed]


def _variables(plan: IntervalPlan, one: JoinScript) -> frozenset[int]:
    values = {number for number, lifted in enumerate(plan.values) if _reads_end(plan, lifted)}
    return frozenset(_stages(one.script, values))


def _stages(script: Script, values: set[int]) -> Iterator[int]:
    """The variables of which the script reads one of these lifted columns."""
    match script:
        case StageValue(stage=stage, column=column) if column in values:
            yield stage
        case Operation(operands=operands):
            for operand in operands:
                yield from _stages(operand, values)


def _reads_end(plan: IntervalPlan, lifted: Lifted) -> bool:
    names = {name.lower() for name in names_in(lifted.expression)}
    for question in plan.questions:
        if question.name.lower() in names:
            names |= {name.lower() for name in question.columns}
    return plan.schema.end is not None and plan.schema.end.lower() in names
