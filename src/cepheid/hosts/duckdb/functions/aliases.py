"""Functions that are another spelling of an operator or a cast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.hosts.duckdb.casts import Mode, cast
from cepheid.hosts.duckdb.fragment import TIMESTAMP, Fragment
from cepheid.hosts.duckdb.operators import OPERATORS
from cepheid.hosts.duckdb.rule import Rule, WrongArguments
from cepheid.lang.expression import Call, Literal

_TARGETS: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(10, 0),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
}


def _cast(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    (value,) = args
    return cast(value, _TARGETS[call.function], zone, Mode.STRICT)


def _operator(function: str, count: int) -> Rule:
    """The operator as a function of so many arguments."""

    def rule(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
        if len(args) != count:
            raise WrongArguments(f"{call.function} takes {count} arguments, got {len(args)}")
        return OPERATORS[function](replace(call, function=function), args, zone)

    return rule


def _with_zero(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`nullifzero` and `zeroifnull`."""
    (value,) = args
    zero = Literal(0, pa.int32(), call.span)
    function = "nullif" if call.function == "nullifzero" else "coalesce"
    written = Call(function, (*call.args, zero), call.span)
    return OPERATORS[function](written, (value, Fragment("CAST(0 AS INTEGER)", pa.int32(), literal=zero)), zone)


ALIASES: dict[str, Rule] = {
    **dict.fromkeys(_TARGETS, _cast),
    "mod": _operator("%", 2),
    "equal_null": _operator("<=>", 2),
    **dict.fromkeys(("nullifzero", "zeroifnull"), _with_zero),
}
