"""Several compiled plans, and which events matter to each."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.plan.plan_set import Words
from cepheid.plan.stages.plans import Plans


@dataclass(frozen=True)
class CompiledPlans:
    """Plans ready to run."""

    plans: Plans
    each: tuple[CompiledPattern, ...]
    relevant_to: tuple[Words | None, ...]
    """For each pattern, a mask of all plans' bits: an event with one of them matters to the pattern. None: every event
    matters.
    """


def compile_plans(plans: Plans) -> CompiledPlans:
    each = tuple(map(compile_plan, plans.each))
    relevant_to = (
        None if pattern.relevant is None else plans.words(place, pattern.relevant)
        for pattern, place in zip(each, plans.places, strict=True)
    )
    return CompiledPlans(plans, each, tuple(relevant_to))
