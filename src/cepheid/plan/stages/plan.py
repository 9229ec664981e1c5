"""The plan: a pattern that has met its schema. All names and types are settled, and not checked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from cepheid.lang.duration import microseconds
from cepheid.lang.function import Function
from cepheid.lang.stages.pattern import Pattern, SkipTo, Stage
from cepheid.plan.calendar import Deadlines
from cepheid.plan.conditions.texts import computes_texts
from cepheid.plan.lifted import Measure, OutputName, PlannedCondition, Slot, slots_of
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import Measured, PlanOf
from cepheid.plan.semantics.explain import Answer


@dataclass(frozen=True)
class SkipRule:
    """A skip strategy whose stage is a number."""

    to: SkipTo
    stage: int | None
    error_on_miss: bool


class StageColumn(NamedTuple):
    """An output column: the events of a stage in a match."""

    name: str
    stage: int
    repeats: bool
    """Whether the stage may have several events. If so, the column holds arrays."""


@dataclass(frozen=True)
class Plan(PlanOf[Pattern], Measured):
    """What a host needs to feed a matcher, and a matcher to run."""

    conditions: tuple[PlannedCondition, ...]
    """One for each of `pattern.leaves`, then one for each of `pattern.loops_until`, then that of `pattern.without`."""
    measures: tuple[Measure, ...] | None
    """None: the output has stage columns instead."""
    columns: tuple[str, ...]
    """The event columns that appear in the output's stage columns."""
    outputs: tuple[OutputName, ...] | None = None
    """The requested outputs, in addition to or instead of matches; None: matches alone, in columns of their own."""
    limits: Limits = field(default_factory=Limits)
    promoted: tuple[Measure, ...] = ()
    """Columns of open partial matches, where these are stored as rows."""
    deadlines: Deadlines | None = None
    """The deadlines of a pattern whose window follows the calendar."""
    odd: tuple[str, ...] = ()
    """What is probably not meant, to warn of."""
    answers: tuple[Answer, ...] = ()
    """The semantic filters, and the SQL in their place."""

    @cached_property
    def stage_columns(self) -> tuple[StageColumn, ...]:
        """One for each stage that can take events."""
        return tuple(
            StageColumn(leaf.name, number, repeats)
            for number, (leaf, repeats) in enumerate(_repeating(self.pattern.stages))
            if not leaf.contiguity.negated
        )

    @property
    def promoted_slots(self) -> dict[str, Slot]:
        """The slots of all promoted columns, by name."""
        return slots_of(self.promoted)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The conditions in Python. If there are any, events come with all their columns, and the reference step runs
        the pattern.
        """
        return tuple(function for _, function in self.pattern.functions)

    @cached_property
    def runs_in_python(self) -> bool:
        """Whether the reference step runs the pattern, because no kernel can be compiled for one of its conditions."""
        return bool(self.functions) or any(computes_texts(condition.script) for condition in self.conditions)

    @property
    def truth_bits(self) -> int:
        """How many bits the conditions need: those of single events, of scripts, and of `begin_without`."""
        scripts = sum(condition.script is not None for condition in self.conditions)
        return len(self.bits) + scripts + (self.pattern.without is not None)

    @property
    def placed_functions(self) -> Sequence[tuple[str, Function]]:
        """The conditions in Python, each with the label of its stage."""
        return self.pattern.functions

    @property
    def window(self) -> int | None:
        """`within` in microseconds; None if there is none, or if it follows the calendar."""
        return None if self.pattern.window is None else microseconds(self.pattern.window)

    @property
    def skip(self) -> SkipRule:
        """The skip strategy."""
        strategy = self.pattern.skip_strategy
        names = [leaf.name for leaf in self.pattern.leaves]
        return SkipRule(
            strategy.to, None if strategy.stage is None else names.index(strategy.stage), strategy.error_on_miss
        )


def _repeating(stages: Sequence[Stage]) -> Iterator[tuple[Stage, bool]]:
    """Each leaf, and whether it or a group around it loops."""
    for stage in stages:
        if not stage.group:
            yield stage, stage.quantifier.loops
        for leaf, repeats in _repeating(stage.group):
            yield leaf, repeats or stage.quantifier.loops
