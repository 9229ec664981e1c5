"""Operators and functions of the bits of integers. As in Java, shifts drop what leaves the type at either end."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import Fragment, bound, duckdb_type, widened
from cepheid.hosts.duckdb.rule import Rule, WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.result_types import common_type
from cepheid.plan.conditions.types import is_integer, sql_name

_OF_BOOLEANS = {"&": "AND", "|": "OR", "^": "<>"}
"""What does the same with booleans."""
_SQL = {"&": "{0} & {1}", "|": "{0} | {1}", "^": "xor({0}, {1})"}


def _bitwise(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`&`, `|` and `^`, in the wider type of the two."""
    types = [arg.type for arg in args]
    type_ = common_type(types)
    sides = [widened(arg, type_, zone) for arg in args] if type_ is not None and is_integer(type_) else []
    known = [side for side in sides if side is not None]
    if type_ is None or len(known) < len(args):
        advice = f". Write {_OF_BOOLEANS[call.function]}" if type_ is not None and pa.types.is_boolean(type_) else ""
        raise WrongArguments(f"{call.function!r} takes integers, got {', '.join(map(sql_name, types))}{advice}")
    return guarded(known, _SQL[call.function].format(*(side.text for side in known)), type_)


def _inverted(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    (value,) = args
    if not is_integer(value.type):
        raise WrongArguments(f"'~' takes an integer, got {sql_name(value.type)}")
    return guarded(args, f"~{value.text}", value.type)


def _bit_count(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """The bits of the number as a BIGINT."""
    (value,) = args
    if not (is_integer(value.type) or arrow.is_boolean(value.type)):
        raise WrongArguments(f"bit_count takes an integer or BOOLEAN, got {sql_name(value.type)}")
    return guarded(args, f"CAST(bit_count(CAST({value.text} AS BIGINT)) AS INTEGER)", pa.int32())


def _shift(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """A shift by the places modulo the bits of the type, which is INT or BIGINT."""
    value, places = args
    count = widened(places, pa.int32(), zone)
    if not is_integer(value.type) or count is None:
        given = ", ".join(sql_name(arg.type) for arg in args)
        raise WrongArguments(f"{call.function!r} takes an integer and an INT, got {given}")
    type_ = value.type if value.type == pa.int64() else pa.int32()
    bits = type_.bit_width
    amount = f"({count.text} & {bits - 1})"
    match call.function:
        case "<<" | "shiftleft":
            text = _left(value.text, amount, bits)
        case ">>" | "shiftright":
            text = f"CAST({value.text} AS {duckdb_type(type_)}) >> {amount}"
        case _:
            text = _right_unsigned(value.text, amount, bits)
    return guarded((value, count), f"CAST({text} AS {duckdb_type(type_)})", type_)


def _left(value: str, amount: str, bits: int) -> str:
    """The low bits times a power of two, less 2^bits if the sign's bit is set. In HUGEINT, where nothing overflows."""
    low = f"(CAST({value} AS HUGEINT) & ((CAST(1 AS HUGEINT) << ({bits} - {amount})) - 1))"
    shifted = f"{low} * (CAST(1 AS HUGEINT) << {amount})"
    return bound(shifted, f"CASE WHEN v >= {_power(bits - 1)} THEN v - {_power(bits)} ELSE v END")


def _right_unsigned(value: str, amount: str, bits: int) -> str:
    whole = f"CASE WHEN {value} < 0 THEN CAST({value} AS HUGEINT) + {_power(bits)} ELSE {value} END"
    shifted = f"(CAST({whole} AS HUGEINT) >> {amount})"
    return bound(shifted, f"CASE WHEN v >= {_power(bits - 1)} THEN v - {_power(bits)} ELSE v END")


def _power(exponent: int) -> str:
    return f"CAST('{1 << exponent}' AS HUGEINT)"


BITS: dict[str, Rule] = {
    **dict.fromkeys(_SQL, _bitwise),
    "~": _inverted,
    "bit_count": _bit_count,
    **dict.fromkeys(("<<", "shiftleft", ">>", "shiftright", "shiftrightunsigned"), _shift),
}
