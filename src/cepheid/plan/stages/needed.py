"""The bits of the events that stages take."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.plan.needed import NeededBit
from cepheid.plan.stages.plan import Plan


def needed_bits(plan: Plan) -> Iterator[NeededBit]:
    """One for each stage that takes events and has a condition on single events. A stage that is forbidden may well
    find no event.
    """
    for stage, condition in zip(plan.pattern.leaves, plan.conditions, strict=False):
        if condition.bit is not None and not stage.contiguity.negated:
            yield NeededBit(stage.label, condition.bit)
