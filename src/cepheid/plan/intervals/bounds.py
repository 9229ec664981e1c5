"""What must hold between single endpoints of an interval pattern, as differences: x - y <= w, in whole microseconds.

A relation between the spans of several events constrains single events, too, but not completely. It is checked in full
once its events are there. The differences narrow the search for these events, and reveal contradictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.lang.consistency import End
from cepheid.lang.duration import format_duration, microseconds
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import Comparison, Endpoint, Mode, Relation, Window, related, variables_of
from cepheid.plan.intervals.constants import FREE

Bounds = npt.NDArray[np.int64]


_S, _E = End.START, End.END


class Difference(NamedTuple):
    """Endpoint `left` - endpoint `right` <= `most`; `reason` is the part of the pattern that requires it."""

    left: Endpoint
    right: Endpoint
    most: int
    reason: str


_BEFORE = ((0, _E), (1, _S), -1)
_AHEAD = {
    Relation.BEFORE: (_BEFORE,),
    Relation.MEET: (((0, _E), (1, _S), 0), ((1, _S), (0, _E), 0), ((0, _S), (0, _E), -1), ((1, _S), (1, _E), -1)),
    Relation.OVERLAP: (((0, _S), (1, _S), -1), ((1, _S), (0, _E), -1), ((0, _E), (1, _E), -1)),
    Relation.START: (((0, _S), (1, _S), 0), ((1, _S), (0, _S), 0), ((0, _E), (1, _E), -1)),
    Relation.DURING: (((1, _S), (0, _S), -1), ((0, _E), (1, _E), -1)),
    Relation.FINISH: (((1, _S), (0, _S), -1), ((0, _E), (1, _E), 0), ((1, _E), (0, _E), 0)),
    Relation.EQUAL: (
        *(((0, _S), (1, _S), 0), ((1, _S), (0, _S), 0)),
        *(((0, _E), (1, _E), 0), ((1, _E), (0, _E), 0)),
    ),
}
_INVERSES = {
    Relation.AFTER: Relation.BEFORE,
    Relation.MET_BY: Relation.MEET,
    Relation.OVERLAPPED_BY: Relation.OVERLAP,
    Relation.STARTED_BY: Relation.START,
    Relation.CONTAIN: Relation.DURING,
    Relation.FINISHED_BY: Relation.FINISH,
}
_Difference = tuple[tuple[int, End], tuple[int, End], int]


def _differences(relation: Relation) -> tuple[_Difference, ...]:
    """Differences between endpoints of the left part (0) and of the right part (1); together they say the same as the
    relation.
    """
    if relation in _AHEAD:
        return _AHEAD[relation]
    return tuple(
        ((1 - left, end), (1 - right, other), most) for (left, end), (right, other), most in _AHEAD[_INVERSES[relation]]
    )


def differences(pattern: IntervalPattern) -> Iterator[Difference]:
    """All differences between endpoints of two events of the match. The pattern's variables must be declared."""
    variables = [p.variable for p in pattern.positives]
    for v in variables:
        yield Difference(Endpoint(v, _S), Endpoint(v, _E), 0, f"start({v}) <= end({v})")
    if pattern.mode is Mode.SEQ:
        for left, right in pairwise(variables):
            reason = f"{right} comes after {left} in SEQ"
            yield Difference(Endpoint(left, _E), Endpoint(right, _S), 0, reason)
            yield Difference(Endpoint(left, _S), Endpoint(right, _S), -1, reason)
    if pattern.window is not None:
        of_starts = pattern.window_of is Window.STARTS
        reason = f"within {format_duration(pattern.window) or '0 seconds'}{' of starts' if of_starts else ''}"
        last = _S if of_starts else _E
        for left in variables:
            for right in variables:
                if not of_starts or left != right:
                    yield Difference(Endpoint(left, last), Endpoint(right, _S), microseconds(pattern.window), reason)
    for comparison in pattern.order:
        yield from _of_comparison(comparison)
    for pair in pattern.pairs:
        yield from _of_pair(pair.left, pair.relations, pair.right)
    yield from _of_tree(pattern)


def _of_comparison(comparison: Comparison) -> Iterator[Difference]:
    for left, right, most in comparison_differences(comparison):
        yield Difference(left, right, most, str(comparison))


def comparison_differences(comparison: Comparison) -> list[tuple[Endpoint, Endpoint, int]]:
    """The comparison as differences: first endpoint - second endpoint <= number."""
    left, right = comparison.left, comparison.right
    strict = -1 if comparison.operator in ("<", ">") else 0
    found = [(left, right, strict)] if comparison.operator in ("<", "<=", "=") else []
    return found + ([(right, left, strict)] if comparison.operator in (">", ">=", "=") else [])


