"""An interval pattern that has met its events: everything is resolved and typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cepheid.lang.consistency import End
from cepheid.lang.duration import microseconds
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.plan.conditions.script import Script
from cepheid.plan.lifted import Measure, OutputName
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import InSql, Measured, PlanOf, PlanSet, distinct
from cepheid.plan.semantics.explain import Answer


class JoinScript(NamedTuple):
    """A condition on several events: true for a match, or for a negated event and a match."""

    script: Script
    variables: frozenset[int]
    """The variables that it reads, by number."""


@dataclass(frozen=True)
class IntervalPlan(PlanOf[IntervalPattern], Measured, InSql):
    """What a host needs to feed an interval matcher, and the matcher to run."""

    variable_bits: tuple[int, ...]
    """For each variable of `pattern.variables`, the bit that its events have set: their type, and the conditions on
    them alone.
    """
    scripts: tuple[JoinScript, ...]
    """The conditions on several events of a match, in the order of the condition."""
    negated: tuple[tuple[JoinScript, ...], ...]
    """The same for each negation."""
    columns: tuple[str, ...]
    """The event columns that appear in the output."""
    limits: Limits = field(default_factory=Limits)
    measures: tuple[Measure, ...] | None = None
    promoted: tuple[Measure, ...] = ()
    """None: the output has the events of the variables."""
    outputs: tuple[OutputName, ...] | None = None
    """The requested outputs for input that does not end; None: all of them."""
    odd: tuple[str, ...] = ()
    """What is probably not meant, to warn of."""
    answers: tuple[Answer, ...] = ()
    """The semantic filters, and the SQL in their place."""

    @property
    def times(self) -> dict[End, str]:
        """The columns of the events' starts and ends."""
        return dict(zip(End, self.schema.times, strict=True))

    @property
    def live_outputs(self) -> tuple[OutputName, ...]:
        """The outputs for input that does not end."""
        return self.outputs or ("matches", "late")

    @property
    def window(self) -> int | None:
        """`within` in microseconds."""
        return None if self.pattern.window is None else microseconds(self.pattern.window)

    @property
    def positives(self) -> int:
        """The number of events in a match. Their variables have the lowest numbers."""
        return len(self.pattern.positives)

    def number(self, variable: str) -> int:
        return self.pattern.variables.index(variable)


@dataclass(frozen=True)
class IntervalPlans(PlanSet[IntervalPlan]):
    """The plans of interval patterns."""

    @staticmethod
    def of(each: Sequence[IntervalPlan], *, named: bool = False) -> IntervalPlans:
        return IntervalPlans(tuple(each), named, *distinct(each))
