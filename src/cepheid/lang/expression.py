"""Conditions and measures as values: SQL text in Spark's dialect, parsed into a small tree in which every node knows its span.

sqlglot parses; this module turns its tree into ours, so nothing else depends on sqlglot. Names are not resolved here:
whether `late.origin` is a stage's column or a field of a struct column is known when the pattern meets a schema.
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
    """A constant as written, with the type Spark gives it."""

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
    """An operator or function applied to arguments: `and`, `=`, `+`, `case`, `substring`, …; names in lower case."""

    function: str
    args: tuple[Expression, ...]
    span: Span


Expression: TypeAlias = Literal | Name | Call
