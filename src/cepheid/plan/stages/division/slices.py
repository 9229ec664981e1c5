"""Time slices: each match belongs to the slice of its first event, and a slice reads on for the pattern's window.

This is right where a partial match does not depend on those with other starts. Then a detector that starts partial
matches only with the events of its slice finds exactly the matches of the slice, with their times.
"""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.lang.duration import format_duration, microseconds
from cepheid.lang.stages.pattern import SkipTo
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.division import TimeSlices
from cepheid.plan.stages.division.undivided import SKIP_NAMES, Undivided
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.plans import Plans


def slices_of(plan: Plan) -> TimeSlices | Undivided:
    """How one key's events are divided into time slices; otherwise the reasons why not."""
    if reasons := (*_obstacles(plan),):
        return Undivided(reasons)
    without = plan.pattern.without
    assert plan.window is not None
    return TimeSlices(before=0 if without is None else microseconds(without.window), after=plan.window)


def slices_of_all(plans: Plans) -> TimeSlices | Undivided:
    """The same for several patterns, which have common slices; the reasons name their pattern."""
    each = [slices_of(plan) for plan in plans.each]
    found = [slices for slices in each if isinstance(slices, TimeSlices)]
    if len(found) == len(each):
        return TimeSlices(max(one.before for one in found), max(one.after for one in found))
    return Undivided(
        tuple(
            f"pattern {plan.pattern.name!r}: {reason}" if plans.named else reason
            for plan, slices in zip(plans.each, each, strict=True)
            if isinstance(slices, Undivided)
            for reason in slices.reasons
        )
    )


def slices_text(plan: Plan) -> str:
    """Whether a key can be divided into time slices, in words."""
    found = slices_of(plan)
    if isinstance(found, Undivided):
        return f"by time: cannot, because {found.text}"
    assert plan.pattern.window is not None
    window = format_duration(plan.pattern.window)
    return (
        "by time: finite input can, in process and without a key on Spark, because partial matches of different first "
        f"events do not affect each other and end within {window}"
    )


def _obstacles(plan: Plan) -> Iterator[str]:
    pattern, skip = plan.pattern, plan.pattern.skip_strategy.to
    if plan.schema.time is None:
        yield "events have no times (processing order)"
    elif pattern.window is None:
        yield "without within, a match may end at any later time"
    if skip is not SkipTo.NO_SKIP:
        yield f"{SKIP_NAMES[skip]} lets a match wait for partial matches that started earlier"
    if plan.limits.on_limit == "drop":
        yield "on_limit='drop' counts the partial matches of all starts together"
    if plan.truth_bits >= MAX_CONDITIONS:
        yield f"its conditions need all {MAX_CONDITIONS} bits of an event, and none is left to mark starts"
