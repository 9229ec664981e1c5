"""Warnings that point to the caller's line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cepheid.errors import CepheidWarning
from cepheid.plan.plan_set import PlanSet


def of_each(plans: PlanSet[Any], what: Callable[[Any], Iterable[str]]) -> Iterator[str]:
    """The warnings about each plan; for patterns that were given by name, with the name in front."""
    for plan in plans.each:
        whose = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        yield from (whose + warning for warning in what(plan))


def of_growth(who: str, growth: Iterable[str]) -> Iterator[str]:
    """The warnings about what is retained forever; `who` retains it."""
    return (f"{who} keeps what is open: {why}" for why in growth)


def warn(message: str) -> None:
    """Warns at the caller's line, which is the nearest one outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CepheidWarning, stacklevel=level)
