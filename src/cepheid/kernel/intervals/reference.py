"""The definition of interval patterns: all combinations of events, each checked with plain Python.

It follows Zhou et al., sections 3 and 4. What they leave open is decided in `docs/intervals.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, product
from operator import eq, ge, gt, le, lt
from typing import NamedTuple, TypeAlias

from cepheid.kernel.consistency_reference import ALWAYS, NEVER, Life
from cepheid.kernel.scripts.python_functions import Value
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import (
    Comparison,
    Endpoint,
    Mode,
    Negation,
    Related,
    Relation,
    Scope,
    Window,
    related,
    variables_of,
)
from cepheid.plan.intervals.bounds import listed_pairs
from cepheid.plan.intervals.plan import IntervalPlan, JoinScript


class Interval(NamedTuple):
    """An event with its lifted columns."""

    start: int
    end: int
    mask: int
    values: tuple[Value, ...]


class Span(NamedTuple):
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


Match: TypeAlias = tuple[int, ...]
"""The index of each variable's event."""


def matches(plan: IntervalPlan, events: Sequence[Interval]) -> list[Match]:
    """All matches in the events, in order of (end, start)."""
    candidates = [_events_of(plan, variable, events) for variable in range(plan.positives)]
    found = [match for match in product(*candidates) if _holds(plan, match, events)]
    return sorted(found, key=lambda match: (hull(events[i] for i in match)[::-1], match))


def hull(spans: Iterable[Span | Interval]) -> Span:
    """The smallest span that contains all of them."""
    known = list(spans)
    return Span(min(span.start for span in known), max(span.end for span in known))


def relation_between(x: Span | Interval, y: Span | Interval) -> Relation:
    """The relation that holds from x to y."""
    if x.end < y.start:
        return Relation.BEFORE
    if x.start > y.end:
        return Relation.AFTER
    if x.start == y.start:
        return Relation.EQUAL if x.end == y.end else Relation.START if x.end < y.end else Relation.STARTED_BY
    if x.end == y.end:
        return Relation.FINISH if x.start > y.start else Relation.FINISHED_BY
    if x.end == y.start:
        return Relation.MEET
    if x.start == y.end:
        return Relation.MET_BY
    if x.start < y.start:
        return Relation.OVERLAP if x.end < y.end else Relation.CONTAIN
    return Relation.DURING if x.end < y.end else Relation.OVERLAPPED_BY


_OPERATORS: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}


def _events_of(plan: IntervalPlan, variable: int, events: Sequence[Interval]) -> list[int]:
    return [i for i, event in enumerate(events) if event.mask >> plan.variable_bits[variable] & 1]


def _holds(plan: IntervalPlan, match: Match, events: Sequence[Interval]) -> bool:
    pattern = plan.pattern
    if len(set(match)) < len(match):
        return False
    bound = dict(zip(pattern.variables, (events[i] for i in match), strict=False))
    return (
        (plan.window is None or _within(plan, bound).length <= plan.window)
        and (pattern.mode is Mode.PAL or all(_follows(x, y) for x, y in pairwise(bound.values())))
        and all(_compares(comparison, bound) for comparison in pattern.order)
        and all(relation_between(bound[p.left], bound[p.right]) in p.relations for p in pattern.pairs)
        and all(_relates(node, bound) for node in (related(pattern.tree) if pattern.tree is not None else ()))
        and all((bound[v].start, bound[v].end) <= (bound[w].start, bound[w].end) for v, w in listed_pairs(pattern))
        and _true(plan.scripts, list(bound.values()))
        and not any(_forbidden(plan, number, match, events) for number in range(len(pattern.negations)))
    )


def _within(plan: IntervalPlan, bound: dict[str, Interval]) -> Span:
    """What `within` bounds: from the first start of the match to its last end, or to its last start."""
    match = [bound[p.variable] for p in plan.pattern.positives]
    whole = hull(match)
    return whole if plan.pattern.window_of is Window.MATCH else Span(whole.start, max(e.start for e in match))


def _follows(x: Span | Interval, y: Span | Interval) -> bool:
    """Whether y follows x in the sense of SEQ."""
    return x.end <= y.start and x.start < y.start


def _compares(comparison: Comparison, bound: dict[str, Interval]) -> bool:
    return _OPERATORS[comparison.operator](_time(comparison.left, bound), _time(comparison.right, bound))


def _time(endpoint: Endpoint, bound: dict[str, Interval]) -> int:
    found: int = getattr(bound[endpoint.variable], endpoint.end.value)
    return found


def _relates(node: Related, bound: dict[str, Interval]) -> bool:
    left, right = ([bound[v] for v in variables_of(part)] for part in (node.left, node.right))
    if relation_between(hull(left), hull(right)) is not node.relation:
        return False
    if node.counts is None:
        return True
    found = [relation_between(event, right[0]) for event in left]
    return all(found.count(relation) == vars(node.counts)[name] for name, relation in _COUNTED.items())


_COUNTED = {
    "contain": Relation.CONTAIN,
    "finished_by": Relation.FINISHED_BY,
    "meet": Relation.MEET,
    "overlap": Relation.OVERLAP,
    "start": Relation.START,
}


def _true(scripts: Iterable[JoinScript], events: Sequence[Interval]) -> bool:
    taken = list(enumerate(events))
    return all(evaluate(one.script, taken, ()) is True for one in scripts)


