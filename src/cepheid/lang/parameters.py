"""Parameters of patterns: names that stand as `$name` in conditions and measures, each for one literal value.

A value is never pasted: it becomes a typed SQL literal, so text with quotes in it stays text. The parser sees that
literal with the place of the `$name`; where the user's text goes to Spark, the literal's SQL stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import shown
from cepheid.lang.literals import read_number
from cepheid.lang.plain_value import plain_value

ParameterValue: TypeAlias = bool | int | float | Decimal | str | date | datetime

NAME = r"[^\W\d]\w*"
_EXPECTED = "a number, text, True or False, a date or a datetime"


@dataclass(frozen=True)
class Parameter:
    """Made by `make_parameter`, which checks it."""

    name: str
    value: ParameterValue | None
    """None: it must be given before the pattern is used. Of a datetime with a zone the instant in UTC."""
    sql: str | None
    """The value as a SQL literal. It tells values apart that are equal to Python: 1, 1.0 and True."""


def make_parameter(name: str, value: object) -> Parameter:
    """The parameter with that value, a ParameterValue or one of NumPy or pandas that is like it; None: not given yet.

    Raises:
        PatternError: it has no such literal.
    """
    if not re.fullmatch(NAME, name):
        hint = "A name is made of letters, digits and underscores, and begins with no digit."
        raise PatternError(Problem(f"{name!r} cannot be the name of a parameter", hint=hint))
    if value is None:
        return Parameter(name, None, None)
    try:
        given, sql = _literal(value)
    except ValueError as error:
        raise PatternError(Problem(str(error), f"parameter {name!r}")) from None
    return Parameter(name, given, sql)


def with_values(parameters: tuple[Parameter, ...], values: Mapping[str, object]) -> tuple[Parameter, ...]:
    """The parameters with these values, in the place of those that they had, and new ones behind them.

    Raises:
        PatternError: with all that are none.
    """
    given = {parameter.name: parameter for parameter in parameters}
    problems: list[Problem] = []
    for name, value in values.items():
        if value is None:
            problems.append(Problem("a value is expected, got None", f"parameter {name!r}"))
            continue
        try:
            given[name] = make_parameter(name, value)
        except PatternError as error:
            problems += error.problems
    if problems:
        raise PatternError(problems)
    return tuple(given.values())


def _literal(value: object) -> tuple[ParameterValue, str]:
    """The value as it is kept, and its SQL; ValueError where it has none."""
    given: Any = plain_value(value)
    if isinstance(given, datetime) and given.tzinfo is not None:
        given = given.astimezone(UTC)
    sql = _literal_sql(given)
    if sql is None:
        raise ValueError(f"{_EXPECTED} is expected, got {shown(value)}")
    if isinstance(given, int | Decimal) and not isinstance(given, bool):
        read_number(sql[1:-1])  # refuses too many digits
    return given, sql


def string_literal(text: str) -> str:
    """The text as a SQL string that Spark and our parser read as exactly that text.

    Spark puts variables in for `${name}`, also inside strings, before it parses: the dollar sign is escaped there.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def _literal_sql(value: Any) -> str | None:
    """Numbers and the like stand in parentheses: after a minus, a negative one would begin a comment, and beside a
    word TRUE would be part of it. A string does not: `LIKE … ESCAPE` takes none in parentheses.
    """
    match value:
        case bool():
            return f"({value})".upper()
        case int():
            return f"({int(value)})"
        case float() if isfinite(value):
            return f"({float(value)!r}D)"
        case Decimal() if value.is_finite():
            return f"({value:f}BD)"
        case str():
            return string_literal(value)
        case datetime():
            zone, end = ("TIMESTAMP", "Z") if value.tzinfo else ("TIMESTAMP_NTZ", "")
            return f"({zone} '{value.replace(tzinfo=None).isoformat(' ')}{end}')"
        case date():
            return f"(DATE '{value.isoformat()}')"
    return None
