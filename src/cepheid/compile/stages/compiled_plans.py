"""Several plans compiled, and which events of all matter to which of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeAlias

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.plan.plan_set import Place, Plans, words_of
from cepheid.plan.stages.plan import WORD

Words: TypeAlias = tuple[int, ...]
"""Bits of an event's mask, one number for each of its words."""


@dataclass(frozen=True)
class CompiledPlans:
    """Plans ready to run."""

    plans: Plans
    each: tuple[CompiledPattern, ...]
    relevant_to: tuple[Words | None, ...]
    """For each pattern the bits of all that an event must have one of to matter to it; None: every event matters."""

    @property
    def relevant(self) -> Words | None:
        """The bits that an event must have one of to matter to any pattern; None: every event matters."""
        known = [words for words in self.relevant_to if words is not None]
        if len(known) < len(self.relevant_to):
            return None
        return tuple(reduce(or_, word) for word in zip(*known, strict=True))


def compile_plans(plans: Plans) -> CompiledPlans:
    each = tuple(map(compile_plan, plans.each))
    words = len(words_of(plans.bits))
    relevant = (_relevant(pattern, place, words) for pattern, place in zip(each, plans.places, strict=True))
    return CompiledPlans(plans, each, tuple(relevant))


def _relevant(pattern: CompiledPattern, place: Place, words: int) -> Words | None:
    if pattern.relevant is None:
        return None
    wanted = [bit for i, bit in enumerate(place.bits) if pattern.relevant >> i & 1]
    return tuple(sum(1 << bit % WORD for bit in wanted if bit // WORD == word) for word in range(words))
