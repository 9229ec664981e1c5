"""From when on a match holds, whatever the open ends turn out to be.

Each open end may be any time from `ends_from` on, and not before the event's start. A match is certain from the least
`ends_from` with which everything that it requires holds for all such ends. `kernel.intervals.open_reference` is the
definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.kernel.intervals.layout import OPEN_END
from cepheid.kernel.intervals.reference import Span, relation_between
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import Endpoint, Negation, Relation, Scope, Window, related, variables_of
from cepheid.plan.intervals.bounds import comparison_differences, listed_pairs
from cepheid.plan.intervals.constants import Guard
from cepheid.plan.intervals.ends import reads_end
from cepheid.plan.intervals.growth import guard_of
from cepheid.plan.intervals.plan import IntervalPlan

_COUNTED = (Relation.CONTAIN, Relation.FINISHED_BY, Relation.MEET, Relation.OVERLAP, Relation.START)


class Times(NamedTuple):
    """The times of an event, or of several together."""

    start: int
    end: int
    """OPEN_END if it is not known."""
    least_end: int
    """If the end is not known, a time that it is not before."""

    @property
    def is_open(self) -> bool:
        return self.end == OPEN_END


def times_of(start: int, end: int) -> Times:
    return Times(start, end, start if end == OPEN_END else end)


def _hull(times: Sequence[Times]) -> Times:
    least = max(one.least_end for one in times)
    end = OPEN_END if any(one.is_open for one in times) else least
    return Times(min(one.start for one in times), end, least)


class Certainty:
    """The times from which matches of a plan are certain. The matches hold if all open ends are OPEN_END."""

    def __init__(self, plan: IntervalPlan, lateness: End) -> None:
        self._plan, self._lateness = plan, lateness
        self._window = plan.window  # which is computed at each use
        reads = reads_end(plan)
        bits = plan.variable_bits[: plan.positives]
        of_bits = {variable for variable, bit in enumerate(bits) if reads.bits >> bit & 1}
        self._waiting = frozenset(of_bits).union(*reads.scripts)
        self._guards = [guard_of(negation, lateness) for negation in plan.pattern.negations]
        self._orders = [
            [one for comparison in negation.order for one in comparison_differences(comparison)]
            for negation in plan.pattern.negations
        ]

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        return tuple(positive.variable for positive in self._plan.pattern.positives)

    def holds_from(self, times: Sequence[Times]) -> int:
        """From when on everything that is required of the match's events holds; FOREVER: not before ends are known."""
        if not any(one.is_open for one in times):
            return NO_TIME
        needs_all = self._window is not None and self._plan.pattern.window_of is not Window.STARTS
        if needs_all or any(times[variable].is_open for variable in self._waiting):
            return FOREVER
        return max(self._demands(dict(zip(self._variables, times, strict=True))), default=NO_TIME)

    def _demands(self, bound: Mapping[str, Times]) -> Iterator[int]:
        pattern = self._plan.pattern
        for comparison in pattern.order:
            yield from (_difference_from(*one, bound) for one in comparison_differences(comparison))
        for pair in pattern.pairs:
            yield _relation_from(bound[pair.left], bound[pair.right], pair.relations)
        for node in related(pattern.tree) if pattern.tree is not None else ():
            left, right = ([bound[v] for v in variables_of(part)] for part in (node.left, node.right))
            yield _relation_from(_hull(left), _hull(right), (node.relation,))
            if node.counts is not None:
                yield from (_count_from(one, right[0]) for one in left)
        for v, w in listed_pairs(pattern):
            if bound[v].start == bound[w].start:
                yield _difference_from(Endpoint(v, End.END), Endpoint(w, End.END), 0, bound)

    def forbidden_until(self, times: Sequence[Times]) -> int:
        """The greatest lateness time of an event that comes later and could forbid the match; FOREVER if any may."""
        bound = dict(zip(self._variables, times, strict=True))
        until = NO_TIME
        for negation, guard in zip(self._plan.pattern.negations, self._guards, strict=True):
            until = max(until, self._guarded(negation, guard, bound))
        return until

    def _guarded(self, negation: Negation, guard: Guard, bound: Mapping[str, Times]) -> int:
        match guard:
            case Guard.FOREVER:
                return FOREVER
            case Guard.WINDOW:
                return min(one.start for one in bound.values()) + (self._window or 0)
            case Guard.BEFORE_RIGHT | Guard.RIGHT:
                return min(bound[v].start for v in negation.right) - (guard is Guard.BEFORE_RIGHT)
        parts = (*negation.left, *negation.right) if guard is Guard.PARTS else tuple(bound)
        hull = _hull([bound[v] for v in parts])
        return FOREVER if hull.is_open else hull.end

    def allowed_from(self, number: int, times: Sequence[Times], negated: Times) -> int:
        """From when on the event does not forbid the match by negation `number`, whose SQL it satisfies; NO_TIME: it
        never does, FOREVER: it does, or may for any longer.
        """
        negation = self._plan.pattern.negations[number]
        bound = {**dict(zip(self._variables, times, strict=True)), negation.variable: negated}
        given = [_known_difference(left, right, most, bound) for left, right, most in self._orders[number]]
        borders = self._borders(times)
        return max(_refuted_from([*given, *scope], bound) for scope in _scope(negation, bound, borders))

    def settled_from(self, times: Sequence[Times]) -> int:
        """Where rows revise and withdraw events: from which horizon on, the first time that is not late, none of the
        match's events can be withdrawn, and the match holds whatever ends they get; FOREVER: not before rows close
        some. Negated events that are there already are not looked at.
        """
        last = max(one.start if self._lateness is End.START else one.end for one in times)
        if last == OPEN_END:
            return FOREVER
        found = _settled_from(times, lambda now: max(self.holds_from(now), self.forbidden_until(now) + 1))
        return max(found, last + 1)

    def cleared_from(self, number: int, times: Sequence[Times], negated: Times) -> int:
        """From which horizon on the event cannot forbid the match by negation `number`, whatever ends
        all of them get.
        """
        return _settled_from([*times, negated], lambda now: self.allowed_from(number, now[:-1], now[-1]))

    def _borders(self, times: Sequence[Times]) -> tuple[int, int]:
        """Where a scope begins without a left part, and where it ends without a right one."""
        window = self._window or 0
        of_starts = self._plan.pattern.window_of is Window.STARTS
        # With a window of the match, all its ends are known: it would not be certain otherwise.
        last = max(one.start if of_starts else one.end for one in times)
        return last - window, min(one.start for one in times) + window


