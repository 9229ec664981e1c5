"""Interval patterns as boxes: one for each variable, and what must hold between them below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cepheid.lang.consistency import Consistency
from cepheid.lang.duration import format_duration
from cepheid.lang.intervals.grammar import order_text, relations_text, tree_text
from cepheid.lang.intervals.printer import parts_text
from cepheid.lang.intervals.values import Mode, Negation, Window
from cepheid.lang.pictures.box import Box

if TYPE_CHECKING:
    from cepheid.lang.intervals.pattern import IntervalPattern


def picture_of(pattern: IntervalPattern) -> Box:
    """The pattern as boxes: the events of a match, then those that forbid one."""
    follows = "then" if pattern.mode is Mode.SEQ else None
    positives = (
        Box(one.variable, (one.type,), arrow=follows if number else None)
        for number, one in enumerate(pattern.positives)
    )
    negations = (Box(one.variable, tuple(_negation(one)), forbids=True) for one in pattern.negations)
    return Box(pattern.name, tuple(_whole(pattern)), (*positives, *negations))


def _negation(negation: Negation) -> Iterator[str]:
    yield negation.type
    if negation.scope is not None:
        yield f"{negation.scope.value}({parts_text(negation)})"
    if negation.order:
        yield order_text(negation.order)
    if negation.condition is not None:
        yield f"where {negation.condition}"


def _whole(pattern: IntervalPattern) -> Iterator[str]:
    if pattern.tree is not None:
        yield tree_text(pattern.tree)
    yield from (f"{pair.left} {relations_text(pair.relations)} {pair.right}" for pair in pattern.pairs)
    if pattern.order:
        yield order_text(pattern.order)
    if pattern.condition is not None:
        yield f"where {pattern.condition}"
    if pattern.window is not None:
        of_starts = " of starts" if pattern.window_of is Window.STARTS else ""
        yield f"within {format_duration(pattern.window) or '0 seconds'}{of_starts}"
    if pattern.consistency is not Consistency.CONSERVATIVE:
        yield f"consistency {pattern.consistency.value}"
