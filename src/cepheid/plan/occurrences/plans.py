"""Several plans of occurrences over the same events: one table of operators, with equal operators only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import LimitExceeded, PatternError, Problem
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions.script import Aggregate, CurrentValue, Operation, Script, StageValue
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import OccurrencePlan, Operator
from cepheid.plan.occurrences.semantic import PlannedFilter, PlannedType, Semantics
from cepheid.plan.plan_set import ColumnMap, PlanSet, distinct


class Meaning(NamedTuple):
    """What a leaf asks of an event."""

    type: PlannedType
    bit: int
    """The bit that the event must have besides; -1: none."""


@dataclass(frozen=True)
class OccurrencePlans(PlanSet[OccurrencePlan]):
    """The plans of patterns of occurrences."""

    variables: tuple[str, ...]
    """The names of the variables of all plans, in lower case, each once: upper or lower case does not count."""

    @staticmethod
    def of(each: Sequence[OccurrencePlan], *, named: bool = False) -> OccurrencePlans:
        """The plans together, with one mask of bits and one set of values.

        Raises:
            LimitExceeded: the plans ask for more than MAX_CONDITIONS types.
            PatternError: columns with the same name have different types.
        """
        if problems := list(_disagreements(each)):
            raise PatternError(problems)
        delays = any(plan.has_delays for plan in each)
        each = [replace(plan, beside_delays=delays, named=named) for plan in each]
        bits, values, places = distinct(each)
        names = dict.fromkeys(variable.name.lower() for plan in each for variable in plan.variables)
        plans = OccurrencePlans(tuple(each), named, bits, values, places, tuple(names))
        if (asked := len(bits) + len(plans.meanings)) > MAX_CONDITIONS:
            many = f"patterns can ask for at most {MAX_CONDITIONS} different types together"
            raise LimitExceeded(f"{many}, and these for {asked}. Find them in several calls")
        return plans

    @property
    def limits(self) -> Limits:
        return self.each[0].limits

    @property
    def time_value(self) -> int | None:
        """The index in `values` of the events' time."""
        found = (
            place.values[plan.time_value]
            for plan, place in zip(self.each, self.places, strict=True)
            if plan.time_value is not None
        )
        return next(found, None)

    @property
    def semantics(self) -> Semantics | None:
        """What a host needs to know what events mean, with the numbers of columns among all plans; None if no pattern
        has knowledge.
        """
        for plan, place in zip(self.each, self.places, strict=True):
            if (found := plan.semantics) is not None:
                return replace(found, columns=tuple((name, place.values[number]) for name, number in found.columns))
        return None

    @cached_property
    def meanings(self) -> tuple[Meaning, ...]:
        """What leaves of patterns with knowledge ask for, each once. Their bits come after `bits`."""
        operators = [operator for table in self.tables for operator in table.operators]
        asked = [Meaning(op.type, op.number) for op in operators if op.kind is Kind.LEAF and op.type is not None]
        return tuple(dict.fromkeys(asked))

    @cached_property
    def filters(self) -> tuple[PlannedFilter, ...]:
        """The semantic filters, each once."""
        operators = [operator for table in self.tables for operator in table.operators]
        return tuple(dict.fromkeys(op.filter for op in operators if op.filter is not None))

    def numbers_of_variables(self, plan: OccurrencePlan) -> list[int]:
        """The numbers that the variables of a plan have among all variables."""
        return [self.variables.index(variable.name.lower()) for variable in plan.variables]

    @property
    def tables(self) -> list[Table]:
        """The operators of all plans. Plans that are evaluated differently are in different tables."""
        tables: dict[tuple[Policy, bool], Table] = {}
        for number, (plan, place) in enumerate(zip(self.each, self.places, strict=True)):
            # The recent occurrences are chosen after all are found, so the operators are evaluated as unrestricted.
            chosen_last = plan.policy is Policy.RECENT and not plan.by_operator
            way = (Policy.UNRESTRICTED if chosen_last else plan.policy, plan.by_operator)
            table = tables.setdefault(way, Table(*way))
            variables = self.numbers_of_variables(plan)
            rows: list[int] = []
            for operator in plan.operators:
                rows.append(table.add(_placed(operator, rows, place, variables)))
            table.roots.append(rows[plan.root])
            table.plans.append(number)
        return list(tables.values())


