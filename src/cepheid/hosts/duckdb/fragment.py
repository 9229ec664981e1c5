"""Pieces of DuckDB SQL that know their Spark type, and conversions that lose nothing.

How DuckDB stores Spark's types: TIMESTAMP is a DuckDB TIMESTAMP in UTC, so that only operations on local time need a
time zone. TIMESTAMP_NTZ is a DuckDB TIMESTAMP, and INTERVAL DAY TO SECOND a BIGINT of microseconds. The other types
have the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.lang.expression import Constant, Literal
from cepheid.plan.conditions.constant_texts.values import value_of_text
from cepheid.plan.conditions.types import (
    DURATION,
    TIMESTAMP_NTZ,
    is_binary,
    is_decimal,
    is_float,
    is_integer,
    is_list,
    is_numeric,
    is_string,
    sql_name,
)

TIMESTAMP = pa.timestamp("us", "UTC")
UTC_NAMES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "UCT", "Universal"})
# A decimal of up to 15 digits and its power of ten are both exact doubles, so DuckDB's one division rounds correctly.
EXACT_DOUBLE_DIGITS = 15


@dataclass(frozen=True)
class Fragment:
    """SQL text of one expression."""

    text: str
    type: pa.DataType
    raises: bool = False
    """Whether evaluating it can fail. It must then be evaluated only where Spark would evaluate it."""
    literal: Literal | None = None
    """Set if the expression is a constant as written."""


def duckdb_type(type_: pa.DataType) -> str:
    """The DuckDB type that holds values of a Spark type."""
    if is_string(type_) or arrow.is_null(type_):
        return "VARCHAR"
    if arrow.is_timestamp(type_):
        return "TIMESTAMP"
    if arrow.is_duration(type_):
        return "BIGINT"
    if arrow.is_interval(type_):
        return "INTEGER"
    if is_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if arrow.is_map(type_):
        return f"MAP({duckdb_type(type_.key_type)}, {duckdb_type(type_.item_type)})"
    if arrow.is_struct(type_):
        fields = ", ".join(f'"{f.name.replace(chr(34), chr(34) * 2)}" {duckdb_type(f.type)}' for f in type_)
        return f"STRUCT({fields})"
    name = {"INT": "INTEGER", "BINARY": "BLOB"}
    return name.get(sql_name(type_), sql_name(type_))


def quoted(text: str) -> str:
    """`text` as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def fail(message: str, type_: pa.DataType) -> str:
    """SQL that fails with `message` when a row reaches it."""
    return f"CAST(error({quoted(message)}) AS {duckdb_type(type_)})"


def bound(value: str, body: str) -> str:
    """SQL for `body`, in which `v` stands for the value. So a value that is used several times is written and computed
    once.
    """
    return f"list_transform([{value}], lambda v: {body})[1]"


def of_literal(literal: Literal, zone: str) -> Fragment:
    """The constant. Its type is always written out, because DuckDB would otherwise choose one."""
    value, type_ = literal.value, same_kind(literal.type)
    if isinstance(value, datetime) and type_ == TIMESTAMP and value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(zone))
    return Fragment(f"CAST({_constant(value)} AS {duckdb_type(type_)})", type_, literal=literal)


