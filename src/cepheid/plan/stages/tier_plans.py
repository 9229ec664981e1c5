"""The plan that the matcher of each tier runs.

The first tier runs the pattern's first stages. In each later tier, a partial match that the tier before has found is
the event of a first stage, at the time of the event that it took last. The tier's own stages follow, with their own
contiguity and windows. Their conditions read values of events taken before as values of that first stage's event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from cepheid.lang.expression import Literal
from cepheid.lang.stages.pattern import Stage
from cepheid.plan.conditions.script import Aggregate, CurrentValue, Operation, Operator, Script, StageValue
from cepheid.plan.lifted import Lifted, PlannedCondition
from cepheid.plan.stages.plan import Plan
from cepheid.plan.tiers import Tier


@dataclass(frozen=True)
class TierPlan:
    """A tier of a pattern."""

    whole: Plan
    """The plan of the whole pattern."""
    tier: Tier

    @property
    def is_first(self) -> bool:
        return self.tier.first == 0

    @property
    def is_last(self) -> bool:
        return self.tier.last == len(self.whole.pattern.leaves) - 1

    @property
    def needed_later(self) -> int | None:
        """Bits of the mask: an event with none of them can meet no condition of later tiers. None: any event may."""
        bits = {condition.bit for condition in self.whole.conditions[self.tier.last + 1 :]}
        return None if None in bits else sum(1 << bit for bit in bits if bit is not None)

    @cached_property
    def plan(self) -> Plan:
        """The plan that the tier's matcher runs."""
        # Columns of the output, with their measures, are made in the last tier, for the whole plan.
        plain, last = replace(self.whole, measures=None, promoted=(), outputs=None), self.tier.last
        stages, conditions = plain.pattern.stages, plain.conditions
        if self.is_first:
            pattern = replace(plain.pattern, stages=stages[: last + 1])
            return replace(plain, pattern=pattern, conditions=conditions[: last + 1])
        earlier = tuple(plain.values[column] for _, column in self.earlier)
        return replace(
            plain,
            pattern=replace(plain.pattern, stages=(Stage("before"), *stages[self.tier.first : last + 1])),
            bits=(*plain.bits, _added(pa.bool_()), _added(pa.bool_())),
            values=(*plain.values, *earlier, _added(pa.int64()), _added(pa.int64())),
            conditions=(
                PlannedCondition(self.is_partial_match, None),
                *map(self._condition, conditions[self.tier.first : last + 1]),
            ),
        )

    # What the plan of a later tier has beside the bits and values of the whole plan

    @property
    def is_partial_match(self) -> int:
        """The bit of what the tier before has found."""
        return len(self.whole.bits)

    @property
    def is_event(self) -> int:
        """The bit of events."""
        return len(self.whole.bits) + 1

    @cached_property
    def earlier(self) -> tuple[tuple[int, int], ...]:
        """The first further values: those that conditions read of events taken before, except for the last one. Each
        is given by its stage and column.
        """
        scripts = (condition.script for condition in self.whole.conditions[self.tier.first : self.tier.last + 1])
        read = ((leaf.stage, leaf.column) for script in scripts if script is not None for leaf in _leaves(script))
        return tuple(
            dict.fromkeys(
                (stage, column) for stage, column in read if stage < self.tier.first - 1 and column is not None
            )
        )

    @property
    def time(self) -> int:
        """The value with an event's time in microseconds."""
        return len(self.whole.values) + len(self.earlier)

    @property
    def deadline(self) -> int:
        """The value with the end of a partial match's window, in microseconds."""
        return self.time + 1

    def _condition(self, condition: PlannedCondition) -> PlannedCondition:
        bit = self.is_event if condition.bit is None else condition.bit
        assert condition.script is not None, "every stage has a tie"
        script = self._moved(condition.script)
        if self.whole.window is not None:
            sides = CurrentValue(self.time, pa.int64()), StageValue(0, self.deadline, pa.int64())
            in_time = Operation(Operator.LESS, sides, pa.bool_())
            script = Operation(Operator.AND, (in_time, script), pa.bool_())
        return PlannedCondition(bit, script)

    def _moved(self, script: Script) -> Script:
        """The script with the numbers that stages and columns have in the tier."""
        match script:
            case Operation(operands=operands):
                return replace(script, operands=tuple(map(self._moved, operands)))
            case StageValue(stage, column) if stage < self.tier.first:
                return replace(script, stage=0, column=self._column(stage, column))
            case Aggregate(_, stage, column) if stage < self.tier.first:
                return replace(script, stage=0, column=None if column is None else self._column(stage, column))
            case StageValue() | Aggregate():
                return replace(script, stage=script.stage - self.tier.first + 1)
        return script

    def _column(self, stage: int, column: int) -> int:
        is_of_last = stage == self.tier.first - 1
        return column if is_of_last else len(self.whole.values) + self.earlier.index((stage, column))


def _added(type_: pa.DataType) -> Lifted:
    """A column that no engine computes."""
    return Lifted("", Literal(None, type_, (0, 0)), type_)


def _leaves(script: Script) -> Iterator[StageValue | Aggregate]:
    match script:
        case Operation(operands=operands):
            for operand in operands:
                yield from _leaves(operand)
        case StageValue() | Aggregate():
            yield script
