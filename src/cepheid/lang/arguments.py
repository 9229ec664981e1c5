"""Checks of the arguments of the fluent interface. An error that no later call could correct is raised at once."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from cepheid.errors import PatternError, Problem


def times_of(minimum: SupportsIndex, maximum: SupportsIndex | None) -> tuple[int, int]:
    """The least and the greatest number that `Pattern.times` is given.

    Raises:
        PatternError: they are no whole numbers, or no number lies between them.
    """
    least = _whole(minimum, "times takes whole numbers", "times(3) or times(2, 5)")
    most = least if maximum is None else _whole(maximum, "times takes whole numbers", "times(3) or times(2, 5)")
    if least < 0 or most < max(least, 1):
        raise PatternError(
            f"times({least}{'' if maximum is None else f', {most}'}) is not possible: "
            "write times(n) with n at least 1, or times(a, b) with 0 <= a <= b and b at least 1"
        )
    return least, most


def times_or_more_of(minimum: SupportsIndex) -> int:
    """The number that `Pattern.times_or_more` is given.

    Raises:
        PatternError: it is no whole number, or less than 1.
    """
    least = _whole(minimum, "times_or_more takes a whole number", "times_or_more(3)")
    if least < 1:
        raise PatternError(
            f"times_or_more({least}) is not possible: write times_or_more(n) with n at least 1; "
            "for none or more, one_or_more().optional()"
        )
    return least


def whole_number(given: object) -> int | None:
    """The value as an int if it is a whole number of Python or NumPy; otherwise None."""
    try:
        return index(given) if isinstance(given, SupportsIndex) and not isinstance(given, bool) else None
    except TypeError:  # arrays have the method, too
        return None


def _whole(given: object, rule: str, example: str) -> int:
    number = whole_number(given)
    if number is None:
        raise PatternError(f"{rule}, got {given!r}; write {example}")
    return number


def stage_name(call: str, name: str) -> str:
    """The name, checked to be text that is not empty; errors name `call` as their place."""
    hint = f'Name the stage, as in {call}("late").'
    if not isinstance(name, str):
        raise PatternError(Problem(f"a stage's name is text, got {shown(name)}", call, hint=hint))
    if not name:
        raise PatternError(Problem("a stage's name must not be empty", call, hint=hint))
    return name


def pattern_name(name: str) -> str:
    """The name, checked to be text."""
    if not isinstance(name, str):
        raise PatternError(f"a pattern's name is text, got {shown(name)}")
    return name


def version_text(version: str | int) -> str:
    """The version as text, checked to be text that is not empty or a whole number."""
    if isinstance(version, bool) or version == "" or not isinstance(version, str | int):
        raise PatternError(f"a pattern's version is text or a whole number, got {shown(version)}")
    return str(version)


def shown(value: object) -> str:
    """The value as messages show it, with its type."""
    return "None" if value is None else f"{type(value).__name__}: {brief(value)}"


_MOST_SHOWN = 200


def brief(value: object) -> str:
    """The value as messages show it: a table or a column by its kind and shape, anything else as Python's text for it,
    which is cut if it is long.
    """
    if shape := getattr(value, "shape", None):
        return f"a {type(value).__module__.split('.')[0]}.{type(value).__name__} of shape {shape}"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