def _settled_from(times: Sequence[Times], needed_from: Callable[[Sequence[Times]], int]) -> int:
    """The least horizon from which on something holds, where each event that ends at the horizon or later may get any
    end from then on. `needed_from` has the least end of open events with which it holds.
    """
    fixed_until, least = NO_TIME, NO_TIME
    for end in sorted({one.end for one in times if not one.is_open}):
        found = max(needed_from([_open_after(one, fixed_until) for one in times]), least)
        if found <= end:
            return found
        fixed_until, least = end, end + 1
    return max(needed_from(times), least)


def _open_after(one: Times, time: int) -> Times:
    return one if one.end <= time else times_of(one.start, OPEN_END)


def _difference_from(left: Endpoint, right: Endpoint, most: int, bound: Mapping[str, Times]) -> int:
    """From when on left - right <= most."""
    high, low = _time(left, bound), _time(right, bound)
    if left == right or isinstance(low, int):
        return FOREVER if isinstance(high, str) and left != right else NO_TIME
    if isinstance(high, str):
        return FOREVER
    return NO_TIME if bound[right.variable].start >= high - most else high - most


def _relation_from(x: Times, y: Times, allowed: Sequence[Relation]) -> int:
    """From when on the relation between the two is one of these."""
    if not (x.is_open or y.is_open):
        return NO_TIME
    wrong = NO_TIME
    for x_end in _ends(x, y):
        for y_end in _ends(y, x):
            relation = relation_between(Span(x.start, x_end), Span(y.start, y_end))
            if relation not in allowed:
                wrong = max(wrong, *([x_end] if not y.is_open else [y_end] if not x.is_open else [min(x_end, y_end)]))
    return FOREVER if wrong >= OPEN_END - 2 else NO_TIME if wrong == NO_TIME else wrong + 1


def _ends(one: Times, other: Times) -> list[int]:
    """Ends of each kind that the first may have: just before, at and just after a time of the other, and after all."""
    if not one.is_open:
        return [one.end]
    known = (one.least_end, other.start, other.least_end)
    near = {time + i for time in (*known, OPEN_END) for i in (-2, -1, 0, 1)}
    return [time for time in near if time >= one.least_end]


