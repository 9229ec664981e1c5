"""The plan of an expression over occurrences: a table of operators, each after those that it works on.

Equal sub-expressions are one operator, so each is evaluated once an event, in whichever expressions it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from cepheid.events.batch import Schema
from cepheid.lang.function import Function
from cepheid.lang.occurrences.expression import OccurrencePattern, Policy
from cepheid.plan.conditions.script import Script
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Lifted, Measure, OutputName, Slot


class Kind(IntEnum):
    """What an operator does."""

    LEAF = 0
    """The events whose mask has bit `number`."""
    BOTH = 1
    EITHER = 2
    THEN = 3
    WITHOUT = 4
    """With a script: only right ones for which it is true count."""
    WITHIN = 5
    """`number` microseconds at most."""
    DELAYED = 6
    """`number` microseconds behind the end."""
    BOUND = 7
    """As variable `number`."""
    FILTERED = 8


@dataclass(frozen=True)
class Operator:
    """One row of the table; `left` and `right` are rows before it, -1 where there is none."""

    kind: Kind
    left: int = -1
    right: int = -1
    number: int = 0
    script: Script | None = None
    """Over the values of variables: those of the operands and, of WITHOUT, of both."""
    text: str = ""
    """The condition that the script is, as it was written."""

    @property
    def operands(self) -> tuple[int, ...]:
        return tuple(row for row in (self.left, self.right) if row >= 0)


@dataclass(frozen=True)
class Variable:
    """A name for an occurrence; scripts know it by its number, which is its place in `OccurrencePlan.variables`."""

    name: str
    is_event: bool
    """Whether it is sure to be one event, which has columns; else it has a start and an end."""
    in_output: bool
    """Whether it is known outside: one that stands in what minus takes away is not."""


@dataclass(frozen=True)
class OccurrencePlan:
    """What a host needs to feed a matcher of occurrences, and the matcher to run."""

    pattern: OccurrencePattern
    schema: Schema
    bits: tuple[Lifted, ...]
    """One for each type asked for: whether an event is of it."""
    values: tuple[Lifted, ...]
    """Columns that scripts and measures read."""
    operators: tuple[Operator, ...]
    root: int
    variables: tuple[Variable, ...]
    time_value: int | None
    """Which of `values` is the time of an event; scripts and measures find the start and end of a variable there."""
    measures: tuple[Measure, ...] | None
    """None: the variables and the events are given."""
    columns: tuple[str, ...]
    """The event columns that come along in the output."""
    outputs: tuple[OutputName, ...] | None
    """None: matches alone."""
    policy: Policy
    by_operator: bool
    """Whether the recent policy may be applied at every operator, which then remembers little."""
    warnings: tuple[str, ...]
    """What works, but perhaps not as meant, or at a cost."""
    limits: Limits
    beside_delays: bool = False
    """Whether there are temporal events in patterns that are found with it, whose rows have the same columns."""
    named: bool = False
    """Whether rows have the pattern's name in front, as there are those of others."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """Conditions in Python, of which there are none."""
        return ()

    @property
    def slots(self) -> dict[str, Slot]:
        """Those of all measures, by name."""
        return {name: slot for measure in self.measures or () for name, slot in measure.slots.items()}

    @property
    def relevant(self) -> tuple[int]:
        """The bits of which an event must have one to matter, as a word of the mask."""
        return ((1 << len(self.bits)) - 1,)

    @property
    def binds_anew(self) -> bool:
        """Whether events may change what the variables of an occurrence stand for: they may take away one of several
        ways in which it came about.
        """
        return bool(self.variables) and any(operator.kind is Kind.WITHOUT for operator in self.operators)

    @property
    def has_delays(self) -> bool:
        """Whether rows tell of temporal events."""
        return self.beside_delays or any(operator.kind is Kind.DELAYED for operator in self.operators)

    @property
    def member_columns(self) -> tuple[str, ...]:
        """The chosen columns but for type and time, which stand in front of them in `events`."""
        return tuple(name for name in self.columns if name not in (self.type_column.name, self.schema.time))

    @property
    def type_column(self) -> pa.Field:
        """The column that holds the types of the events."""
        assert self.pattern.types is not None
        return self.schema.columns.field(self.pattern.types.column)
