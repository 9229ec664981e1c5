"""Division of decimals, for which DuckDB would use doubles; and conversion of doubles to decimals through their text,
as in Java.

A quotient is computed on integers of up to 38 digits (HUGEINT), with one digit more than needed, and is then rounded
half up.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import Fragment, as_double, bound, duckdb_type
from cepheid.hosts.duckdb.rule import converted
from cepheid.plan.conditions.types import MAX_DIGITS, is_decimal, is_float, is_integer, is_string

# Doubles (from 2^52) and floats (from 2^23) are whole numbers.
_WHOLE = {pa.float64(): 4503599627370496, pa.float32(): 8388608}
# A double that is not whole has 16 digits before the point.
MAX_PLACES = MAX_DIGITS - 16
_DIGITS = "replace(replace(regexp_extract(v, '^[^e]*'), '.', ''), '-', '')"
_SIGN = "CASE WHEN v[1] = '-' THEN '-' ELSE '' END"
_EXPONENT = "CAST(regexp_extract(v, '[0-9]+$') AS INTEGER)"


def quotient(left: Fragment, right: Fragment, type_: pa.DataType) -> str | None:
    """`left / right` of decimals, where the divisor is not 0; None if it needs more than 38 digits."""
    shift = type_.scale + 1 - left.type.scale + right.type.scale
    # Spark rounds to 38 places, then to the type's: rounding once gives the same if the divisor is short enough.
    exact_at_once = type_.scale + right.type.precision <= MAX_DIGITS
    if not (0 <= shift <= MAX_DIGITS - left.type.precision and exact_at_once):
        return None
    text = f"{_unscaled(left)} * {_power(shift)} // {_unscaled(right)}"
    return f"CAST({_scaled(text, type_.scale + 1)} AS {duckdb_type(type_)})"


def remainder(left: Fragment, right: Fragment, type_: pa.DataType) -> str | None:
    """`left % right` of decimals, where the divisor is not 0; None if it needs more than 38 digits."""
    scale = max(left.type.scale, right.type.scale)
    if any(side.type.precision + scale - side.type.scale > MAX_DIGITS for side in (left, right)):
        return None
    dividend, divisor = (f"({_unscaled(side)} * {_power(scale - side.type.scale)})" for side in (left, right))
    return f"CAST({_scaled(f'{dividend} % {divisor}', scale)} AS {duckdb_type(type_)})"


def _unscaled(number: Fragment) -> str:
    return f"CAST(replace(CAST({number.text} AS VARCHAR), '.', '') AS HUGEINT)"


def _scaled(integer: str, scale: int) -> str:
    unit = f"CAST('{10**-scale:.{scale}f}' AS DECIMAL({max(scale, 1)}, {scale}))"
    return f"CAST({integer} AS DECIMAL(38, 0)) * {unit}"


def _power(exponent: int) -> str:
    return f"CAST('{10**exponent}' AS HUGEINT)"


def as_decimal_text(number: Fragment) -> str:
    """A finite FLOAT or DOUBLE as the shortest text that represents it, without an exponent."""
    small = f"{_SIGN} || '0.' || repeat('0', {_EXPONENT} - 1) || {_DIGITS}"
    large = f"{_SIGN} || rpad({_DIGITS}, {_EXPONENT} + 1, '0')"
    plain = f"CASE WHEN contains(v, 'e-') THEN {small} WHEN contains(v, 'e') THEN {large} ELSE v END"
    return bound(f"CAST({number.text} AS VARCHAR)", plain)


def as_decimal(number: Fragment, type_: pa.DataType, cast: str) -> str:
    """A FLOAT or DOUBLE as DECIMAL by CAST or TRY_CAST; NaN and the infinities give NULL, also in Spark's ANSI mode."""
    value = Fragment("v", pa.float64())
    body = f"CASE WHEN isfinite(v) THEN {cast}({as_decimal_text(value)} AS {duckdb_type(type_)}) END"
    return bound(as_double(number), body)


def rounded_type(type_: pa.DataType, places: int) -> pa.DataType | None:
    """The type of `round(x, places)`; None if it is not supported here."""
    if is_integer(type_) or (is_float(type_) and places <= MAX_PLACES):
        return type_
    if not is_decimal(type_):
        return None
    scale = min(type_.scale, places)
    digits = type_.precision - type_.scale + 1 + scale
    return pa.decimal128(digits, scale) if digits <= MAX_DIGITS else None


def rounded(number: Fragment, places: int, type_: pa.DataType) -> str:
    """The number rounded to this many decimal places, halves away from zero; a double is rounded by its text."""
    if not is_float(type_):
        return f"CAST({number.text} AS {duckdb_type(type_)})"
    text = as_decimal_text(Fragment("v", type_))
    fixed = f"CAST(CAST(CAST({text} AS DECIMAL(38, {places})) AS VARCHAR) AS {duckdb_type(type_)})"
    return bound(number.text, f"CASE WHEN abs(v) < {_WHOLE[type_]} THEN {fixed} ELSE v END")


def places_in(args: Sequence[Fragment], zone: str) -> int | None:
    """The second argument of `round`; 0 if there is none; None if it is not a constant of at least 0."""
    if len(args) == 1:
        return 0
    literal = (converted(args[1], pa.int32(), zone) if is_string(args[1].type) else args[1]).literal
    known = literal is not None and is_integer(literal.type) and literal.type != pa.int64()
    return int(str(literal.value)) if literal is not None and known and int(str(literal.value)) >= 0 else None
