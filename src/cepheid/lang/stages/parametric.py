"""Lengths and counts that parameters give: `within("$w")`, `times("$n")`.

A pattern's part has the names of such parameters beside its fields. Until a parameter has a value, the field has a
placeholder, with which the rest of the pattern can be checked.
"""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeAlias, cast

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import times_of, times_or_more_of
from cepheid.lang.duration import LONGEST, format_duration, parse_duration, shorter
from cepheid.lang.parameters import NAME

if TYPE_CHECKING:
    from cepheid.lang.stages.pattern import Pattern, Quantifier

Parametric: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of a field's name and that of the parameter that gives it."""

LENGTH_PLACEHOLDER = LONGEST
_ANY = sys.maxsize
"""In place of a greatest number that is not known, where the least one is checked."""
_WRITTEN = re.compile(rf"\s*\$({NAME})\s*")


class PatternPart(Protocol):
    """A pattern, or a part of one."""

    @property
    def parametric(self) -> Parametric: ...


def parameter_name(given: object) -> str | None:
    """The name of the parameter that is written as `$name`; None if something else is given."""
    written = _WRITTEN.fullmatch(given) if isinstance(given, str) else None
    return written[1] if written else None


def parameter_of(part: PatternPart, field: str) -> str | None:
    """The name of the parameter that gives the field; None if no parameter does."""
    return next((name for known, name in part.parametric if known == field), None)


def given_length(part: PatternPart, field: str, length: timedelta) -> str:
    """The length as it was given: the parameter, or the length as text."""
    name = parameter_of(part, field)
    return format_duration(length) if name is None else f"${name}"


def given_window(pattern: Pattern) -> str | None:
    """What `within` was given: a parameter, or the window as text; None if there is none."""
    if pattern.calendar is not None and parameter_of(pattern, "window") is None:
        return str(pattern.calendar)
    return None if not pattern.is_bounded else given_length(pattern, "window", pattern.window or LENGTH_PLACEHOLDER)


def given_counts(quantifier: Quantifier) -> list[int | str]:
    """The least and, if there is another one, the greatest number of a loop's events as they were given: the
    parameters, or the numbers.
    """
    assert quantifier.times is not None
    least, most = quantifier.times.minimum, quantifier.times.maximum
    counts = [_given_count(quantifier, "minimum", least)]
    if most is not None and (last := _given_count(quantifier, "maximum", most)) != counts[0]:
        counts.append(last)
    return counts


def _given_count(part: PatternPart, field: str, count: int) -> int | str:
    name = parameter_of(part, field)
    return count if name is None else f"${name}"


def length_or_parameter(field: str, given: timedelta | str) -> tuple[timedelta, Parametric]:
    """The length of time, or the placeholder and the parameter that gives the field."""
    name = parameter_name(given)
    return (parse_duration(given), ()) if name is None else (LENGTH_PLACEHOLDER, ((field, name),))


def shorter_or_parameter(
    call: str, part: PatternPart, field: str, length: timedelta | str
) -> tuple[timedelta, Parametric]:
    """What the method `call` sets the field to, and the part's parameters: the shorter length if there was one before,
    with a warning at the line that has called it.

    Raises:
        PatternError: one of two lengths is a parameter, so it is not known which one is shorter.
    """
    former: timedelta | None = getattr(part, field)
    if former is None:
        duration, parametric = length_or_parameter(field, length)
        return duration, (*part.parametric, *parametric)
    if parameter_name(length) is not None or parameter_of(part, field) is not None:
        raise two_lengths(call, given_length(part, field, former), length, "the parameter")
    return shorter(call, former, length), part.parametric


def two_lengths(call: str, former: str | None, length: object, cause: str) -> PatternError:
    """The error for two lengths of which the shorter one depends on `cause`."""
    hint = f"Which of them is shorter depends on {cause}: leave one out."
    return PatternError(Problem(f"{call}: two lengths are given, {former} and {length}", call, hint=hint))


def times_or_parameters(
    minimum: SupportsIndex | str, maximum: SupportsIndex | str | None
) -> tuple[tuple[int, int], Parametric]:
    """The least and the greatest number that `Pattern.times` is given, and the parameters that give them."""
    least, most = parameter_name(minimum), parameter_name(minimum if maximum is None else maximum)
    given = (("minimum", least), ("maximum", most))
    parametric = tuple((field, name) for field, name in given if name is not None)
    if not parametric:
        return times_of(_number(minimum), None if maximum is None else _number(maximum)), ()
    if maximum is None:
        return (2, 2), parametric
    if least is None:
        known, _ = times_of(_number(minimum), _ANY)
        return (known, max(known, 1) + 1), parametric  # as for `times(1, n)`, which `times(0, n)` is when optional
    return (1, 2) if most is not None else times_of(1, _number(maximum)), parametric


def least_or_parameter(minimum: SupportsIndex | str) -> tuple[int, Parametric]:
    """The number that `Pattern.times_or_more` is given, and the parameter that gives it."""
    name = parameter_name(minimum)
    return (times_or_more_of(_number(minimum)), ()) if name is None else (2, (("minimum", name),))


def _number(given: SupportsIndex | str) -> SupportsIndex:
    return cast("SupportsIndex", given)  # text that is no parameter is refused where numbers are checked
