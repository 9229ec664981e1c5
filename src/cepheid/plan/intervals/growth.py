"""Until when an event may forbid a match and how long it is kept, for each negation; and the patterns for which that
never ends: whose matches are never certain, or that keep ever more.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from cepheid.errors import Problem
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import Consistency, End, Endpoint, Negation, Scope
from cepheid.plan.intervals.bounds import comparison_differences


class Guard(IntEnum):
    """Up to which key an event may forbid a match."""

    FOREVER = 0
    BEFORE_RIGHT = 1
    """A microsecond before the right part starts."""
    RIGHT = 2
    """The start of the right part."""
    PARTS = 3
    """The end of both parts."""
    MATCH = 4
    """The end of the match."""


class Purge(IntEnum):
    """By which of its times a negated event is forgotten."""

    START = 0
    END = 1
    KEEP = 2


def guard_of(negation: Negation, lateness: End) -> Guard:
    """Where events are late by that of their times. What an order bounds is over with the match, and not before what a
    scope bounds.
    """
    match negation.scope:
        case Scope.START_BETWEEN | Scope.INTERSECTS_GAP if lateness is End.START:
            return Guard.BEFORE_RIGHT
        case Scope.GAP | Scope.SEQ_BETWEEN:
            return Guard.RIGHT
        case Scope.DURING_SPAN:
            return Guard.PARTS
    own = negation.variable
    above = [left.end for left, right in _differences(negation) if left.variable == own != right.variable]
    bounded = End.END in above or (lateness is End.START and bool(above))
    return Guard.MATCH if bounded else Guard.FOREVER


def purge_of(pattern: IntervalPattern, negation: Negation) -> Purge:
    """An event that begins before the start of every match to come forbids none of them if the scope says so."""
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
    """The first is bounded from above by the second."""
    return [(left, right) for comparison in negation.order for left, right, _ in comparison_differences(comparison)]


_BOUNDING = "choose a scope that bounds them (gap, seq_between or during_span)"


def never_certain(pattern: IntervalPattern, lateness: End, by_start: str = "lateness='start'") -> list[Problem]:
    """Negations that keep every match from being told until no event comes any more, where events are late by that of
    their times; `by_start` is the argument that lets them be late by their starts.
    """
    if pattern.consistency is Consistency.REALTIME:
        return []
    ways = [f"let lateness be that of starts ({by_start})"] * (lateness is End.END)
    hint = f"Either {', or '.join([*ways, _BOUNDING])}, or let the pattern emit in real time."
    found = _however_late(pattern, lateness)
    return [Problem(f"{what}, so that no match is ever certain", hint=hint) for what in found]


def interval_growth(pattern: IntervalPattern, lateness: End) -> tuple[str, ...]:
    """What a matcher keeps for ever, where events go on coming and are late by that of their times: a sentence a cause,
    and what to do. The pattern is not one whose matches are never certain.
    """
    return tuple(f"{why}." for why in _growth(pattern, lateness))


def _growth(pattern: IntervalPattern, lateness: End) -> Iterator[str]:
    if pattern.window is None and (len(pattern.positives) > 1 or pattern.negations):
        yield "without within an interval pattern needs all its events for ever. Add within(…)"
    for negation in pattern.negations:
        if pattern.window is not None and purge_of(pattern, negation) is Purge.KEEP:
            yield f"nothing bounds the negation of {negation.variable!r}, whose events are kept. Give it a scope"
    if pattern.consistency is Consistency.REALTIME:
        for what in _however_late(pattern, lateness):
            yield f"{what}, so that no match is ever final. Better {_BOUNDING}"


def _however_late(pattern: IntervalPattern, lateness: End) -> Iterator[str]:
    for negation in pattern.negations:
        if guard_of(negation, lateness) is Guard.FOREVER:
            by = f"events that forbid a match may come however late by their {lateness.value}s"
            yield f"the negation of {negation.variable!r}: {by}"


def interval_warnings(pattern: IntervalPattern, lateness: End = End.START) -> tuple[str, ...]:
    """What to beware of where the pattern is found in events that go on coming; a table ends."""
    uncertain = [f"{problem.message}. {problem.hint}" for problem in never_certain(pattern, lateness)]
    return (*uncertain, *interval_growth(pattern, lateness))