def _forbidden(plan: IntervalPlan, number: int, match: Match, events: Sequence[Interval]) -> bool:
    """Whether an event forbids the match."""
    negation, variable = plan.pattern.negations[number], plan.positives + number
    others = [i for i in _events_of(plan, variable, events) if i not in match]
    bound = dict(zip(plan.pattern.variables, (events[i] for i in match), strict=False))
    return any(_forbids(plan, negation, variable, bound | {negation.variable: events[i]}) for i in others)


def _forbids(plan: IntervalPlan, negation: Negation, variable: int, bound: dict[str, Interval]) -> bool:
    d = bound[negation.variable]
    if negation.scope is not None and not _lies_in(negation.scope, d, *_parts(plan, negation, bound)):
        return False
    if not all(_compares(comparison, bound) for comparison in negation.order):
        return False
    taken = [(plan.number(v), event) for v, event in bound.items()]
    scripts = plan.negated[variable - plan.positives]
    return all(evaluate(one.script, taken, ()) is True for one in scripts)


class Border(NamedTuple):
    """Where the scope begins or ends if no part of the match is there. The time belongs to the scope."""

    time: int


def _parts(plan: IntervalPlan, negation: Negation, bound: dict[str, Interval]) -> tuple[Span | Border, Span | Border]:
    """The spans of the two parts, or the border in place of an empty part."""
    left, right = ([bound[v] for v in part] for part in (negation.left, negation.right))
    match, window = _within(plan, bound), plan.window or 0
    return (
        hull(left) if left else Border(match.end - window),
        hull(right) if right else Border(match.start + window),
    )


def _lies_in(scope: Scope, d: Interval, x: Span | Border, y: Span | Border) -> bool:
    match scope:
        case Scope.START_BETWEEN:
            return _starts_after_start(x, d) and _starts_before_start(d, y)
        case Scope.GAP:
            return _end(x) <= d.start and d.end <= _start(y)
        case Scope.SEQ_BETWEEN:
            return (
                (_end(x) <= d.start and _starts_after_start(x, d)) and d.end <= _start(y) and _starts_before_start(d, y)
            )
        case Scope.INTERSECTS_GAP:
            return _starts_before_start(d, y) and d.end > _end(x)
        case Scope.DURING_SPAN:
            span = _both(x, y)
            return span.start <= d.start and d.end <= span.end


def _both(x: Span | Border, y: Span | Border) -> Span:
    """The span of two parts that have events."""
    assert isinstance(x, Span)
    assert isinstance(y, Span)
    return hull((x, y))


def _start(part: Span | Border) -> int:
    return part.time if isinstance(part, Border) else part.start


def _end(part: Span | Border) -> int:
    return part.time if isinstance(part, Border) else part.end


def _starts_after_start(x: Span | Border, d: Interval) -> bool:
    return x.time <= d.start if isinstance(x, Border) else x.start < d.start


def _starts_before_start(d: Interval, y: Span | Border) -> bool:
    return d.start <= y.time if isinstance(y, Border) else d.start < y.start


def life(plan: IntervalPlan, match: Match, events: Sequence[Interval], lateness: End) -> Life:
    """The end of the match, and the greatest lateness time (start or end, as `lateness` says) of an event that could
    forbid it.
    """
    bound = dict(zip(plan.pattern.variables, (events[i] for i in match), strict=False))
    until = [_forbidden_until(plan, negation, bound, lateness) for negation in plan.pattern.negations]
    return Life(hull(bound.values()).end, max(until, default=ALWAYS))


def _forbidden_until(plan: IntervalPlan, negation: Negation, bound: dict[str, Interval], lateness: End) -> float:
    if negation.scope is not None:
        left, right = _parts(plan, negation, bound)
        match negation.scope:
            case Scope.START_BETWEEN | Scope.INTERSECTS_GAP if lateness is End.START:
                return right.time if isinstance(right, Border) else right.start - 1
            case Scope.GAP | Scope.SEQ_BETWEEN:
                return _start(right)
            case Scope.DURING_SPAN:
                return _both(left, right).end
    # An endpoint of the match bounds the lateness time, and no endpoint is after the end of the match.
    last = any(_bounds_lateness_time(comparison, negation.variable, lateness) for comparison in negation.order)
    return hull(bound.values()).end if last else NEVER


def _bounds_lateness_time(comparison: Comparison, variable: str, lateness: End) -> bool:
    """Whether the comparison requires that the event's lateness time is not after an endpoint of the match."""
    less, more = comparison.left, comparison.right
    if comparison.operator in (">", ">="):
        less, more = more, less
    if comparison.operator == "=" and more.variable == variable:
        less, more = more, less
    return less.variable == variable != more.variable and (lateness is End.START or less.end is End.END)


def by_acceptance(
    plan: IntervalPlan, events: Sequence[Interval], lateness: End
) -> Callable[[Sequence[int], float], dict[Match, Life]]:
    """The function `matches` for `emission_log`: the matches of the accepted events, as positions."""

    def known(accepted: Sequence[int], _: float) -> dict[Match, Life]:
        found = matches(plan, [events[i] for i in accepted])
        placed = [tuple(accepted[i] for i in match) for match in found]
        return {match: life(plan, match, events, lateness) for match in placed}

    return known
