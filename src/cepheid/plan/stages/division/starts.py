"""Copies by start: several matchers read all events of a key, and each owns the partial matches whose first event falls
to it.

This is right where partial matches of different first events do not affect each other. Copies also need a deadline, as
one that starts nothing more goes on until its partial matches have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cepheid.lang.duration import format_duration
from cepheid.lang.stages.pattern import SkipTo
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.stages.division.skip_names import SKIP_NAMES
from cepheid.plan.stages.plan import Plan
from cepheid.plan.undivided import Undivided


class Starts(NamedTuple):
    """A key can be divided by start."""

    window: int
    """Microseconds: a partial match has ended when its first event is that old."""


def starts_of(plan: Plan) -> Starts | Undivided:
    """Whether a key can be divided by start; otherwise the reasons why not."""
    window, reasons = plan.window, (*_obstacles(plan),)
    if reasons or window is None:
        return Undivided(reasons)
    return Starts(window)


def starts_text(plan: Plan) -> str:
    """Whether a key can be divided by start, in words."""
    found = starts_of(plan)
    if isinstance(found, Undivided):
        return f"by start: cannot, because {found.text}"
    assert plan.pattern.window is not None
    window = format_duration(plan.pattern.window)
    return (
        "by start: streams can, because partial matches of different first events do not affect each other and end "
        f"within {window}"
    )


def _obstacles(plan: Plan) -> Iterator[str]:
    pattern, skip = plan.pattern, plan.pattern.skip_strategy.to
    if skip is not SkipTo.NO_SKIP:
        yield f"{SKIP_NAMES[skip]} ties starts together"
    if pattern.without is not None:
        yield f"{pattern.without.label} looks at events before the start, which a new copy has not received"
    if plan.limits.on_limit == "drop" or plan.limits.max_partial_matches is not None:
        yield "limits count the partial matches of a key"
    if pattern.calendar is not None:
        yield "within follows the calendar, so its length differs"
    elif pattern.window is None:
        yield "it has no within, so a copy would never be released"
    if len(plan.bits) + len(plan.conditions) + 2 > MAX_CONDITIONS:
        yield "its conditions leave no bit of the mask free"