def _disagreements(plans: Sequence[OccurrencePlan]) -> Iterator[Problem]:
    """Problems of output columns that have one name and, in several patterns, different types."""
    known: dict[str, tuple[str, str, str]] = {}
    first_plan = plans[0]
    first_known = next((plan for plan in plans if plan.semantics is not None), None)
    for plan in plans:
        if _type_column(plan) != _type_column(first_plan):
            message = f"the type of an event is in {_shown(plan)} here"
            other = f"and in {_shown(first_plan)} in pattern {first_plan.pattern.name!r}"
            hint = "Patterns that are found together have it in one column. Find these in several calls."
            yield Problem(f"{message}, {other}", hint=hint).of_pattern(plan.pattern.name)
        if plan.semantics is not None and first_known is not None:
            for what in ("knowledge", "mapping"):
                if getattr(plan.pattern, what) != getattr(first_known.pattern, what):
                    message = f"the {what} is not that of pattern {first_known.pattern.name!r}"
                    hint = f"Patterns that are found together have one {what}. Find these in several calls."
                    yield Problem(message, hint=hint).of_pattern(plan.pattern.name)
        columns = [(measure.name, sql_name(measure.type)) for measure in plan.measures or ()]
        if plan.measures is None:
            columns = [
                (variable.name, "one event" if variable.is_event else "a start and an end")
                for variable in plan.variables
                if variable.in_output
            ]
        for name, type_ in columns:
            pattern, first, same = known.setdefault(name.lower(), (plan.pattern.name, type_, name))
            if (type_, name) != (first, same):
                message = f"{name!r} is {type_} here, and {same!r} is {first} in pattern {pattern!r}"
                hint = "A column has one name and one type: choose another name for one of them."
                yield Problem(message, hint=hint).of_pattern(plan.pattern.name)


def _type_column(plan: OccurrencePlan) -> tuple[str, pa.DataType] | None:
    return None if plan.type_column is None else (plan.type_column.name, plan.type_column.type)


def _shown(plan: OccurrencePlan) -> str:
    return "no column" if plan.type_column is None else repr(plan.type_column.name)


@dataclass
class Table:
    """Operators that are evaluated in the same way."""

    policy: Policy
    by_operator: bool
    rows: dict[Operator, int] = field(default_factory=dict)
    """The row of each operator, in this order."""
    roots: list[int] = field(default_factory=list)
    plans: list[int] = field(default_factory=list)
    """The numbers of the plans with these roots."""

    @property
    def operators(self) -> list[Operator]:
        return list(self.rows)

    def add(self, operator: Operator) -> int:
        """The row of the operator, which is added if it is new."""
        return self.rows.setdefault(operator, len(self.rows))


def _placed(operator: Operator, rows: Sequence[int], place: ColumnMap, variables: Sequence[int]) -> Operator:
    """A plan's operator, with its numbers replaced by those among all plans."""
    number = operator.number
    match operator.kind:
        case Kind.LEAF if number >= 0:
            number = place.bits[number]
        case Kind.BOUND:
            number = variables[number]
    left, right = (rows[row] if row >= 0 else -1 for row in (operator.left, operator.right))
    script = None if operator.script is None else _moved(operator.script, place, variables)
    filter_ = operator.filter
    if filter_ is not None:
        filter_ = replace(filter_, variables=tuple((name, variables[one]) for name, one in filter_.variables))
    return replace(operator, left=left, right=right, number=number, script=script, filter=filter_)


def _moved(script: Script, place: ColumnMap, variables: Sequence[int]) -> Script:
    match script:
        case StageValue(stage=stage, column=column):
            return replace(script, stage=variables[stage], column=place.values[column])
        case Aggregate(stage=stage, column=column):
            return replace(script, stage=variables[stage], column=None if column is None else place.values[column])
        case CurrentValue(column=column):
            return replace(script, column=place.values[column])
        case Operation(operands=operands):
            return replace(script, operands=tuple(_moved(operand, place, variables) for operand in operands))
    return script
