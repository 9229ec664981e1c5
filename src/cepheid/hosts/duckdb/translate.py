"""Expressions as DuckDB SQL, if the rules and functions of this folder can give exactly Spark's results.

Everything else is refused by name. `DuckDbEngine` evaluates lifted columns over Arrow tables, all in one query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.errors import PatternError, Problem, closest, with_noun
from cepheid.hosts.duckdb.casts import Mode, as_type, cast, read_as
from cepheid.hosts.duckdb.fragment import TIMESTAMP, Fragment, local, of_literal, widened
from cepheid.hosts.duckdb.functions.aliases import ALIASES
from cepheid.hosts.duckdb.functions.bits import BITS
from cepheid.hosts.duckdb.functions.calendar import CALENDAR
from cepheid.hosts.duckdb.functions.forgiving import FORGIVING
from cepheid.hosts.duckdb.functions.formats import FORMATS
from cepheid.hosts.duckdb.functions.function import Function
from cepheid.hosts.duckdb.functions.json_paths import get_json_object
from cepheid.hosts.duckdb.functions.nested import NESTED
from cepheid.hosts.duckdb.functions.on_spark import ON_SPARK
from cepheid.hosts.duckdb.functions.patterns import PATTERNS
from cepheid.hosts.duckdb.functions.rounding import nanvl, whole
from cepheid.hosts.duckdb.functions.strings import STRINGS
from cepheid.hosts.duckdb.functions.table import BY_NAME
from cepheid.hosts.duckdb.lists import IN_LIST, in_list
from cepheid.hosts.duckdb.operators import OPERATORS
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, guarded
from cepheid.hosts.duckdb.time_arithmetic import months
from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.lang.sql.written import is_operator, written_form
from cepheid.plan.conditions.result_types import texts_read
from cepheid.plan.conditions.types import (
    TIMESTAMP_NTZ,
    is_binary,
    is_decimal,
    is_float,
    is_integer,
    is_list,
    is_string,
    is_time,
    sql_name,
)

Resolve = Callable[[Name], Fragment]
"""The column that a name means; raises PatternError."""


def _cast(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    return cast(args[0], args[1].type, zone, Mode(call.function))


RULES: dict[str, Rule] = {
    **OPERATORS,
    **ALIASES,
    **BITS,
    **CALENDAR,
    **FORGIVING,
    **FORMATS,
    **NESTED,
    **PATTERNS,
    **STRINGS,
    **dict.fromkeys(("ceil", "ceiling", "floor"), whole),
    "nanvl": nanvl,
    "get_json_object": get_json_object,
    "interval": months,
    **dict.fromkeys(("cast", "try_cast"), _cast),
    IN_LIST: in_list,
}
_MOST_ARGUMENTS = {
    **dict.fromkeys(("abs", "negative", "isnull", "isnotnull", "map_keys", "map_values"), 1),
    **dict.fromkeys(("round", "date_trunc", "trunc", "next_day", "from_unixtime", "map_contains_key"), 2),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp", "regexp_count", "regexp_like", "regexp_substr"), 2),
    **dict.fromkeys(("regexp_extract", "regexp_extract_all", "split"), 3),
    **dict.fromkeys(("timestampadd", "timestampdiff"), 3),
}
"""For functions whose rules do not look at all arguments: how many they take."""
_OF_UNITS = {
    **dict.fromkeys(("datediff", "date_diff", "timediff"), "timestampdiff"),
    **dict.fromkeys(("dateadd", "date_add"), "timestampadd"),
}
"""Functions that with a unit as their first argument are another one."""
_SPELLED = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "INTEGER": is_integer,
    "FLOAT": arrow.is_float32,
    "FLOATING": is_float,
    "DECIMAL": is_decimal,
    "ARRAY": is_list,
}
_NO_TEXTS: dict[str, tuple[Callable[[pa.DataType], bool], pa.DataType]] = {
    "TIME": (is_time, TIMESTAMP),
    "INSTANT": (arrow.is_timestamp, TIMESTAMP),
    "DAY": (arrow.is_date32, pa.date32()),
    "COUNT": (is_integer, pa.int64()),
    "START": (is_integer, pa.int32()),
}
"""Kinds of values into which no text is converted, and the type that the function takes."""


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
    except WrongArguments as reason:
        raise PatternError(Problem(str(reason), span=call.span)) from None


def _target(arg: Expression) -> Fragment:
    assert isinstance(arg, Literal), arg
    return Fragment("", TIMESTAMP if arrow.is_timestamp(arg.type) and arg.type.tz else arg.type)


def _unknown(call: Call) -> PatternError:
    """The error for a function that is not known here. It names Spark only if Spark has the function."""
    every = dict.fromkeys((*RULES, *BY_NAME))
    here = [name for name in every if name.isidentifier() and not is_operator(name)]
    written = written_form(call.function)
    if written != call.function or call.function in ON_SPARK:
        near = closest(call.function, here) if call.function in ON_SPARK else []
        message = f"{written!r} is not available in process; it is available on Spark"
    else:
        near = closest(call.function, [*here, *ON_SPARK.difference(here)])
        message = f"no function named {call.function!r}"
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else None
    return PatternError(Problem(message, span=call.span, hint=hint))


def _apply(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    if len(args) == 3 and call.function in _OF_UNITS:
        call = replace(call, function=_OF_UNITS[call.function])
    read = texts_read(call.function, [arg.type for arg in args])
    args = [as_type(arg, read[place], zone) if place in read else arg for place, arg in enumerate(args)]
    if rule := RULES.get(call.function):
        wrong = WrongArguments(f"{written_form(call.function)!r} does not take {with_noun(len(args), 'argument')}")
        if len(args) > _MOST_ARGUMENTS.get(call.function, len(args)):
            raise wrong
        try:
            return rule(call, args, zone)
        except (IndexError, ValueError) as error:
            if isinstance(error, PatternError):
                raise
            raise wrong from error
    for take, function in product((_taken, _taken_or_cast), BY_NAME[call.function]):
        taken = [take(arg, kind, zone) for arg, kind in zip(args, function.takes, strict=False)]
        if len(args) == len(function.takes) and all(taken) and _constants_fit(function, args):
            return _filled(function, [arg for arg in taken if arg is not None])
    raise _untaken(call, args)


def _untaken(call: Call, args: Sequence[Fragment]) -> Exception:
    """The error for arguments that no way to call the function takes."""
    ways = BY_NAME[call.function]
    forms = " or ".join(f"({', '.join(way.takes)})" for way in ways)
    given = ", ".join(sql_name(arg.type) for arg in args)
    message = f"{call.function} takes {forms} in process, got ({given})"
    is_counted = len(args) in {len(way.takes) for way in ways}
    if is_counted and (notes := " ".join(way.notes for way in ways if way.constants)):
        return NotInProcess(f"{message}. {notes}".removesuffix("."))
    return WrongArguments(message)


def _taken(arg: Fragment, kind: str, zone: str) -> Fragment | None:
    """The argument as the function takes it; None if its type does not fit."""
    if kind in _KINDS:
        return arg if _KINDS[kind](arg.type) else None
    if kind in _NO_TEXTS:
        fits, type_ = _NO_TEXTS[kind]
        if kind == "INSTANT" and arg.type == TIMESTAMP_NTZ:
            return replace(arg, type=TIMESTAMP)  # Spark counts from 1970 on the clock
        return widened(arg, type_, zone) if fits(arg.type) or arrow.is_null(arg.type) else None
    if kind != "LOCAL":
        return widened(arg, _SPELLED[kind], zone)
    if arrow.is_null(arg.type):
        return widened(arg, TIMESTAMP_NTZ, zone)
    if is_time(arg.type):
        return Fragment(local(arg, zone), TIMESTAMP_NTZ, raises=arg.raises)
    return None


def _taken_or_cast(arg: Fragment, kind: str, zone: str) -> Fragment | None:
    """The same. A text that the function does not take is cast, which fails where it is no such value."""
    type_ = TIMESTAMP if kind == "LOCAL" else _SPELLED.get(kind)
    read = None if type_ is None or not is_string(arg.type) else read_as(arg, type_, zone)
    return _taken(read or arg, kind, zone)


def _constants_fit(function: Function, args: Sequence[Fragment]) -> bool:
    """Whether the arguments that must be constants are, and none of these is NULL, empty or 0."""
    return all((literal := args[i].literal) is not None and bool(literal.value) for i in function.constants)


def _filled(function: Function, args: Sequence[Fragment]) -> Fragment:
    kinds = dict(zip(function.takes, (arg.type for arg in args), strict=True))
    type_ = kinds[function.gives] if function.gives in _KINDS else _SPELLED[function.gives]
    text = function.sql.format(*(arg.text for arg in args))
    if function.is_in_order:
        return Fragment(f"({text})", type_, raises=function.fails or any(arg.raises for arg in args))
    return guarded(args, text, type_, fails=function.fails)


def is_known(type_: pa.DataType) -> bool:
    """Whether columns of the type can be used here."""
    if arrow.is_dictionary(type_) or is_list(type_):
        return is_known(type_.value_type)
    if arrow.is_map(type_):
        return is_known(type_.key_type) and is_known(type_.item_type)
    if arrow.is_struct(type_):
        return all(is_known(field.type) for field in type_)
    scalar = type_ in (*_SPELLED.values(), pa.int8(), pa.int16(), pa.float32(), pa.null())
    time = bool(arrow.is_timestamp(type_) or arrow.is_duration(type_))
    return scalar or is_string(type_) or is_binary(type_) or is_decimal(type_) or time
