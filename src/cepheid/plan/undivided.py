"""The ways to divide a key: their text, and the answer of those that do not fit a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cepheid.plan.plan_set import PlanSet


class Undivided(NamedTuple):
    """A key cannot be divided in this way."""

    reasons: tuple[str, ...]
    """What forbids it, one clause of the pattern or option of the call each, as "its skip strategy lets …"."""

    @property
    def text(self) -> str:
        return "; ".join(self.reasons)


def division_lines(ways: Iterable[str]) -> list[str]:
    """For each way to divide a key, whether it fits the pattern and why."""
    return [f"Dividing one key {way}" for way in ways]


def undivided_of_all(plans: PlanSet[Any], each: Sequence[object]) -> Undivided:
    """The reasons of all patterns that cannot be divided, which name them. `each` has an answer per pattern."""
    return Undivided(
        tuple(
            f"pattern {plan.pattern.name!r}: {reason}" if plans.named else reason
            for plan, answer in zip(plans.each, each, strict=True)
            if isinstance(answer, Undivided)
            for reason in answer.reasons
        )
    )
