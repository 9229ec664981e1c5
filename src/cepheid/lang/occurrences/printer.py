"""Expressions and their declarations → the text that `cepheid.lang.occurrences.parser` reads as the same values."""

from __future__ import annotations

from datetime import timedelta

from cepheid.lang.occurrences.expression import (
    Both,
    Bound,
    Delayed,
    Either,
    Filtered,
    Leaf,
    Occurrence,
    OccurrencePattern,
    OfTwo,
    RestrictedType,
    Then,
    Within,
    Without,
)
from cepheid.lang.occurrences.parser import PLAIN_NAME

_UNITS = (("d", "days"), ("h", "hours"), ("min", "minutes"), ("s", "seconds"), ("ms", "milliseconds"))


def pattern_text(pattern: OccurrencePattern) -> str:
    """The declarations, a line each, then the expression."""
    declared = [f"{_name(one.name)} = {restricted_text(one)}" for one in pattern.restricted]
    return "\n".join([*declared, expression_text(pattern.expression)])


def restricted_text(restricted: RestrictedType) -> str:
    """The right side of a declaration."""
    variable = "" if restricted.variable is None else f"?{restricted.variable}:"
    return f"{variable}{_name(restricted.base)}[{restricted.condition}]"


def expression_text(expression: Occurrence) -> str:
    match expression:
        case Leaf(type_):
            return _name(type_)
        case Then(left, right):
            return f"({expression_text(left)}; {expression_text(right)})"
        case Both(left, right):
            return f"({expression_text(left)} & {expression_text(right)})"
        case Either(left, right):
            return f"({expression_text(left)} | {expression_text(right)})"
        case Without(left, right, condition):
            minus = "-" if condition is None else f"-[{condition}]"
            return f"({expression_text(left)} {minus} {expression_text(right)})"
        case Within(of, length):
            return f"{_closed(of)}_{_length(length)}"
        case Delayed(of, delay):
            return f"{expression_text(of)} + {_length(delay)}"
        case Filtered(of, condition):
            return f"{expression_text(of)}[{condition}]"
        case Bound(variable, of):
            inner = expression_text(of)
            return f"?{variable}:{inner if isinstance(of, Leaf | OfTwo) else f'({inner})'}"
    raise AssertionError(expression)


def _closed(expression: Occurrence) -> str:
    """In parentheses, if an underscore behind it would be part of a name or a unit."""
    text = expression_text(expression)
    return text if text[-1] in ")]" else f"({text})"


def _name(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _length(length: timedelta) -> str:
    """In the largest unit that divides it."""
    for short, unit in _UNITS:
        count, rest = divmod(length, timedelta(**{unit: 1}))
        if not rest and (count or short == "s"):
            return f"{count}{short}"
    return f"{length // timedelta(microseconds=1)}us"
