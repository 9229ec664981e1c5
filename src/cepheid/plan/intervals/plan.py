"""An interval pattern that has met its events: everything is resolved and typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from cepheid.lang.duration import microseconds
from cepheid.lang.function import Function
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import End
from cepheid.plan.conditions.script import Script
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Lifted


@dataclass(frozen=True)
class IntervalSchema:
    """The events' columns, and which of them are the key and the times."""

    columns: pa.Schema
    key: tuple[str, ...]
    """Events of different keys have nothing to do with each other; empty: all events are one sequence."""
    start: str
    end: str

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        return tuple(self.columns.field(name) for name in self.key)

    @property
    def times(self) -> dict[End, str]:
        return {End.START: self.start, End.END: self.end}


class JoinScript(NamedTuple):
    """A condition on several events: true for a match, or for a negated event and a match."""

    script: Script
    variables: frozenset[int]
    """What it reads, by number."""


@dataclass(frozen=True)
class IntervalPlan:
    """What a host needs to feed an interval matcher, and the matcher to run."""

    pattern: IntervalPattern
    schema: IntervalSchema
    bits: tuple[Lifted, ...]
    """Boolean columns, packed into one mask an event."""
    values: tuple[Lifted, ...]
    """Columns that scripts read."""
    variable_bits: tuple[int, ...]
    """For each variable of `pattern.variables` the bit that its events have: their type, and what is asked of them
    alone.
    """
    scripts: tuple[JoinScript, ...]
    """What is asked of the events of a match together, in the order of the condition."""
    negated: tuple[tuple[JoinScript, ...], ...]
    """The same for each negation."""
    columns: tuple[str, ...]
    """The event columns that come along in the output."""
    limits: Limits = field(default_factory=Limits)

    @property
    def functions(self) -> tuple[Function, ...]:
        """None: conditions of interval patterns are SQL."""
        return ()

    @property
    def window(self) -> int | None:
        """`within` in microseconds."""
        return None if self.pattern.window is None else microseconds(self.pattern.window)

    @property
    def positives(self) -> int:
        """How many events a match has; the variables with lower numbers."""
        return len(self.pattern.positives)

    def number(self, variable: str) -> int:
        return self.pattern.variables.index(variable)


@dataclass(frozen=True)
class IntervalPlans:
    """Plans over the same events; the names of their patterns differ."""

    each: tuple[IntervalPlan, ...]
    named: bool
    """Whether the patterns were given by name: then rows say whose they are."""

    @property
    def schema(self) -> IntervalSchema:
        return self.each[0].schema

    @property
    def columns(self) -> tuple[str, ...]:
        return self.each[0].columns