def _of_pair(left: str, relations: Sequence[Relation], right: str) -> Iterator[Difference]:
    """The differences that hold for each of the relations."""
    names = [relation.value for relation in relations]
    reason = f"{left} {' | '.join(names)} {right}"
    ends = [Endpoint(v, end) for v in (left, right) for end in (_S, _E)]
    bounds = np.max([_bounds_of(relation) for relation in relations], axis=0)
    for i, j in zip(*np.nonzero(bounds < FREE), strict=True):
        if i != j:
            yield Difference(ends[i], ends[j], int(bounds[i, j]), reason)


def _bounds_of(relation: Relation) -> Bounds:
    bounds = np.full((4, 4), FREE)
    np.fill_diagonal(bounds, 0)
    bounds[0, 1] = bounds[2, 3] = 0
    for (left, end), (right, other), most in _differences(relation):
        i, j = 2 * left + (end is _E), 2 * right + (other is _E)
        bounds[i, j] = min(bounds[i, j], most)
    return closed(bounds)


def _of_tree(pattern: IntervalPattern) -> Iterator[Difference]:
    if pattern.tree is None:
        return
    for node in related(pattern.tree):
        parts = [*variables_of(node.left)], [*variables_of(node.right)]
        reason = f"({', '.join(parts[0])}) {node.relation.value} ({', '.join(parts[1])})"
        for (left, end), (right, other), most in _differences(node.relation):
            # The start of a part is its least start. So an upper bound on it says nothing about a single event, unless
            # the part is one event. A lower bound holds for each event. For ends it is the other way round.
            if (end is _S and len(parts[left]) > 1) or (other is _E and len(parts[right]) > 1):
                continue
            for v in parts[left]:
                for w in parts[right]:
                    yield Difference(Endpoint(v, end), Endpoint(w, other), most, reason)
    for left_, right_ in listed_pairs(pattern):
        reason = f"with counts, {right_} does not start before {left_}"
        yield Difference(Endpoint(left_, _S), Endpoint(right_, _S), 0, reason)


def listed_pairs(pattern: IntervalPattern) -> list[tuple[str, str]]:
    """The pairs of neighbours in a tree with counts, whose variables are in the order of (start, end)."""
    if pattern.tree is None or not any(node.counts for node in related(pattern.tree)):
        return []
    return list(pairwise(variables_of(pattern.tree)))


def closed(bounds: Bounds) -> Bounds:
    """The tightest bounds that follow; if the bounds contradict each other, the diagonal has numbers below 0."""
    least = bounds.copy()
    for k in range(len(least)):
        through = np.minimum(least[:, k : k + 1] + least[k : k + 1, :], FREE)
        through[(least[:, k] >= FREE), :] = FREE
        through[:, (least[k, :] >= FREE)] = FREE
        least = np.minimum(least, through)
    return least


def bounds_of(pattern: IntervalPattern) -> Bounds:
    """The tightest bounds of a pattern of n events, which has no contradiction: endpoint i - endpoint j <= bounds[i,
    j].

    The array is (2 n, 2 n); 2 v is the start of event v, 2 v + 1 its end.
    """
    numbers = {p.variable: 2 * i for i, p in enumerate(pattern.positives)}
    bounds = np.full((2 * len(numbers), 2 * len(numbers)), FREE)
    np.fill_diagonal(bounds, 0)
    for left, right, most, _ in differences(pattern):
        i, j = (numbers[e.variable] + (e.end is _E) for e in (left, right))
        bounds[i, j] = min(bounds[i, j], most)
    return closed(bounds)


def excludes(bounds: Bounds, left: int, right: int, relation: Relation) -> bool:
    """Whether events that satisfy the bounds cannot have the relation; `left` and `right` are numbers of events."""
    ends = [2 * left, 2 * left + 1, 2 * right, 2 * right + 1]
    both = closed(np.minimum(bounds[np.ix_(ends, ends)], _bounds_of(relation)))
    return bool((np.diagonal(both) < 0).any())


def contradiction(pattern: IntervalPattern) -> list[str]:
    """The reasons around a cycle in which an endpoint would be before itself; empty if there is no contradiction."""
    found = list(differences(pattern))
    distance: dict[Endpoint, int] = {e: 0 for d in found for e in (d.left, d.right)}
    before: dict[Endpoint, Difference] = {}
    last = None
    for _ in range(len(distance) + 1):  # Bellman-Ford: what still changes in the last round is on a cycle or after one
        last = None
        for difference in found:
            if distance[difference.right] + difference.most < distance[difference.left]:
                distance[difference.left] = distance[difference.right] + difference.most
                before[difference.left] = difference
                last = difference.left
    if last is None:
        return []
    for _ in range(len(distance)):
        last = before[last].right
    circle, at = [], last
    while True:
        circle.append(before[at].reason)
        at = before[at].right
        if at == last:
            break
    return list(dict.fromkeys(circle))
