"""Operators in DuckDB's SQL with Spark's ANSI results: one function for each kind, listed in `OPERATORS`.

Each function takes the call, its translated operands and the time zone, and returns the translation. Types come from
`cepheid.plan.conditions`. Spark does not evaluate the right operand if the left one is NULL (or decides AND and OR).
Where the right one can fail, a CASE has the same effect here. `NotInProcess` is raised where results would differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.errors import PatternError, Problem
from cepheid.hosts.duckdb.casts import Mode, as_type, cast
from cepheid.hosts.duckdb.decimals import places_in, quotient, remainder, rounded, rounded_type
from cepheid.hosts.duckdb.fragment import TIMESTAMP, Fragment, bound, duckdb_type, fail
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, converted, guarded
from cepheid.hosts.duckdb.time_arithmetic import time_arithmetic
from cepheid.lang.expression import Call
from cepheid.plan.conditions.result_types import (
    cast_in_arithmetic,
    common_type,
    operand_types,
    text_is_moved,
    type_of_call,
)
from cepheid.plan.conditions.types import (
    as_decimal,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
    is_orderable,
    is_string,
    is_time,
    sql_name,
)
from cepheid.plan.used_columns import names_in

DIVISION_BY_ZERO = "division by zero"
MAX_DIGITS = 38
_NEGATED_DIGITS = 34
"""Spark rounds to this many digits when it changes the sign of a decimal."""


def _types(args: Sequence[Fragment]) -> list[pa.DataType]:
    return [arg.type for arg in args]


def _conjunction(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """AND and OR. Evaluation stops once the result is decided."""
    terms = [_boolean(call, i, arg, zone) for i, arg in enumerate(args)]
    joined = f" {call.function.upper()} ".join(term.text for term in terms)
    raises = any(term.raises for term in terms)
    if not any(term.raises for term in terms[1:]):
        return Fragment(f"({joined})", pa.bool_(), raises=raises)
    decided = "FALSE" if call.function == "and" else "TRUE"
    whens = " ".join(f"WHEN {term.text} IS {decided} THEN {decided}" for term in terms[:-1])
    return Fragment(f"(CASE {whens} ELSE {joined} END)", pa.bool_(), raises=raises)


def _boolean(call: Call, i: int, arg: Fragment, zone: str) -> Fragment:
    if not (arrow.is_boolean(arg.type) or arrow.is_null(arg.type)):
        span = call.args[i].span if i < len(call.args) else call.span
        raise PatternError(Problem(f"a BOOLEAN is needed here, this is {sql_name(arg.type)}", span=span))
    return converted(arg, pa.bool_(), zone)


def _not(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    term = _boolean(call, 0, args[0], zone)
    return Fragment(f"(NOT {term.text})", pa.bool_(), raises=term.raises)


def _null_test(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    test = "IS NULL" if call.function in ("is_null", "isnull") else "IS NOT NULL"
    return Fragment(f"({args[0].text} {test})", pa.bool_(), raises=args[0].raises)


def _comparison(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    left, right = _comparable(call, args, zone)
    if call.function == "<=>":
        text = f"({left.text} IS NOT DISTINCT FROM {right.text})"
        return Fragment(text, pa.bool_(), raises=left.raises or right.raises)
    operator = "<>" if call.function == "!=" else call.function
    return guarded((left, right), f"{left.text} {operator} {right.text}", pa.bool_())


def _comparable(call: Call, args: Sequence[Fragment], zone: str) -> list[Fragment]:
    types = operand_types(call, _types(args)) if call.args else _types(args)
    common = _common(call, types)
    if arrow.is_null(common):
        common = pa.bool_()
    if not is_orderable(common):
        raise NotInProcess(f"values of type {sql_name(common)} are not compared here")
    return [as_type(arg, common, zone) for arg in args]


def _common(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    common = common_type(types)
    if common is None:
        given = ", ".join(dict.fromkeys(sql_name(t) for t in types))
        message = f"{call.function!r} needs values of one type, got {given}"
        raise PatternError(Problem(message, span=call.span))
    if is_decimal(common) and any(is_decimal(as_decimal(t)) and as_decimal(t).scale > common.scale for t in types):
        raise NotInProcess("these decimals need more than 38 digits together")
    return common


def _between(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    value, low, high = args
    above = _comparison(Call(">=", call.args[:2], call.span), (value, low), zone)
    below = _comparison(Call("<=", (call.args[0], call.args[2]), call.span), (value, high), zone)
    return _conjunction(Call("and", (), call.span), (above, below), zone)


def _in(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    value, *options = _comparable(call, args, zone)
    if any(option.raises for option in options):  # evaluated one after the other, until one is equal
        equal = [_comparison(Call("=", (), call.span), (value, option), zone) for option in options]
        return _conjunction(Call("or", (), call.span), equal, zone)
    if value.raises and all(arg.literal is not None and arg.literal.value is not None for arg in args[1:]):
        # DuckDB makes a join of IN with many values, and then computes the value where its guard is false, too.
        text = f"list_contains([{', '.join(o.text for o in options)}], {value.text})"
        return Fragment(text, pa.bool_(), raises=True)
    return Fragment(f"({value.text} IN ({', '.join(o.text for o in options)}))", pa.bool_(), raises=value.raises)


def arithmetic(call: Call, args: Sequence[Fragment], zone: str, *, forgiving: bool = False) -> Fragment:
    """`+`, `-`, `*`, `/`, `div` and `%`; if `forgiving`, division by zero gives NULL."""
    if len(args) == 2 and (text := cast_in_arithmetic(call.function, *_types(args))) is not None:
        args = [as_type(arg, text[1], zone) if i == text[0] else arg for i, arg in enumerate(args)]
    if len(args) == 2 and text_is_moved(call.function, *_types(args)):
        return _moved_text(call, args, zone)
    if any(is_time(t) or arrow.is_duration(t) or arrow.is_interval(t) for t in _types(args)):
        return time_arithmetic(call, args, zone)
    type_ = type_of_call(call, _types(args))
    if not is_numeric(type_):
        raise NotInProcess(f"{call.function!r} of {' and '.join(map(sql_name, _types(args)))}")
    if is_decimal(type_):
        return _decimal_arithmetic(call, args, type_, zone, forgiving=forgiving)
    if call.function == "div" and any(is_decimal(arg.type) for arg in args):
        raise NotInProcess("'div' of decimals")
    left, right = (converted(arg, type_, zone) for arg in args)
    if call.function in ("/", "div", "%"):
        return _division(call.function, left, right, type_, forgiving=forgiving)
    return guarded((left, right), f"{left.text} {call.function} {right.text}", type_, fails=is_integer(type_))


def _moved_text(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """A time as a text that is moved by an interval, as a text. The time, whose SQL is long, is written once."""
    (text,) = (arg for arg in args if is_string(arg.type))
    operands = [Fragment("v", TIMESTAMP) if arg is text else arg for arg in args]
    moved = cast(time_arithmetic(call, operands, zone), pa.string(), zone, Mode.STRICT)
    return replace(moved, text=bound(as_type(text, TIMESTAMP, zone).text, moved.text))


def _division(function: str, left: Fragment, right: Fragment, type_: pa.DataType, *, forgiving: bool) -> Fragment:
    text = f"{left.text} {'//' if function == 'div' else function} {right.text}"
    return divided(function, left, right, type_, text, forgiving=forgiving)


def divided(
    function: str, left: Fragment, right: Fragment, type_: pa.DataType, text: str, *, forgiving: bool = False
) -> Fragment:
    """`text`, which divides. A divisor of 0 fails or, if `forgiving`, gives NULL."""
    cases = ""
    if not _never_zero(right):
        if not forgiving:
            cases = f" WHEN {right.text} = 0 AND {left.text} IS NOT NULL THEN {fail(DIVISION_BY_ZERO, type_)}"
        cases += f" WHEN {right.text} = 0 THEN CAST(NULL AS {duckdb_type(type_)})"
    if function == "%" and is_integer(type_) and not _never_zero(right):
        cases += f" WHEN {right.text} = -1 THEN CAST({left.text} - {left.text} AS {duckdb_type(type_)})"
    if cases:
        text = f"CASE{cases} ELSE {text} END"
    # Spark evaluates the divisor first: if it is NULL, the dividend is not evaluated.
    return guarded((right, left), text, type_, fails=not (forgiving or _never_zero(right)))


def _never_zero(divisor: Fragment) -> bool:
    literal = divisor.literal
    return literal is not None and isinstance(literal.value, int | float) and literal.value not in (0, -1)


def _decimal_arithmetic(
    call: Call, args: Sequence[Fragment], type_: pa.DataType, zone: str, *, forgiving: bool
) -> Fragment:
    types = [as_decimal(type_ if arrow.is_null(t) else t) for t in operand_types(call, _types(args))]
    left, right = (converted(arg, t, zone) for arg, t in zip(args, types, strict=True))
    if call.function in "+-*":
        _require_38_digits(call.function, types)
    match call.function:
        case "+" | "-":
            wide = [converted(side, pa.decimal128(type_.precision, type_.scale), zone) for side in (left, right)]
            text = f"{wide[0].text} {call.function} {wide[1].text}"
        case "*":
            # For two decimals of up to 18 digits DuckDB's result has 18 digits; it fails where more are needed.
            if left.type.precision <= 18 and right.type.precision <= 18:
                left = converted(left, pa.decimal128(19, left.type.scale), zone)
            text = f"{left.text} * {right.text}"
        case "/" | "%":
            exact = (quotient if call.function == "/" else remainder)(left, right, type_)
            if exact is None:
                raise NotInProcess(f"{call.function!r} of decimals with so many digits")
            return divided(call.function, left, right, type_, exact, forgiving=forgiving)
        case _:
            raise NotInProcess(f"{call.function!r} of decimals")
    return guarded((left, right), f"CAST({text} AS {duckdb_type(type_)})", type_)


def _require_38_digits(function: str, types: Sequence[pa.DataType]) -> None:
    (p1, s1), (p2, s2) = ((t.precision, t.scale) for t in types)
    digits = p1 + p2 + 1 if function == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    if digits > MAX_DIGITS:
        raise NotInProcess(f"a decimal result of {digits} digits")


def _signed(value: Fragment, zone: str) -> Fragment:
    """The operand of a sign. A NULL without a type counts as DOUBLE."""
    return converted(value, pa.float64(), zone) if arrow.is_null(value.type) else value


def _positive(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    (operand,) = args
    value = _signed(operand, zone)
    return Fragment(value.text, type_of_call(call, [value.type]), raises=value.raises)


def _sign(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    value = _signed(args[0], zone)
    if is_decimal(value.type) and value.type.precision > _NEGATED_DIGITS:
        raise NotInProcess(f"{_written(call)} of a DECIMAL of more than {_NEGATED_DIGITS} digits")
    type_ = type_of_call(replace(call, function="abs" if call.function == "abs" else "negate"), [value.type])
    text = f"abs({value.text})" if call.function == "abs" else f"(-({value.text}))"
    return Fragment(f"CAST({text} AS {duckdb_type(type_)})", type_, raises=value.raises or not _is_inexact(type_))


def _written(call: Call) -> str:
    return "'-'" if call.function == "negate" else call.function


def _is_inexact(type_: pa.DataType) -> bool:
    return is_float(type_) or is_decimal(type_)


def _round(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`round(x[, places])`: halves go away from zero."""
    if not (is_numeric(args[0].type) or arrow.is_null(args[0].type)):
        raise WrongArguments(f"round takes a number, got {sql_name(args[0].type)}")
    if any(name for places in call.args[1:] for name in names_in(places)):
        raise WrongArguments("round takes a constant number of places, as in round(x, 2)")
    places = places_in(args, zone)
    if places is None:
        raise NotInProcess("round to a number of places that is not a constant from 0")
    value = Fragment("CAST(NULL AS DOUBLE)", pa.float64()) if arrow.is_null(args[0].type) else args[0]
    type_ = rounded_type(value.type, places)
    if type_ is None:
        raise NotInProcess(f"round of {sql_name(value.type)} to {places} places")
    return Fragment(rounded(value, places, type_), type_, raises=value.raises)


