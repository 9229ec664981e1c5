"""For each negation, until when an event may forbid a match, and how long such events are stored.

Also finds the patterns for which this never ends: their matches are never certain, or they store more and more events.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from cepheid.errors import Problem
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import Endpoint, Negation, Scope, Window
from cepheid.plan.intervals.bounds import comparison_differences
from cepheid.plan.intervals.constants import Guard


class Purge(IntEnum):
    """The time of a negated event that decides when it is dropped."""

    START = 0
    END = 1
    KEEP = 2


def guard_of(negation: Negation, lateness: End) -> Guard:
    """The guard of the negation; `lateness` is the time by which events are late.

    If only `order` bounds the negated event, it may forbid a match up to the end of the match, which is not before what
    a scope bounds.
    """
    match negation.scope:
        case Scope.START_BETWEEN | Scope.INTERSECTS_GAP if lateness is End.START:
            return Guard.BEFORE_RIGHT if negation.right else Guard.WINDOW
        case Scope.GAP | Scope.SEQ_BETWEEN:
            return Guard.RIGHT if negation.right else Guard.WINDOW
        case Scope.DURING_SPAN:
            return Guard.PARTS
    own = negation.variable
    above = [left.end for left, right in _differences(negation) if left.variable == own != right.variable]
    bounded = End.END in above or (lateness is End.START and bool(above))
    return Guard.MATCH if bounded else Guard.FOREVER


def purge_of(pattern: IntervalPattern, negation: Negation) -> Purge:
    """The time of a negated event that decides when it is dropped: once this time is before the starts of all future
    matches, the event forbids none of them.
    """
    if pattern.window is None:
        return Purge.KEEP
    match negation.scope:
        case Scope.INTERSECTS_GAP:
            return Purge.END
        case None:
            own = negation.variable
            below = [right.end for left, right in _differences(negation) if right.variable == own != left.variable]
            return Purge.START if End.START in below else Purge.END if below else Purge.KEEP
        case _:
            return Purge.START


def _differences(negation: Negation) -> list[tuple[Endpoint, Endpoint]]:
    """The pairs of endpoints in which the second bounds the first from above."""
    return [(left, right) for comparison in negation.order for left, right, _ in comparison_differences(comparison)]


_BOUNDING = "choose a scope that bounds them (gap, seq_between or during_span)"


def never_certain(pattern: IntervalPattern, lateness: End, by_start: str | None = "lateness='start'") -> list[Problem]:
    """The problems of negations that hold back every match until the input ends. `lateness` is the time by which events
    are late; `by_start` is the argument that makes events late by their starts, if there is one.
    """
    if pattern.consistency is Consistency.REALTIME:
        return []
    ways = [f"measure lateness at starts ({by_start})"] * (lateness is End.END and by_start is not None)
    hint = f"Either {', or '.join([*ways, _BOUNDING])}, or let the pattern emit in real time."
    found = _unbounded(pattern, lateness)
    return [Problem(f"{what}, so that no match is ever certain", hint=hint) for what in found]


def interval_growth(pattern: IntervalPattern, lateness: End) -> tuple[str, ...]:
    """What a matcher stores for ever, if the input does not end: one sentence per cause, with advice. `lateness` is the
    time by which events are late. The pattern is not one whose matches are never certain.
    """
    return tuple(f"{why}." for why in _growth(pattern, lateness))


def _growth(pattern: IntervalPattern, lateness: End) -> Iterator[str]:
    if pattern.window is None and (len(pattern.positives) > 1 or pattern.negations):
        yield "without within(…) an interval pattern stores all its events for ever. Add within(…)"
    if pattern.window is not None and pattern.window_of is Window.STARTS and lateness is End.END:
        what = "within … of starts does not bound how long before its end an event starts, so all events are stored"
        yield f"{what} for ever where lateness is measured at ends"
    for negation in pattern.negations:
        if pattern.window is not None and purge_of(pattern, negation) is Purge.KEEP:
            what = f"nothing bounds the negation of {negation.variable!r}, whose events are stored for ever"
            yield f"{what}. Give it a scope"
    if pattern.consistency is Consistency.REALTIME:
        for what in _unbounded(pattern, lateness):
            yield f"{what}, so that no match is ever final. Better {_BOUNDING}"


def _unbounded(pattern: IntervalPattern, lateness: End) -> Iterator[str]:
    for negation in pattern.negations:
        if guard_of(negation, lateness) is Guard.FOREVER:
            why = f"an event with any later {lateness.value} may still forbid a match"
            yield f"the negation of {negation.variable!r}: {why}"


def interval_warnings(pattern: IntervalPattern, lateness: End = End.START) -> tuple[str, ...]:
    """Warnings for a pattern on input that does not end, unlike a table."""
    uncertain = [f"{problem.message}. {problem.hint}" for problem in never_certain(pattern, lateness)]
    return (*uncertain, *interval_growth(pattern, lateness))
