"""Patterns of occurrences as boxes: one for each operator, with its operands in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.lang.duration import format_duration
from cepheid.lang.occurrences import expression as algebra
from cepheid.lang.occurrences.expression import Condition, Occurrence
from cepheid.lang.occurrences.printer import condition_text, restricted_text
from cepheid.lang.pictures.box import Box

if TYPE_CHECKING:
    from cepheid.lang.occurrences.pattern import OccurrencePattern


def picture_of(pattern: OccurrencePattern) -> Box:
    """The pattern as boxes; its own types and its policy are written below them."""
    semantic = pattern.knowledge is not None
    lines = [f"{one.name} = {restricted_text(one, semantic=semantic)}" for one in pattern.restricted]
    lines += [] if pattern.chosen is None else [f"policy {pattern.chosen.value}"]
    return Box(pattern.name, tuple(lines), (_box(pattern.expression),))


def _box(expression: Occurrence) -> Box:
    match expression:
        case algebra.Leaf(type_):
            return Box(type_)
        case algebra.Then(left, right):
            return Box("sequence", inner=(_box(left), replace(_box(right), arrow="then")))
        case algebra.Without(left, right, condition):
            return Box("without", _condition("if", condition), (_box(left), replace(_box(right), forbids=True)))
        case algebra.OfTwo(left, right):
            return Box("both" if isinstance(expression, algebra.Both) else "either", inner=(_box(left), _box(right)))
        case algebra.Timed(of, length):
            word = "within" if isinstance(expression, algebra.Within) else "plus"
            return Box(f"{word} {format_duration(length) or '0 seconds'}", inner=(_box(of),))
        case algebra.Bound(of, variable):
            return Box(f"?{variable}", inner=(_box(of),))
        case algebra.Filtered(of, condition):
            return Box("filter", _condition("where", condition), (_box(of),))
    raise AssertionError(expression)


def _condition(word: str, condition: Condition | None) -> tuple[str, ...]:
    return () if condition is None else (f"{word} {condition_text(condition)}",)
