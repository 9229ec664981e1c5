"""`ceil`, `floor` and `nanvl`, whose type follows from that of their argument."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import Fragment, duckdb_type, widened
from cepheid.hosts.duckdb.rule import WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import MAX_DIGITS, is_decimal, is_float, is_integer, sql_name


def whole(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The next whole number above or below: a DECIMAL of a DECIMAL, otherwise a BIGINT. NaN gives 0."""
    (value,) = args
    function = "floor" if call.function == "floor" else "ceil"
    if arrow.is_null(value.type):
        return Fragment("CAST(NULL AS BIGINT)", pa.int64())
    if is_integer(value.type):
        return guarded(args, f"CAST({value.text} AS BIGINT)", pa.int64())
    if is_decimal(value.type):
        return _whole_decimal(function, value)
    if is_float(value.type):
        text = f"CAST({function}({value.text}) AS BIGINT)"
        text = f"CASE WHEN isnan({value.text}) THEN CAST(0 AS BIGINT) ELSE {text} END"
        return guarded(args, text, pa.int64(), fails=True)
    raise WrongArguments(f"{call.function} takes a number, got {sql_name(value.type)}")


def _whole_decimal(function: str, value: Fragment) -> Fragment:
    digits, scale = value.type.precision, value.type.scale
    if scale == 0:
        return value
    type_ = pa.decimal128(min(digits - scale + 1, MAX_DIGITS), 0)
    # DuckDB's result has the digits of its argument, which may be too few by one.
    wide = f"CAST(trunc({value.text}) AS {duckdb_type(type_)})"
    beyond = f"{value.text} {'>' if function == 'ceil' else '<'} trunc({value.text})"
    step = "+" if function == "ceil" else "-"
    text = f"CASE WHEN {beyond} THEN CAST({wide} {step} 1 AS {duckdb_type(type_)}) ELSE {wide} END"
    return guarded([value], text, type_)


def nanvl(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The second number where the first is NaN: a FLOAT if both are, otherwise a DOUBLE."""
    first, second = args
    are_floats = arrow.is_float32(first.type) and (arrow.is_float32(second.type) or arrow.is_null(second.type))
    type_ = pa.float32() if are_floats else pa.float64()
    value, other = widened(first, type_, zone), widened(second, type_, zone)
    if value is None or other is None:
        raise WrongArguments(f"nanvl takes two numbers, got {sql_name(first.type)}, {sql_name(second.type)}")
    return guarded([value, other], f"CASE WHEN isnan({value.text}) THEN {other.text} ELSE {value.text} END", type_)
