"""Expressions as DuckDB SQL, if `functions.py`, `operators.py` and `casts.py` can give exactly Spark's results.

Everything else is refused by name. `DuckDbEngine` evaluates lifted columns over Arrow tables, all in one query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.errors import PatternError, Problem
from cepheid.hosts.duckdb.calendar_units import date_trunc, trunc
from cepheid.hosts.duckdb.casts import Mode, cast
from cepheid.hosts.duckdb.fragment import TIMESTAMP, Fragment, local, of_literal, widened
from cepheid.hosts.duckdb.functions import BY_NAME, Function
from cepheid.hosts.duckdb.lists import IN_LIST, in_list
from cepheid.hosts.duckdb.operators import OPERATORS, NotInProcess, Rule, guarded
from cepheid.hosts.duckdb.text_patterns import like, rlike
from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.plan.conditions.types import TIMESTAMP_NTZ, is_decimal, is_float, is_integer, is_list, is_string, sql_name

Resolve = Callable[[Name], Fragment]
"""The column that a name means; raises PatternError."""


def _cast(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    return cast(args[0], args[1].type, zone, Mode(call.function))


def _concat(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """Concatenated texts. The result is NULL if one of them is NULL. `concat_ws` skips NULLs, and its first argument
    separates the others.
    """
    texts = [widened(arg, pa.string(), zone) for arg in args]
    known = [text for text in texts if text is not None]
    if not args or len(known) < len(args):
        raise NotInProcess(f"{call.function!r} of anything but STRING")
    listed = [text.text for text in known]
    joined = " || ".join(listed) if call.function == "concat" else f"concat_ws({', '.join(listed)})"
    return Fragment(f"({joined})", pa.string(), raises=any(text.raises for text in known))


RULES: dict[str, Rule] = {
    **OPERATORS,
    "cast": _cast,
    "try_cast": _cast,
    "concat": _concat,
    "concat_ws": _concat,
    "like": like,
    "rlike": rlike,
    "regexp_like": rlike,
    "date_trunc": date_trunc,
    "trunc": trunc,
    IN_LIST: in_list,
}
_SPELLED = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "INTEGER": is_integer,
    "FLOATING": is_float,
    "DECIMAL": is_decimal,
    "ARRAY": is_list,
}


def translate(expression: Expression, resolve: Resolve, zone: str) -> Fragment:
    """The SQL that gives Spark's result. Raises PatternError with all problems."""
    match expression:
        case Literal():
            return of_literal(expression, zone)
        case Name():
            return resolve(expression)
        case Call():
            return _translate_call(expression, resolve, zone)


def _translate_call(call: Call, resolve: Resolve, zone: str) -> Fragment:
    if call.function not in RULES and call.function not in BY_NAME:
        raise _unknown(call)
    args: list[Fragment] = []
    problems: list[Problem] = []
    for i, arg in enumerate(call.args):
        try:
            is_target = call.function in ("cast", "try_cast") and i == 1
            args.append(_target(arg) if is_target else translate(arg, resolve, zone))
        except PatternError as error:
            problems += error.problems
    if problems:
        raise PatternError(problems)
    try:
        return _apply(call, args, zone)
    except NotInProcess as reason:
        message = f"{reason}: not available in process; it is available on Spark"
        raise PatternError(Problem(message, span=call.span)) from None


def _target(arg: Expression) -> Fragment:
    assert isinstance(arg, Literal), arg
    return Fragment("", TIMESTAMP if arrow.is_timestamp(arg.type) and arg.type.tz else arg.type)


def _unknown(call: Call) -> PatternError:
    near = get_close_matches(call.function, [name for name in (*RULES, *BY_NAME) if name.isidentifier()], n=3)
    hint = f"Did you mean {' or '.join(repr(name) for name in near)}?" if near else None
    message = f"{call.function!r} is not available in process; it is available on Spark"
    return PatternError(Problem(message, span=call.span, hint=hint))


def _apply(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    if rule := RULES.get(call.function):
        try:
            return rule(call, args, zone)
        except (IndexError, ValueError) as error:
            if isinstance(error, PatternError):
                raise
            raise NotInProcess(f"{call.function!r} of {len(args)} arguments") from error
    for function in BY_NAME[call.function]:
        taken = [_taken(arg, kind, zone) for arg, kind in zip(args, function.takes, strict=False)]
        if len(args) == len(function.takes) and all(taken) and _constants_fit(function, args):
            return _filled(function, [arg for arg in taken if arg is not None])
    forms = " or ".join(f"({', '.join(function.takes)})" for function in BY_NAME[call.function])
    given = ", ".join(sql_name(arg.type) for arg in args)
    notes = " ".join(function.notes for function in BY_NAME[call.function] if function.constants)
    raise NotInProcess(f"{call.function} takes {forms}, got ({given}){'. ' + notes if notes else ''}".removesuffix("."))


def _taken(arg: Fragment, kind: str, zone: str) -> Fragment | None:
    """The argument as the function takes it; None if its type does not fit."""
    if kind in _KINDS:
        return arg if _KINDS[kind](arg.type) else None
    if kind != "LOCAL":
        return widened(arg, _SPELLED[kind], zone)
    if arrow.is_null(arg.type):
        return widened(arg, TIMESTAMP_NTZ, zone)
    if arg.type == pa.date32() or arrow.is_timestamp(arg.type):
        return Fragment(local(arg, zone), TIMESTAMP_NTZ, raises=arg.raises)
    return None


def _constants_fit(function: Function, args: Sequence[Fragment]) -> bool:
    """Whether the arguments that must be constants are, and none of these is NULL, empty or 0."""
    return all((literal := args[i].literal) is not None and bool(literal.value) for i in function.constants)


def _filled(function: Function, args: Sequence[Fragment]) -> Fragment:
    kinds = dict(zip(function.takes, (arg.type for arg in args), strict=True))
    type_ = kinds[function.gives] if function.gives in _KINDS else _SPELLED[function.gives]
    return guarded(args, function.sql.format(*(arg.text for arg in args)), type_, fails=function.fails)


def is_known(type_: pa.DataType) -> bool:
    """Whether columns of the type can be used here."""
    scalar = type_ in (*_SPELLED.values(), pa.int8(), pa.int16(), pa.float32(), pa.duration("us"), pa.null())
    time = bool(arrow.is_timestamp(type_) or arrow.is_duration(type_))
    return scalar or is_string(type_) or is_decimal(type_) or time
