"""Types are Arrow's: their names in Spark, and the kinds that rules distinguish.

TIMESTAMP is `pa.timestamp("us", zone)` with any zone, TIMESTAMP_NTZ is `pa.timestamp("us")`, INTERVAL DAY TO SECOND is
`pa.duration("us")`, an untyped NULL is `pa.null()`. The result types of operators are in `result_types`.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as arrow

DURATION = pa.duration("us")
TIMESTAMP_NTZ = pa.timestamp("us")

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INTEGER_NAMES = dict(zip(_INTEGERS, ("TINYINT", "SMALLINT", "INT", "BIGINT"), strict=True))
_INTEGER_DIGITS = dict(zip(_INTEGERS, (3, 5, 10, 20), strict=True))
_NAMES: dict[pa.DataType, str] = {
    **_INTEGER_NAMES,
    pa.bool_(): "BOOLEAN",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.null(): "VOID",
}
MAX_DIGITS = 38


def sql_name(type_: pa.DataType) -> str:
    """The type as Spark writes it: `DECIMAL(4, 2)`, `TIMESTAMP_NTZ`, `ARRAY<INT>`."""
    if type_ in _NAMES:
        return _NAMES[type_]
    if is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if is_string(type_):
        return "STRING"
    if is_binary(type_):
        return "BINARY"
    if arrow.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    if arrow.is_duration(type_):
        return "INTERVAL DAY TO SECOND"
    if arrow.is_interval(type_):
        return "INTERVAL YEAR TO MONTH"
    if isinstance(type_, pa.OpaqueType):
        return str(type_.type_name)  # a type of the host that Arrow does not have
    return _nested_name(type_)


def _nested_name(type_: pa.DataType) -> str:
    if is_list(type_):
        return f"ARRAY<{sql_name(type_.value_type)}>"
    if arrow.is_map(type_):
        return f"MAP<{sql_name(type_.key_type)}, {sql_name(type_.item_type)}>"
    if arrow.is_struct(type_):
        return "STRUCT<" + ", ".join(f"{f.name}: {sql_name(f.type)}" for f in type_) + ">"
    return str(type_).upper()


def is_integer(type_: pa.DataType) -> bool:
    """Spark's integers: signed, 8 to 64 bits."""
    return type_ in _INTEGER_NAMES


def is_decimal(type_: pa.DataType) -> bool:
    return bool(arrow.is_decimal(type_))


def is_float(type_: pa.DataType) -> bool:
    return type_ in (pa.float32(), pa.float64())


def is_numeric(type_: pa.DataType) -> bool:
    return is_integer(type_) or is_decimal(type_) or is_float(type_)


def is_string(type_: pa.DataType) -> bool:
    return bool(arrow.is_string(type_) or arrow.is_large_string(type_) or arrow.is_string_view(type_))


def is_binary(type_: pa.DataType) -> bool:
    return bool(arrow.is_binary(type_) or arrow.is_large_binary(type_))


def is_list(type_: pa.DataType) -> bool:
    return bool(arrow.is_list(type_) or arrow.is_large_list(type_))


def is_time(type_: pa.DataType) -> bool:
    """Dates and both kinds of timestamp."""
    return type_ == pa.date32() or bool(arrow.is_timestamp(type_))


def is_months(type_: pa.DataType) -> bool:
    """Intervals of months and years. Spark's are known by name only."""
    if isinstance(type_, pa.OpaqueType):
        return type_.type_name in ("INTERVAL MONTH", "INTERVAL YEAR", "INTERVAL YEAR TO MONTH")
    return bool(arrow.is_interval(type_))


def is_zoned(type_: pa.DataType) -> bool:
    """TIMESTAMP, whose Arrow types have a zone."""
    return bool(arrow.is_timestamp(type_)) and type_.tz is not None


def is_orderable(type_: pa.DataType) -> bool:
    """Whether `<`, min and max are supported for the type."""
    scalar = is_numeric(type_) or is_string(type_) or is_binary(type_) or is_time(type_)
    return scalar or arrow.is_boolean(type_) or arrow.is_duration(type_) or arrow.is_null(type_)


def as_decimal(type_: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer or decimal type."""
    return pa.decimal128(_INTEGER_DIGITS[type_], 0) if type_ in _INTEGER_DIGITS else type_