def _constant(value: Constant) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case timedelta():
            return str((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds)
        case datetime():
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return quoted(naive.isoformat(sep=" "))
        case date() | str():
            return quoted(str(value))
        case bytes():
            return quoted("".join(f"\\x{byte:02X}" for byte in value))
        case Decimal():
            return quoted(f"{value:f}")
        case _:
            return quoted(str(value))


def local(fragment: Fragment, zone: str) -> str:
    """The local time in `zone`, for any kind of time. That of a DATE is after midnight where the clock skips it."""
    if fragment.type == pa.date32():
        midnight = f"CAST({fragment.text} AS TIMESTAMP)"
        return local(replace(fragment, text=instant(midnight, zone), type=TIMESTAMP), zone)
    if fragment.type.tz is None or zone in UTC_NAMES:
        return fragment.text
    return f"timezone({quoted(zone)}, timezone('UTC', {fragment.text}))"


def instant(clock: str, zone: str) -> str:
    """The instant at which the local time in `zone` is `clock`. As in Java, it is the first of two instants, and a time
    in a gap is moved past the gap.

    ICU, which DuckDB uses, gives the second of two instants. The offset of the day before gives the first.
    """
    if zone in UTC_NAMES:
        return clock
    late = f"timezone('UTC', timezone({quoted(zone)}, {clock}))"
    before = f"({late} - INTERVAL 24 HOUR)"
    early = f"({clock} - (timezone({quoted(zone)}, timezone('UTC', {before})) - {before}))"
    shown = f"timezone({quoted(zone)}, timezone('UTC', {early}))"
    return f"CASE WHEN {shown} = {clock} THEN {early} ELSE {late} END"


def widened(fragment: Fragment, type_: pa.DataType, zone: str) -> Fragment | None:
    """The value in another type that can hold it, if Spark converts it implicitly; otherwise None."""
    if fragment.type == type_ or (is_string(fragment.type) and is_string(type_)):
        return fragment
    if arrow.is_null(type_):
        return None
    if fragment.literal is not None and is_string(fragment.type):
        return _from_text(fragment.literal, type_, zone)
    text = _widened_text(fragment, type_, zone)
    return None if text is None else replace(fragment, text=text, type=type_)


def _widened_text(fragment: Fragment, type_: pa.DataType, zone: str) -> str | None:
    source = fragment.type
    if arrow.is_null(source):
        return f"CAST(NULL AS {duckdb_type(type_)})"
    if is_numeric(source) and is_numeric(type_):
        return _widened_number(fragment, type_)
    if arrow.is_timestamp(source) and type_ == pa.date32():
        return f"CAST({local(fragment, zone)} AS DATE)"
    if arrow.is_timestamp(source) and arrow.is_timestamp(type_):
        if bool(source.tz) == bool(type_.tz):
            return fragment.text
        return instant(fragment.text, zone) if type_.tz else local(fragment, zone)
    if source == pa.date32() and arrow.is_timestamp(type_):
        clock = f"CAST({fragment.text} AS TIMESTAMP)"
        return instant(clock, zone) if type_.tz else clock
    return None


def _widened_number(fragment: Fragment, type_: pa.DataType) -> str | None:
    source = fragment.type
    if type_ == pa.float64():
        return as_double(fragment)
    fits = (
        (is_integer(source) and is_integer(type_) and source.bit_width <= type_.bit_width)
        or (is_integer(source) and is_decimal(type_))
        or (is_decimal(source) and is_decimal(type_) and source.scale <= type_.scale)
    )
    return f"CAST({fragment.text} AS {duckdb_type(type_)})" if fits else None


def as_double(number: Fragment) -> str:
    """A number as the nearest double."""
    if is_decimal(number.type) and number.type.precision > EXACT_DOUBLE_DIGITS:
        return f"CAST(CAST({number.text} AS VARCHAR) AS DOUBLE)"
    return number.text if is_float(number.type) and number.type == pa.float64() else f"CAST({number.text} AS DOUBLE)"


def _from_text(literal: Literal, type_: pa.DataType, zone: str) -> Fragment | None:
    """The value in a constant text; None if it is not read as one of the type."""
    try:
        value = value_of_text(str(literal.value), type_)
    except ValueError:
        return None
    return of_literal(Literal(value, type_, literal.span), zone)


def same_kind(type_: pa.DataType) -> pa.DataType:
    """The one Arrow type that stands for a Spark type here. Strings and timestamps have several in Arrow."""
    if is_string(type_):
        return pa.string()
    if is_binary(type_):
        return pa.binary()
    if arrow.is_timestamp(type_):
        return TIMESTAMP if type_.tz else TIMESTAMP_NTZ
    if arrow.is_duration(type_):
        return DURATION
    return _with_parts(type_, same_kind)


def held_type(type_: pa.DataType) -> pa.DataType:
    """The Arrow type of the values that DuckDB gets for a column of the type."""
    if arrow.is_timestamp(type_):
        return pa.timestamp("us")
    if arrow.is_duration(type_):
        return pa.int64()
    return _with_parts(type_, held_type)


def _with_parts(type_: pa.DataType, of: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A dictionary's values, or an array, map or struct, with the types of its parts replaced."""
    if arrow.is_dictionary(type_):
        return of(type_.value_type)
    if is_list(type_):
        return pa.list_(of(type_.value_type))
    if arrow.is_map(type_):
        return pa.map_(of(type_.key_type), of(type_.item_type))
    if arrow.is_struct(type_):
        return pa.struct([(field.name, of(field.type)) for field in type_])
    return type_