def _count_from(one: Times, right: Times) -> int:
    """From when on the event counts as it does with open ends far away."""
    far = relation_between(Span(one.start, one.end), Span(right.start, right.end))
    others = [relation for relation in Relation if relation not in _COUNTED]
    return _relation_from(one, right, [far] if far in _COUNTED else others)


# Whether open ends exist with which an event forbids a match


class _Difference(NamedTuple):
    """left - right <= most; an open end is the name of its variable."""

    left: int | str
    right: int | str
    most: int


def _scope(negation: Negation, bound: Mapping[str, Times], borders: tuple[int, int]) -> list[list[_Difference]]:
    """What must hold for an event in the scope: one of these lists, all of it. `borders` are in place of a part that is
    empty.
    """
    if negation.scope is None:
        return [[]]
    left, right = negation.left, negation.right
    x_start, y_start = (
        min((bound[v].start for v in part), default=at) for part, at in zip((left, right), borders, strict=True)
    )
    x_ends, y_ends = ([_end(v, bound) for v in part] or [at] for part, at in zip((left, right), borders, strict=True))
    d_start, d_end = bound[negation.variable].start, _end(negation.variable, bound)
    after_x = [_Difference(end, d_start, 0) for end in x_ends]
    starts_after = _Difference(x_start, d_start, -1 if left else 0)
    starts_before = _Difference(d_start, y_start, -1 if right else 0)
    match negation.scope:
        case Scope.START_BETWEEN:
            return [[starts_after, starts_before]]
        case Scope.GAP:
            return [[*after_x, _Difference(d_end, y_start, 0)]]
        case Scope.SEQ_BETWEEN:
            return [[*after_x, _Difference(d_end, y_start, 0), starts_after, starts_before]]
        case Scope.INTERSECTS_GAP:
            return [[starts_before, *(_Difference(end, d_end, -1) for end in x_ends)]]
        case Scope.DURING_SPAN:
            first = _Difference(min(x_start, y_start), d_start, 0)
            return [[first, _Difference(d_end, end, 0)] for end in (*x_ends, *y_ends)]


def _known_difference(left: Endpoint, right: Endpoint, most: int, bound: Mapping[str, Times]) -> _Difference:
    return _Difference(_time(left, bound), _time(right, bound), most)


def _time(endpoint: Endpoint, bound: Mapping[str, Times]) -> int | str:
    return bound[endpoint.variable].start if endpoint.end is End.START else _end(endpoint.variable, bound)


def _end(variable: str, bound: Mapping[str, Times]) -> int | str:
    times = bound[variable]
    return variable if times.is_open else times.end


def _refuted_from(differences: Sequence[_Difference], bound: Mapping[str, Times]) -> int:
    """From when on no open ends satisfy all the differences; NO_TIME: none ever do, FOREVER: some always do.

    The least ends that satisfy the lower bounds are computed, each as the later of a time and `ends_from` plus a
    number. They satisfy the upper bounds if any ends do.
    """
    opens = [name for name, times in bound.items() if times.is_open]
    fixed, added = {name: bound[name].start for name in opens}, dict.fromkeys(opens, 0)
    most: dict[str, int] = {}
    for left, right, least in differences:
        if isinstance(left, int) and isinstance(right, int):
            if left - right > least:
                return NO_TIME
        elif isinstance(left, str) and isinstance(right, int):
            most[left] = min(most.get(left, FOREVER), right + least)
        elif isinstance(left, int) and isinstance(right, str):
            fixed[right] = max(fixed[right], left - least)
    pairs = [(d.left, d.right, d.most) for d in differences if isinstance(d.left, str) and isinstance(d.right, str)]
    for _ in range(len(opens) + 1):
        changed = False
        for left, right, least in pairs:
            if fixed[left] - least > fixed[right] or added[left] - least > added[right]:
                fixed[right], added[right] = (
                    max(fixed[right], fixed[left] - least),
                    max(added[right], added[left] - least),
                )
                changed = True
        if not changed:
            break
    else:
        return NO_TIME
    if any(fixed[name] > bound_ for name, bound_ in most.items()):
        return NO_TIME
    return min((bound_ - added[name] + 1 for name, bound_ in most.items()), default=FOREVER)
