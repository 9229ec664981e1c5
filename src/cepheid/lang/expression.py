"""Conditions and measures as values. SQL text in Spark's dialect becomes a small tree, and every node has its span.

`cepheid.lang.sql.parser` makes the trees. Names are resolved later, when the pattern meets a schema: only then is it
known whether `late.origin` is a stage's column or a field of a struct column.
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

    If the text of a zoned timestamp has no zone, the value is naive and is meant in the session's time zone.
    """

    value: Constant
    type: pa.DataType
    span: Span
    days: bool = False
    """Whether it is an interval written in days and weeks alone: a DATE moved by it is a DATE."""


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
    """An operator or function applied to arguments. `function` is its name as written, in lower case.

    Operators: and, or (two arguments or more), not, =, <=>, !=, <, <=, >, >=, +, -, *, /, div, %, negate, |, &, ^, ~,
    <<, >>, is_null, is_not_null, between, in, like (an optional third argument is the ESCAPE character), ilike, rlike,
    like_any, like_all. `||` is concat.

    Calls with special arguments:

    - index: `a[i]`.
    - field: `f(x).name`; the name is a Literal.
    - lambda: the parameters as Names, then the body.
    - interval: its text. Only intervals with months are calls; others are Literals.
    - case: condition, result, …, else.
    - case_of: operand, value, result, …, else. A missing else is a NULL literal at the word END, also in case.
    - cast, try_cast: the value, and the target as a Literal with the type's text and the type.
    - `x NOT IN (…)` and similar forms: not(in(…)); both calls have the span of the whole.
    """

    function: str
    args: tuple[Expression, ...]
    span: Span


Expression: TypeAlias = Literal | Name | Call
