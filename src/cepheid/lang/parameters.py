"""Parameters of patterns: names written as `$name` in conditions and measures, each with one value or a list of values.

A value is never pasted into the text. It becomes a typed SQL literal, so text with quotes in it stays text. The parser
puts this literal in place of the `$name`; in text that is sent to Spark, the literal's SQL replaces the name. A list
becomes the literals of its items, between which are commas; it can stand only in a list of SQL, as that of IN.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import shown
from cepheid.lang.literals import in_range, interval_fields, read_number
from cepheid.lang.plain_value import plain_value

SingleValue: TypeAlias = bool | int | float | Decimal | str | date | datetime | timedelta
ParameterValue: TypeAlias = SingleValue | tuple[SingleValue, ...]
GivenValue: TypeAlias = SingleValue | np.generic | Iterable[object]
"""What a user may give; an Iterable is a list, a set or one column of a table."""

NAME = r"[^\W\d]\w*"
_EXPECTED = "a number, text, True or False, a date, a datetime, a timedelta or a list of these"
_ITEM_EXPECTED = "a number, text, True or False, a date, a datetime or a timedelta"


@dataclass(frozen=True)
class Parameter:
    """Made by `make_parameter`, which checks it."""

    name: str
    value: ParameterValue | None
    """None: it must be given before the pattern is used. A datetime with a zone is stored in UTC."""
    sql: str | None
    """The value as a SQL literal, or the literals of a list. It differs for values that are equal in Python: 1, 1.0 and
    True.
    """

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, tuple)


def make_parameter(name: str, value: object) -> Parameter:
    """The parameter with this name and value: a GivenValue, or None if the value is not given yet.

    A list keeps the first of equal items; a set is sorted.

    Raises:
        PatternError: the name or the value is not valid.
    """
    if not re.fullmatch(NAME, name):
        hint = "A name is made of letters, digits and underscores, and does not begin with a digit."
        raise PatternError(Problem(f"{name!r} cannot be the name of a parameter", hint=hint))
    if value is None:
        return Parameter(name, None, None)
    try:
        given, sql = _listed(value) if _is_list(value) else _literal(value, _EXPECTED)
    except ValueError as error:
        raise PatternError(Problem(str(error), f"parameter {name!r}")) from None
    return Parameter(name, given, sql)


def with_values(parameters: tuple[Parameter, ...], values: Mapping[str, object]) -> tuple[Parameter, ...]:
    """The parameters with these values in place of their former ones, followed by new parameters.

    Raises:
        PatternError: lists all values that are not valid.
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


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    """Whether the value is a list, a set, or a column of a table."""
    if isinstance(value, str | bytes | bytearray | Mapping | np.generic):
        return False
    try:
        iter(value)  # type: ignore[call-overload] # a column of Spark has __iter__, which raises TypeError
    except TypeError:
        return False
    return len(getattr(value, "shape", (0,))) == 1  # a table is no list


def _listed(values: Iterable[object]) -> tuple[tuple[SingleValue, ...], str]:
    """The values of a list as they are stored, and their SQL; ValueError if one of them has no SQL literal."""
    columns: Any = values
    items = columns.to_pylist() if hasattr(values, "to_pylist") else [*values]
    found: dict[str, SingleValue] = {}
    for number, item in enumerate(items, 1):
        if item is None:
            raise ValueError(f"item {number} is None: leave it out, as IN is never true for NULL")
        try:
            value, sql = _literal(item, _ITEM_EXPECTED)
        except ValueError as error:
            raise ValueError(f"item {number}: {error}") from None
        found.setdefault(sql, value)
    if not found:
        raise ValueError("the list is empty: IN takes at least one value")
    ordered = sorted(found) if isinstance(values, AbstractSet) else [*found]
    return tuple(found[sql] for sql in ordered), ", ".join(without_parentheses(sql) for sql in ordered)


def without_parentheses(sql: str) -> str:
    """The SQL of one value without the parentheses that protect it from what is next to it."""
    return sql.removeprefix("(").removesuffix(")") if sql.startswith("(") else sql


def _literal(value: object, expected: str) -> tuple[SingleValue, str]:
    """The value as it is stored, and its SQL; ValueError if it has no SQL literal."""
    given: Any = plain_value(value)
    if isinstance(given, datetime) and given.tzinfo is not None:
        given = given.astimezone(UTC)
    sql = _literal_sql(given)
    if sql is None:
        advice = ". Give one of its columns" if len(getattr(value, "shape", ())) > 1 else ""
        raise ValueError(f"{expected} is expected, got {shown(value)}{advice}")
    if isinstance(given, int | Decimal) and not isinstance(given, bool):
        read_number(sql[1:-1])  # refuses too many digits
    if isinstance(given, timedelta):
        in_range(given // timedelta(microseconds=1), str(given))
    return given, sql


def string_literal(text: str) -> str:
    """The text as a SQL string that Spark and our parser read as exactly that text.

    Before it parses, Spark substitutes variables for `${name}`, also inside strings; so the dollar sign is escaped
    there.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def _literal_sql(value: Any) -> str | None:
    """The value as a SQL literal; None if it has none.

    All literals except strings are in parentheses. Otherwise a negative number after a minus would begin a comment, and
    TRUE would become part of a word next to it. Strings are not, because `LIKE … ESCAPE` takes no parentheses.
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
        case timedelta():
            return f"(INTERVAL '{interval_fields(value)}' DAY TO SECOND)"
        case date():
            return f"(DATE '{value.isoformat()}')"
    return None
