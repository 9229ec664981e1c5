"""Warnings that point to the caller's line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cepheid.errors import CepheidWarning
from cepheid.plan.plan_set import PlanSet


def with_names(plans: PlanSet[Any], warnings_of: Callable[[Any], Iterable[str]]) -> Iterator[str]:
    """The warnings about each plan. If patterns were given by name, a warning begins with the name."""
    for plan in plans.each:
        prefix = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        yield from (prefix + warning for warning in warnings_of(plan))


def of_growth(who: str, growth: Iterable[str]) -> Iterator[str]:
    """The warnings about what is retained forever; `who` retains it."""
    return (f"{who} keeps what is open: {why}" for why in growth)


def warn(message: str) -> None:
    """Warns at the caller's line, which is the nearest one outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CepheidWarning, stacklevel=level)
