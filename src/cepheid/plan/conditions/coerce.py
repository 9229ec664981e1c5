"""Conversions of scripts from one type to another, and the types that scripts can hold."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Constant, Literal, Span
from cepheid.plan.conditions.script import ConstantValue, Operation, Operator, Script
from cepheid.plan.conditions.types import is_decimal, is_float, is_integer, is_string, sql_name

SCRIPT_DIGITS = 18
"""The most digits of a decimal in scripts, where it is a scaled 64-bit integer."""


def check_script_type(type_: pa.DataType, span: Span) -> pa.DataType:
    """The type itself, if scripts can hold it; otherwise PatternError, with advice."""
    if is_decimal(type_) and type_.precision > SCRIPT_DIGITS:
        scale = min(type_.scale, 6)
        hint = f"Cast the values in it to DOUBLE or to DECIMAL({SCRIPT_DIGITS}, {scale})."
        message = f"{sql_name(type_)} has more than {SCRIPT_DIGITS} digits, too many for a condition across events"
        raise PatternError(Problem(message, span=span, hint=hint))
    known = is_integer(type_) or is_decimal(type_) or is_float(type_) or is_string(type_) or pa.types.is_null(type_)
    if known or type_ == pa.date32() or pa.types.is_boolean(type_):
        return type_
    if (pa.types.is_timestamp(type_) or pa.types.is_duration(type_)) and type_.unit == "us":
        return type_
    hint = "It can hold BOOLEAN, numbers, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ and INTERVAL DAY TO SECOND."
    raise PatternError(Problem(f"a condition across events cannot hold {sql_name(type_)}", span=span, hint=hint))


def constant(literal: Literal) -> ConstantValue | None:
    """The literal as scripts hold it; None if only the host's SQL engine knows its value."""
    value = _encoded(literal.value, literal.type)
    if value is None and literal.value is not None:
        return None
    return ConstantValue(value, pa.float64() if is_float(literal.type) else literal.type)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _encoded(value: Constant, type_: pa.DataType) -> bool | int | float | str | None:
    match value:
        case bool() | int() | float() | str():
            return value
        case Decimal():
            return int(value.scaleb(type_.scale)) if type_.precision <= SCRIPT_DIGITS else None
        case datetime():
            if type_.tz and value.tzinfo is None:
                return None
            return (value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)
        case date():
            return value.toordinal() - _EPOCH.toordinal()
        case timedelta():
            return value // timedelta(microseconds=1)
        case _:
            return None


def coerce(script: Script, target: pa.DataType, span: Span) -> Script:
    """The script's value as `target`; PatternError if scripts cannot convert it without the host's SQL engine."""
    source = script.type
    if source == target or (
        pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.tz and target.tz
    ):
        return script
    if is_string(source) and is_string(target):
        return script
    if pa.types.is_null(source):
        return ConstantValue(None, target)
    if not knows_conversion(source, target):
        hint = "Cast one side, so that both have one type; the host can compute a cast of one event's value."
        if is_string(target):
            hint = "Compare the value without this cast, or cast the values of single events in it."
        message = f"{sql_name(source)} cannot become {sql_name(target)} in a condition across events"
        raise PatternError(Problem(message, span=span, hint=hint))
    if isinstance(script, ConstantValue) and isinstance(script.value, int):
        folded = _folded(script.value, source, target)
        if folded is not None:
            return folded
    return Operation(Operator.CAST, (script,), target)


def knows_conversion(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether scripts convert values of one type to another that is not the same in scripts."""
    if target == pa.float64():
        return is_integer(source) or is_decimal(source) or is_float(source)
    if is_decimal(target):
        return is_integer(source) or is_decimal(source)
    return is_integer(source) and is_integer(target) and source.bit_width <= target.bit_width


def _folded(value: int, source: pa.DataType, target: pa.DataType) -> ConstantValue | None:
    """The constant in the other type, which saves a conversion on every event; None if it is not exact there."""
    scale = source.scale if is_decimal(source) else 0
    if is_float(target):
        return ConstantValue(float(Decimal(value).scaleb(-scale)), target)
    if is_integer(target):
        return ConstantValue(value, target)
    if target.scale < scale:
        return None
    scaled = value * 10 ** (target.scale - scale)
    return ConstantValue(scaled, target) if abs(scaled) < 10**target.precision else None
