"""Time slices: what becomes certain in a slice of time is found by itself, from what is open at the slice's beginning.

What is open follows from the events of the last window, where a match does not drop partial matches of later starts:

- With NO_SKIP a partial match does not depend on those with other starts.
- With SKIP_TO_NEXT a match drops the partial matches of its own start, and waits until none is open that started
  earlier. When a window has passed, all earlier ones have ended, and every match that waited for them is emitted. So at
  that time the partial matches of a start are dropped or open whatever was before.

With the other skip strategies a match also drops partial matches that started after it, and that may decide which later
matches there are, without end. There a slice takes what the last window leaves open for an assumption, which the slice
before confirms or replaces. What it needs to know is only which starts are open: how far their partial matches have
come follows from the events.
"""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.lang.duration import format_duration, microseconds
from cepheid.lang.stages.pattern import SkipTo
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.division import TimeSlices
from cepheid.plan.stages.division.skip_names import SKIP_NAMES
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.plans import Plans
from cepheid.plan.undivided import Undivided, undivided_of_all

SETTLING = (SkipTo.NO_SKIP, SkipTo.NEXT)
"""The skip strategies with which a match drops no partial matches of later starts."""


def slices_of(plan: Plan, *, settled: bool = False) -> TimeSlices | Undivided:
    """How one key's events are divided into time slices; otherwise the reasons why not. If `settled`, only slices that
    settle will do.
    """
    if reasons := (*_obstacles(plan), *(_unsettled(plan) if settled else ())):
        return Undivided(reasons)
    without, skip = plan.pattern.without, plan.pattern.skip_strategy.to
    assert plan.window is not None
    return TimeSlices(
        before=0 if without is None else microseconds(without.window),
        window=plan.window,
        waits=skip is not SkipTo.NO_SKIP,
        settles=skip in SETTLING,
    )


def slices_of_all(plans: Plans, *, settled: bool = False) -> TimeSlices | Undivided:
    """The same for several patterns, which have common slices; the reasons name their pattern."""
    each = [slices_of(plan, settled=settled) for plan in plans.each]
    found = [slices for slices in each if isinstance(slices, TimeSlices)]
    if len(found) == len(each):
        return TimeSlices(
            before=max(one.before for one in found),
            window=max(one.window for one in found),
            waits=any(one.waits for one in found),
            settles=all(one.settles for one in found),
        )
    return undivided_of_all(plans, each)


def slices_text(plan: Plan) -> str:
    """Whether a key can be divided into time slices, in words."""
    found = slices_of(plan)
    if isinstance(found, Undivided):
        return f"by time: cannot, because {found.text}"
    assert plan.pattern.window is not None
    window, skip = format_duration(plan.pattern.window), SKIP_NAMES.get(plan.pattern.skip_strategy.to)
    if not found.settles:
        return (
            "by time: finite input can in process, where each slice is told which starts the one before left open; not "
            f"on Spark, because {'; '.join(_unsettled(plan))}"
        )
    why = "partial matches of different first events do not affect each other and"
    if found.waits:
        why = f"{skip} lets a match only wait for partial matches that started earlier, and they"
    return (
        "by time: finite input can, in process and on Spark (without a key, or with slices=True), because "
        f"{why} end within {window}"
    )


def _obstacles(plan: Plan) -> Iterator[str]:
    if plan.schema.time is None:
        yield "events have no times (processing order)"
    elif plan.pattern.calendar is not None:
        yield "within follows the calendar, so its length differs"
    elif plan.pattern.window is None:
        yield "without within, a match may end at any later time"
    if plan.limits.on_limit == "drop":
        yield "on_limit='drop' counts the partial matches of all starts together"
    if plan.truth_bits >= MAX_CONDITIONS:
        yield f"its conditions need all {MAX_CONDITIONS} bits of an event, and none is left to mark starts"


def _unsettled(plan: Plan) -> Iterator[str]:
    """Why a slice needs to know what the one before left open, if it does."""
    if (skip := plan.pattern.skip_strategy.to) not in SETTLING:
        yield f"{SKIP_NAMES[skip]} lets a match drop partial matches that started after it"
