"""The plan of an expression over occurrences: a table of operators, each after its operands.

Equal sub-expressions are one operator. So each is evaluated once per event, however often it is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.plan.conditions.script import Script
from cepheid.plan.lifted import Measure, OutputName
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.semantic import PlannedFilter, PlannedType, Semantics
from cepheid.plan.plan_set import InSql, Measured, PlanOf
from cepheid.plan.semantics.explain import Answer


@dataclass(frozen=True)
class Operator:
    """One row of the table. `left` and `right` are earlier rows, or -1 if there is none."""

    kind: Kind
    left: int = -1
    right: int = -1
    number: int = 0
    script: Script | None = None
    """A condition over the values of variables: those of the operand or, for WITHOUT, of both operands."""
    text: str = ""
    """The condition as written."""
    filter: PlannedFilter | None = None
    """In place of a script: a semantic filter over these variables."""
    type: PlannedType | None = None
    """For LEAF: what the event must mean, besides having bit `number`, if that is not -1."""

    @property
    def is_conditional(self) -> bool:
        """Whether there is a condition over the values of variables."""
        return self.script is not None or self.filter is not None

    @property
    def operands(self) -> tuple[int, ...]:
        return tuple(row for row in (self.left, self.right) if row >= 0)


@dataclass(frozen=True)
class Variable:
    """A name for an occurrence; scripts use its number, which is its place in `OccurrencePlan.variables`."""

    name: str
    is_event: bool
    """Whether it is always one event, which has columns; otherwise it has a start and an end."""
    in_output: bool
    """Whether it is in the output. A variable on the right side of minus is not."""


@dataclass(frozen=True)
class OccurrencePlan(PlanOf[OccurrencePattern], Measured, InSql):
    """What a host needs to feed a matcher of occurrences, and the matcher to run. `bits` has one for each requested
    type: whether an event is of the type.
    """

    operators: tuple[Operator, ...]
    root: int
    variables: tuple[Variable, ...]
    time_value: int | None
    """The index in `values` of the events' time, from which the start and end of a variable are read."""
    measures: tuple[Measure, ...] | None
    """None: the output has the variables and the events."""
    columns: tuple[str, ...]
    """The event columns that appear in the output."""
    outputs: tuple[OutputName, ...] | None
    """None: matches alone."""
    policy: Policy
    by_operator: bool
    """Whether the recent policy may be applied at every operator, which then stores little."""
    warnings: tuple[str, ...]
    """Notes on what works, but perhaps not as intended, or at a high cost."""
    limits: Limits
    semantics: Semantics | None = None
    """None: the pattern has no knowledge, or SQL says what events mean."""
    answers: tuple[Answer, ...] = ()
    """The semantic filters, and the SQL in their place."""
    beside_delays: bool = False
    """Whether a pattern detected together with this one has temporal events; rows of both have the same columns."""
    named: bool = False
    """Whether rows begin with the pattern's name, because there are rows of other patterns."""

    @property
    def computed_times(self) -> dict[str, tuple[str, ...]]:
        """Columns whose times may be those of temporal events. For a column of structs, the fields that are such times;
        for a column that is a time itself, none.
        """
        times: dict[str, tuple[str, ...]] = {"match_start": (), "match_end": ()} if self.has_delays else {}
        if self.measures is None and self.rows_per == "match":
            spans = [variable.name for variable in self.variables if variable.in_output and not variable.is_event]
            times |= {**dict.fromkeys(spans, ("start", "end")), "events": ("time",)}
        return times

    @property
    def binds_anew(self) -> bool:
        """Whether an event may change what the variables of an occurrence are bound to, because it removes one of
        several ways in which the occurrence came about.
        """
        return bool(self.variables) and any(operator.kind is Kind.WITHOUT for operator in self.operators)

    @property
    def has_delays(self) -> bool:
        """Whether rows contain temporal events."""
        return self.beside_delays or any(operator.kind is Kind.DELAYED for operator in self.operators)

    @property
    def member_columns(self) -> tuple[str, ...]:
        """The chosen columns except type and time, which come before them in `events`."""
        type_column = None if self.type_column is None else self.type_column.name
        return tuple(name for name in self.columns if name not in (type_column, self.schema.time))

    @property
    def type_column(self) -> pa.Field | None:
        """The column that holds the types of the events; None: knowledge alone says what they are."""
        return None if self.pattern.types is None else self.schema.columns.field(self.pattern.types.column)
