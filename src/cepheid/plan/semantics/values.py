"""Literals as SQL: those of columns, those of the knowledge, and what built-ins compute from both.

SQL must give exactly what SWRL's built-ins give, and must not fail. Integers of SWRL have no bounds. So each integer
value knows its own: where a result may exceed BIGINT, it also knows the conditions under which it does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.knowledge.filters.values import Duration, Moment, NoValue, value_of
from cepheid.knowledge.terms import Literal
from cepheid.lang.parameters import string_literal
from cepheid.plan.conditions.types import MAX_DIGITS, as_decimal, is_decimal, is_float, is_integer, is_string
from cepheid.plan.semantics.inert import NotLifted

Kind: TypeAlias = OneOf["integer", "decimal", "double", "text", "boolean", "zoned", "local", "date", "duration"]
"""What is compared with each other: numbers of all three types, and otherwise values of one kind. Times with a zone and
those without are two kinds.
"""
NUMBERS = ("integer", "decimal", "double")
MICROSECONDS = pa.int64()
"""The type of times and durations that are computed as microseconds (since 1970)."""
BIGINT = (-(2**63), 2**63 - 1)
SCRIPT_DIGITS = 18
"""The most digits of a decimal in a condition on several events."""


@dataclass(frozen=True)
class Excess:
    """When an integer is outside of BIGINT, so that its SQL must not be computed."""

    above: str
    """SQL: whether it is greater than `beyond`."""
    below: str
    """SQL: whether it is less than `-beyond`."""
    beyond: int


@dataclass(frozen=True)
class SqlValue:
    """A value as SQL."""

    sql: str
    kind: Kind
    type: pa.DataType
    """Its type in SQL."""
    events: frozenset[str] = frozenset()
    """The events it depends on, as what stands before the names of their columns."""
    bounds: tuple[int, int] = BIGINT
    """The least and the greatest value of an integer."""
    conditions: tuple[str, ...] = ()
    """SQL, all of which must be true: otherwise there is no value."""
    excess: Excess | None = None
    literal: Literal | None = None
    """The literal of the knowledge, or of the filter, that it is."""


def of_column(sql: str, type_: pa.DataType, event: str) -> SqlValue:
    """The literals of a column.

    Raises:
        NotLifted: those of its type have no SQL.
    """
    kind = _kind_of_type(type_)
    if kind is None:
        raise NotLifted(f"the column {sql} has values that have no SQL")
    if kind == "integer":
        most = 2 ** (type_.bit_width - 1)
        return SqlValue(sql, kind, type_, frozenset({event}), (-most, most - 1))
    return SqlValue(sql, kind, type_, frozenset({event}))


def _kind_of_type(type_: pa.DataType) -> Kind | None:
    if arrow.is_boolean(type_):
        return "boolean"
    if is_integer(type_):
        return "integer"
    if is_decimal(type_) and type_.precision <= MAX_DIGITS:
        return "decimal"
    if is_float(type_):
        return "double"
    if is_string(type_):
        return "text"
    if arrow.is_timestamp(type_):
        return "zoned" if type_.tz else "local"
    if type_ == pa.date32():
        return "date"
    return "duration" if arrow.is_duration(type_) else None


def of_literal(literal: Literal) -> SqlValue:
    """A literal as a constant.

    Raises:
        NoValue: its text does not fit its type.
        NotLifted: it has no SQL.
    """
    value = value_of(literal)
    match value:
        case bool():
            return SqlValue(str(value).upper(), "boolean", pa.bool_(), literal=literal)
        case int() if len(str(abs(value))) <= MAX_DIGITS:
            type_ = pa.int64() if BIGINT[0] <= value <= BIGINT[1] else pa.decimal128(len(str(abs(value))), 0)
            return SqlValue(str(value), "integer", type_, bounds=(value, value), literal=literal)
        case Decimal():
            return _decimal(value, literal)
        case float() if math.isfinite(value):
            return SqlValue(double(value), "double", pa.float64(), literal=literal)
        case str():
            return SqlValue(string_literal(value), "text", pa.string(), literal=literal)
        case Moment():
            return _moment(value, literal)
        case Duration("dayTimeDuration", amount) if (found := amount * 1_000_000) == found.to_integral_value():
            if abs(found) <= BIGINT[1]:
                sql = f"INTERVAL '{int(found)}' MICROSECOND"
                return SqlValue(sql, "duration", pa.duration("us"), literal=literal)
    raise NotLifted(f"the literal {literal} has no SQL")


def double(value: float) -> str:
    """A finite double as SQL."""
    text = repr(value)
    return text if "e" in text else f"{text}E0"


def _decimal(value: Decimal, literal: Literal) -> SqlValue:
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    whole, _, fraction = text.lstrip("+-").partition(".")
    digits = max(len(whole.lstrip("0")) + len(fraction), 1)
    if digits > MAX_DIGITS:
        raise NotLifted(f"the literal {literal} has too many digits for SQL")
    sql = text if fraction else f"{text}.0"
    return SqlValue(sql, "decimal", pa.decimal128(digits + (not fraction), max(len(fraction), 1)), literal=literal)


def _moment(value: Moment, literal: Literal) -> SqlValue:
    at = value.at
    match value.kind:
        case "dateTime" if value.zoned:
            try:
                text = at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
            except OverflowError:
                raise NotLifted(f"the literal {literal} has no SQL") from None
            return SqlValue(f"TIMESTAMP '{text}Z'", "zoned", pa.timestamp("us", "UTC"), literal=literal)
        case "dateTime":
            text = at.isoformat(" ", "microseconds")
            return SqlValue(f"TIMESTAMP_NTZ '{text}'", "local", pa.timestamp("us"), literal=literal)
        case "date" if not value.zoned:
            return SqlValue(f"DATE '{at.date().isoformat()}'", "date", pa.date32(), literal=literal)
        case "date" | "time":
            raise NoValue("columns have no such values")
    raise NotLifted(f"the literal {literal} has no SQL")


def as_double(value: SqlValue) -> str:
    """SQL of the number as DOUBLE."""
    if value.kind == "double" and value.type == pa.float64():
        return value.sql
    if value.excess is not None or (value.kind != "double" and len(value.events) > 1 and is_decimal(value.type)):
        raise NotLifted("an exact number of several events becomes a double")
    if value.literal is not None:
        number = value_of(value.literal)
        assert isinstance(number, int | Decimal | float)
        return double(float(number))
    return f"CAST({value.sql} AS DOUBLE)"


def fits_bigint(value: SqlValue) -> bool:
    return value.kind == "integer" and BIGINT[0] <= value.bounds[0] <= value.bounds[1] <= BIGINT[1]


def decimal_of(value: SqlValue) -> pa.DataType:
    """The decimal type of an exact number. As in SQL, a constant has as many digits as are written."""
    if value.kind == "integer" and value.literal is not None:
        return pa.decimal128(len(str(abs(value.bounds[0]))), 0)
    return as_decimal(value.type)


def check_decimals(one: SqlValue, other: SqlValue) -> None:
    """Raises NotLifted if these exact numbers have no common type."""
    if not (is_decimal(one.type) or is_decimal(other.type)):
        return
    left, right = decimal_of(one), decimal_of(other)
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    if digits > (SCRIPT_DIGITS if len(one.events | other.events) > 1 else MAX_DIGITS):
        raise NotLifted(f"exact numbers of {digits} digits are compared")