def _case(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    if len(args) < 3 or len(args) % 2 == 0:
        raise WrongArguments(f"{call.function} takes a condition and two values, got {len(args)} arguments")
    if call.function == "case" and any(arrow.is_null(arg.type) for arg in args[:-1:2]):
        raise WrongArguments("WHEN takes BOOLEAN, this is NULL")
    conditions = [_boolean(call, 2 * i, arg, zone) for i, arg in enumerate(args[:-1:2])]
    results = _alike(call, [*args[1:-1:2], args[-1]], zone)
    whens = zip(conditions, results, strict=False)
    text = " ".join(f"WHEN {condition.text} THEN {result.text}" for condition, result in whens)
    raises = any(arg.raises for arg in (*conditions, *results))
    return Fragment(f"CASE {text} ELSE {results[-1].text} END", results[-1].type, raises=raises)


def _case_of(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """CASE value WHEN …: a CASE over equalities."""
    value, *rest = args
    equal = [_comparison(Call("=", (), call.span), (value, arg), zone) for arg in rest[:-1:2]]
    pairs = (part for pair in zip(equal, rest[1:-1:2], strict=True) for part in pair)
    return _case(Call("case", (), call.span), [*pairs, rest[-1]], zone)


def _alike(call: Call, args: Sequence[Fragment], zone: str) -> list[Fragment]:
    common = _common(call, _types(args))
    return [as_type(arg, common, zone) for arg in args]


def _coalesce(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    if call.function != "coalesce" and len(args) != 2:
        raise WrongArguments(f"{call.function} takes 2 values, got {len(args)}")
    alike = _alike(call, args, zone)
    text = f"coalesce({', '.join(arg.text for arg in alike)})"
    if any(arg.raises for arg in alike[1:]):  # DuckDB computes what is written twice first, but for what is in a CASE
        *earlier, last = (arg.text for arg in alike)
        text = f"CASE {' '.join(f'WHEN {one} IS NOT NULL THEN {one}' for one in earlier)} ELSE {last} END"
    return Fragment(text, alike[0].type, raises=any(arg.raises for arg in alike))


def _extreme(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    type_of_call(call, _types(args))  # unlike others, it casts no text
    alike = _alike(call, args, zone)
    if len(args) < 2 or not is_orderable(alike[0].type):
        raise NotInProcess(f"{call.function} takes two or more values that have an order")
    text = f"{call.function}({', '.join(arg.text for arg in alike)})"
    if is_float(alike[0].type):  # DuckDB makes 0.0 of -0.0; Spark gives the first of equal values
        zeros = " ".join(f"WHEN {arg.text} = 0 THEN {arg.text}" for arg in alike)
        text = bound(text, f"CASE WHEN v = 0 THEN CASE {zeros} END ELSE v END")
    return Fragment(text, alike[0].type, raises=any(arg.raises for arg in alike))


def _nullif(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    equal = _comparison(Call("=", call.args, call.span), args, zone)
    text = f"CASE WHEN {equal.text} THEN CAST(NULL AS {duckdb_type(args[0].type)}) ELSE {args[0].text} END"
    return Fragment(text, args[0].type, raises=equal.raises)


def _nvl2(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    if len(args) != 3:
        raise WrongArguments(f"nvl2 takes 3 values, got {len(args)}")
    known = _null_test(Call("is_not_null", (), call.span), args[:1], zone)
    return _case(Call("case", (), call.span), (known, *args[1:]), zone)


OPERATORS: dict[str, Rule] = {
    "and": _conjunction,
    "or": _conjunction,
    "not": _not,
    "is_null": _null_test,
    "is_not_null": _null_test,
    "isnull": _null_test,
    "isnotnull": _null_test,
    **dict.fromkeys(("=", "<=>", "<", "<=", ">", ">=", "!="), _comparison),
    "between": _between,
    "in": _in,
    **dict.fromkeys(("+", "-", "*", "/", "div", "%"), arithmetic),
    **dict.fromkeys(("negate", "negative"), _sign),
    "abs": _sign,
    "positive": _positive,
    "round": _round,
    "case": _case,
    "case_of": _case_of,
    "if": _case,
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "greatest": _extreme,
    "least": _extreme,
}
"""Operators, and functions whose type follows from the types of their arguments."""
