"""The plan: a pattern that has met its schema. Everything is resolved and typed; nothing after this checks names
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa

from cepheid.events.batch import Schema
from cepheid.lang.duration import microseconds
from cepheid.lang.expression import Call, Literal, Name
from cepheid.lang.function import Function
from cepheid.lang.stages.pattern import Pattern, SkipTo, Stage
from cepheid.plan.conditions.script import Aggregate, Script, StageValue
from cepheid.plan.limits import Limits

OutputName: TypeAlias = OneOf["matches", "timeouts", "late"]
"""What a detection can give."""

MAX_CONDITIONS = WORD = 63
"""Each is a bit of one word; the last bit stands for what is always true."""


@dataclass(frozen=True)
class Lifted:
    """A column that the host's SQL engine computes for every event, from that event alone.

    `sql` is the user's own text with stage qualifiers taken off (what Spark evaluates); `expression` the same as a tree
    over event columns (what other engines translate).
    Around the user's text there may be a cast of FLOAT to DOUBLE, a try_cast or IS NULL. Spans in `expression` are
    of the text that was written, so they do not fit `sql`.
    """

    sql: str
    expression: Literal | Name | Call
    type: pa.DataType
    written: str = field(default="", compare=False)
    """What can fail of it, as the user wrote it and where, for messages."""


@dataclass(frozen=True)
class StageCondition:
    """When a stage takes an event: bit `bit` of the event's mask is set (None: no such demand) and `script` is true
    (None: likewise).
    """

    bit: int | None
    script: Script | None


@dataclass(frozen=True)
class SkipRule:
    """A skip strategy whose stage is a number."""

    to: SkipTo
    stage: int | None
    error_on_miss: bool


@dataclass(frozen=True)
class StageColumn:
    """An output column: the events of a stage in a match."""

    name: str
    stage: int
    repeats: bool
    """Whether it may have several: then the column holds arrays."""


Slot: TypeAlias = StageValue | Aggregate
"""What a measure needs of a match: one value out of a stage's events, or a fold over them."""


@dataclass(frozen=True)
class Measure:
    """A flat output column: a scalar expression over slots, evaluated once a match by the host's SQL engine.

    In `sql` and `expression` the slots are the columns `slots` names.
    """

    name: str
    text: str
    """As it was written, for messages."""
    sql: str
    expression: Literal | Name | Call
    slots: dict[str, Slot]
    type: pa.DataType


@dataclass(frozen=True)
class Plan:
    """What a host needs to feed a matcher, and a matcher to run."""

    pattern: Pattern
    schema: Schema
    bits: tuple[Lifted, ...]
    """Boolean columns, packed into one mask an event: bit i is set where bits[i] is true (not NULL, not false)."""
    values: tuple[Lifted, ...]
    """Columns that scripts and measures read."""
    conditions: tuple[StageCondition, ...]
    """One for each of `pattern.leaves`, then one for each of `pattern.loops_until`."""
    measures: tuple[Measure, ...] | None
    """None: stage columns are given instead."""
    columns: tuple[str, ...]
    """The event columns that come along in the output's stage columns."""
    outputs: tuple[OutputName, ...] | None = None
    """What is asked for beside or instead of matches; None: matches alone, in columns of their own."""
    limits: Limits = field(default_factory=Limits)

    @property
    def stage_columns(self) -> tuple[StageColumn, ...]:
        """One for each stage that can take events."""
        return tuple(
            StageColumn(leaf.name, number, repeats)
            for number, (leaf, repeats) in enumerate(_repeating(self.pattern.stages))
            if not leaf.contiguity.negated
        )

    @property
    def functions(self) -> tuple[Function, ...]:
        """The conditions in Python. Where there are any, the events come with all their columns, and the reference step
        runs the pattern.
        """
        return tuple(function for _, function in self.pattern.functions)

    @property
    def slots(self) -> dict[str, Slot]:
        """Those of all measures, by name."""
        return {name: slot for measure in self.measures or () for name, slot in measure.slots.items()}

    @property
    def window(self) -> int | None:
        """`within` in microseconds."""
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
