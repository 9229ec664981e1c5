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
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.plans import Plans


def time_slices(plan: Plan) -> TimeSlices | str:
    """How one key's events are divided into time slices; or why they are not, with all reasons."""
    if reasons := [*_reasons(plan)]:
        return "; ".join(reasons)
    without = plan.pattern.without
    assert plan.window is not None
    return TimeSlices(before=0 if without is None else microseconds(without.window), after=plan.window)


def time_slices_of_all(plans: Plans) -> TimeSlices | str:
    """The same for several patterns, which have common slices; each reason names its pattern."""
    each = [time_slices(plan) for plan in plans.each]
    found = [slices for slices in each if not isinstance(slices, str)]
    if len(found) == len(each):
        return TimeSlices(max(one.before for one in found), max(one.after for one in found))
    reasons = [
        f"pattern {plan.pattern.name!r}: {reason}" if plans.named else reason
        for plan, reason in zip(plans.each, each, strict=True)
        if isinstance(reason, str)
    ]
    return "; ".join(reasons)


def slices_text(plan: Plan) -> str:
    """Whether one key can be divided into time slices, and why, in words."""
    slices = time_slices(plan)
    if isinstance(slices, str):
        return f"Time slices: one key cannot be divided, because {slices}"
    assert plan.pattern.window is not None
    window = format_duration(plan.pattern.window)
    return (
        f"Time slices: one key can be divided, because matches with different starts do not depend on each other, and "
        f"each ends within {window}"
    )


def _reasons(plan: Plan) -> Iterator[str]:
    pattern, skip = plan.pattern, plan.pattern.skip_strategy.to
    if plan.schema.time is None:
        yield "events have no times (processing order)"
    elif pattern.window is None:
        yield "without within, a match may end at any later time"
    if skip is SkipTo.NEXT:
        yield "skip to_next lets a match wait for partial matches that started earlier"
    elif skip is not SkipTo.NO_SKIP:
        yield f"skip {skip.value} ties starts: a match drops partial matches that started earlier or later"
    if plan.limits.on_limit == "drop":
        yield "on_limit='drop' counts the partial matches of all starts together"
    if plan.truth_bits >= MAX_CONDITIONS:
        yield f"its conditions need all {MAX_CONDITIONS} bits of an event, and none is left to mark starts"
