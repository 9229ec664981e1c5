"""Conditions and measures as values: SQL text in Spark's dialect as a small tree in which every node knows its span.

`cepheid.lang.sql.parser` makes them from text. Names are resolved later: whether `late.origin` is a stage's column or a
field of a struct column is known only when the pattern meets a schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

Span: TypeAlias = tuple[int, int]
"""Start and end offset in the text that was parsed, end exclusive."""

Constant: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | timedelta | None


@dataclass(frozen=True)
class Literal:
    """A constant as written, with the type Spark gives it.

    A zoned timestamp whose text has no zone has a naive value, in the session's time zone.
    """

    value: Constant
    type: pa.DataType
    span: Span


@dataclass(frozen=True)
class Name:
    """A name as written, unresolved: `price`, `late.origin`, `payload.city`, `late.payload.city`."""

    parts: tuple[str, ...]
    spans: tuple[Span, ...]
    """One per part, back-quotes included."""

    @property
    def span(self) -> Span:
        return self.spans[0][0], self.spans[-1][1]


@dataclass(frozen=True)
class Call:
    """An operator or function applied to arguments; its name in lower case, as written.

    Operators: and, or (two arguments or more), not, =, <=>, !=, <, <=, >, >=, +, -, *, /, div, %, negate, |, &, ^, ~,
    <<, >>, is_null, is_not_null, between, in, like (with a third argument: ESCAPE), ilike, rlike, like_any, like_all,
    index `a[i]`, field `f(x).name` (a literal name), lambda (parameters as names, then the body), interval (its text;
    only intervals of months, others are Literals). `||` is concat. `case` is condition, result, …, else; `case_of` is
    operand, value, result, …, else; a missing else is a NULL literal at the word END. `cast` and `try_cast` take the
    target as a Literal: its text, and the type. `x NOT IN (…)` and similar forms are not(in(…)), both with the span of
    the whole.
    """

    function: str
    args: tuple[Expression, ...]
    span: Span


Expression: TypeAlias = Literal | Name | Call
