"""Arithmetic that gives NULL where it would fail (`try_add`, …), and `pmod`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import Fragment, bound, duckdb_type, widened
from cepheid.hosts.duckdb.operators import arithmetic, divided
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.result_types import type_of_call
from cepheid.plan.conditions.types import is_decimal, is_float, is_integer, is_numeric, sql_name

_OPERATORS = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}


def _forgiving(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    operator = replace(call, function=_OPERATORS[call.function])
    type_ = _number(call, operator, args)
    if operator.function in "/%":
        return arithmetic(operator, args, zone, forgiving=True)
    if not is_integer(type_):
        return arithmetic(operator, args, zone)
    left, right = (_as(arg, type_, zone) for arg in args)
    wide = f"CAST({left.text} AS HUGEINT) {operator.function} {right.text}"
    return guarded((left, right), f"TRY_CAST({wide} AS {duckdb_type(type_)})", type_)


def _number(call: Call, operator: Call, args: Sequence[Fragment]) -> pa.DataType:
    types = [arg.type for arg in args]
    type_ = type_of_call(operator, types)
    if not is_numeric(type_) or not all(is_numeric(t) or arrow.is_null(t) for t in types):
        raise NotInProcess(f"{call.function} of {' and '.join(map(sql_name, types))}")
    return type_


def _as(arg: Fragment, type_: pa.DataType, zone: str) -> Fragment:
    wide = widened(arg, type_, zone)
    assert wide is not None, (arg, type_)
    return wide


def _pmod(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The remainder with the sign of the divisor, where that is positive: Java's `r < 0 ? (r + b) % b : r`."""
    type_ = _number(call, replace(call, function="%"), args)
    if is_decimal(type_):
        raise NotInProcess("pmod of DECIMAL")
    left, right = (_as(arg, type_, zone) for arg in args)
    if is_float(type_):
        text = bound(
            f"{left.text} % {right.text}", f"CASE WHEN v < 0 THEN (v + {right.text}) % {right.text} ELSE v END"
        )
        return divided("pmod", left, right, type_, text)
    # INT and BIGINT wrap around in Java, if the sum of two negative numbers is too small; smaller types do not.
    bits = type_.bit_width
    lowest, turn = (f"CAST('{n}' AS HUGEINT)" for n in (-(1 << (bits - 1)), 1 << bits))
    total = f"(v + {right.text})"
    if type_ in (pa.int32(), pa.int64()):
        total = f"(CASE WHEN {total} < {lowest} THEN {total} + {turn} ELSE {total} END)"
    remainder = bound(
        f"CAST({left.text} AS HUGEINT) % {right.text}", f"CASE WHEN v < 0 THEN {total} % {right.text} ELSE v END"
    )
    return divided("pmod", left, right, type_, f"CAST({remainder} AS {duckdb_type(type_)})")


FORGIVING: dict[str, Rule] = {**dict.fromkeys(_OPERATORS, _forgiving), "pmod": _pmod}
