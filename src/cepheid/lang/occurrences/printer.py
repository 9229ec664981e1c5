"""Expressions and their declarations → the text that `cepheid.lang.occurrences.parser` reads as the same values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from cepheid.lang.calls import laid_out, quoted, quoted_lines, shared_calls
from cepheid.lang.occurrences import expression as algebra
from cepheid.lang.occurrences.expression import Occurrence
from cepheid.lang.occurrences.parser import PLAIN_NAME, SQL
from cepheid.lang.semantic import SemanticFilter

if TYPE_CHECKING:
    from cepheid.lang.occurrences.pattern import OccurrencePattern

_UNITS = (("d", "days"), ("h", "hours"), ("min", "minutes"), ("s", "seconds"), ("ms", "milliseconds"))
_SIGNS = {algebra.Then: ";", algebra.Both: " &", algebra.Either: " |"}


def calls_text(pattern: OccurrencePattern) -> str:
    """The calls that make the pattern, as Python."""
    return laid_out([*_calls(pattern)])


def _calls(pattern: OccurrencePattern) -> Iterator[str]:
    given = [quoted_lines(pattern_text(pattern))]
    if pattern.knowledge is not None:
        given += [f"knowledge={pattern.knowledge!r}", f"mapping={pattern.mapping!r}"]
    yield f"OccurrencePattern.of({', '.join(given)})"
    if pattern.name != "pattern":
        yield f".named({quoted(pattern.name)})"
    if pattern.chosen is not None:
        yield f".policy({quoted(pattern.chosen.value)})"
    yield from shared_calls(pattern)


def pattern_text(pattern: OccurrencePattern) -> str:
    """The declarations, one line each, then the expression."""
    semantic = pattern.knowledge is not None
    declared = [f"{_name(one.name)} = {restricted_text(one, semantic=semantic)}" for one in pattern.restricted]
    return "\n".join([*declared, expression_text(pattern.expression, semantic=semantic)])


def restricted_text(restricted: algebra.RestrictedType, *, semantic: bool = False) -> str:
    """The right side of a declaration. `semantic` as for the parser."""
    variable = "" if restricted.variable is None else f"?{restricted.variable}:"
    return f"{variable}{_name(restricted.base)}[{condition_text(restricted.condition, semantic=semantic)}]"


def condition_text(condition: algebra.Condition, *, semantic: bool = False) -> str:
    """The text between brackets. `semantic` as for the parser."""
    if isinstance(condition, SemanticFilter):
        return condition.text
    return f"{SQL} {condition}" if semantic else condition


def expression_text(expression: Occurrence, *, semantic: bool = False) -> str:
    """The text of an expression. `semantic` as for the parser."""
    text = partial(expression_text, semantic=semantic)
    match expression:
        case algebra.Leaf(type_):
            return _name(type_)
        case algebra.Without(left, right, condition):
            minus = "-" if condition is None else f"-[{condition_text(condition, semantic=semantic)}]"
            return f"({text(left)} {minus} {text(right)})"
        case algebra.OfTwo(left, right):
            return f"({text(left)}{_SIGNS[type(expression)]} {text(right)})"
        case algebra.Within(of, length):
            return f"{_closed(text(of))}_{_length(length)}"
        case algebra.Delayed(of, delay):
            return f"{text(of)} + {_length(delay)}"
        case algebra.Filtered(of, condition):
            return f"{text(of)}[{condition_text(condition, semantic=semantic)}]"
        case algebra.Bound(of, variable):
            inner = text(of)
            return f"?{variable}:{inner if isinstance(of, algebra.Leaf | algebra.OfTwo) else f'({inner})'}"
    raise AssertionError(expression)


def _closed(text: str) -> str:
    """An expression's text, in parentheses if an underscore after it would be read as part of a name or a unit."""
    return text if text[-1] in ")]" else f"({text})"


def _name(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _length(length: timedelta) -> str:
    """The length in the largest unit that divides it."""
    for short, unit in _UNITS:
        count, rest = divmod(length, timedelta(**{unit: 1}))
        if not rest and (count or short == "s"):
            return f"{count}{short}"
    return f"{length // timedelta(microseconds=1)}us"
