"""The texts of warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cepheid.plan.plan_set import PlanSet


def with_names(plans: PlanSet[Any], warnings_of: Callable[[Any], Iterable[str]]) -> Iterator[str]:
    """The warnings about each plan. If patterns were given by name, a warning begins with the name."""
    for plan in plans.each:
        prefix = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        yield from (prefix + warning for warning in warnings_of(plan))


def of_growth(who: str, growth: Iterable[str]) -> Iterator[str]:
    """The warnings about what is retained forever; `who` retains it."""
    return (f"{who} keeps what is open: {why}" for why in growth)
