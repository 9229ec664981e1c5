"""Time slices of interval patterns: each match belongs to the slice in which its first event starts.

The starts of a match are no further apart than the window, so all of its events start within a window after the
slice's last start. Most negations are about events that start there, too. One before the first event of a match is also
about those that start up to a window before the slice. Those of `intersects_gap`, and those that bound only the end of
an event, may be about one that started any time before: the slice needs the events that end in it or later.
"""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.lang.consistency import End
from cepheid.lang.duration import format_duration
from cepheid.lang.intervals.values import Window
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.division import TimeSlices
from cepheid.plan.intervals.constants import FREE, Guard
from cepheid.plan.intervals.growth import Purge, guard_of, purge_of
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans
from cepheid.plan.undivided import Undivided, undivided_of_all

_LONGEST = FREE // 16
"""Microseconds: hosts add several windows to times."""


def slices_of(plan: IntervalPlan, *, settled: bool = False) -> TimeSlices | Undivided:
    """How events are divided into time slices; otherwise the reasons why not. If `settled`, a slice must not need
    events that started any time before.
    """
    overlaps = (*_overlaps(plan),)
    if reasons := (*_obstacles(plan), *(overlaps if settled else ())):
        return Undivided(reasons)
    assert plan.window is not None
    reaches_back = any(negation.scope is not None and not negation.left for negation in plan.pattern.negations)
    before = plan.window if reaches_back else 0
    return TimeSlices(before=before, window=plan.window, by_start=True, overlaps=bool(overlaps))


def slices_of_all(plans: IntervalPlans, *, settled: bool = False) -> TimeSlices | Undivided:
    """The same for several patterns, which have common slices; the reasons name their pattern."""
    each = [slices_of(plan, settled=settled) for plan in plans.each]
    found = [slices for slices in each if isinstance(slices, TimeSlices)]
    if len(found) == len(each):
        before, window = max(one.before for one in found), max(one.window for one in found)
        return TimeSlices(before=before, window=window, by_start=True, overlaps=any(one.overlaps for one in found))
    return undivided_of_all(plans, each)


def slices_text(plan: IntervalPlan) -> str:
    """Whether events can be divided into time slices, in words."""
    found = slices_of(plan)
    if isinstance(found, Undivided):
        return f"by time: cannot, because {found.text}"
    if found.overlaps:
        return f"by time: finite input can in process; not on Spark, because {'; '.join(_overlaps(plan))}"
    assert plan.pattern.window is not None
    window = format_duration(plan.pattern.window) or "0 seconds"
    return (
        "by time: finite input can, in process and on Spark (without a key, or with slices=True), because a match and "
        f"what forbids it start within {window}"
    )


def _obstacles(plan: IntervalPlan) -> Iterator[str]:
    if plan.window is None:
        yield "without within, a match may end at any later time"
    elif plan.window >= _LONGEST:
        yield "within is longer than any time between events"
    for negation in plan.pattern.negations:
        if plan.window is not None and purge_of(plan.pattern, negation) is Purge.KEEP:
            yield f"the negation of {negation.variable!r} looks at events of any earlier time"
        guard = guard_of(negation, End.START)
        if guard is Guard.FOREVER:
            yield f"the negation of {negation.variable!r} looks at events of any later time"
        if guard in (Guard.PARTS, Guard.MATCH) and plan.pattern.window_of is Window.STARTS:
            yield f"the negation of {negation.variable!r} looks at events up to the end of a match, of any later time"
    if plan.limits.on_limit == "drop":
        yield "on_limit='drop' counts the matches of all starts together"
    if len(plan.bits) >= MAX_CONDITIONS:
        yield f"its conditions need all {MAX_CONDITIONS} bits of an event, and none is left to mark starts"


def _overlaps(plan: IntervalPlan) -> Iterator[str]:
    """Why a slice needs events that started any time before, if it does."""
    for negation in plan.pattern.negations:
        if purge_of(plan.pattern, negation) is Purge.END:
            yield f"the negation of {negation.variable!r} looks at events that started any time before"
