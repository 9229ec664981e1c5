"""The result types of operators: Spark 4's ANSI coercion.

The rules were taken from Spark's own answers, and `tests/plan/test_result_types.py` compares them with Spark again.
What Spark accepts and these rules do not know is refused, never guessed. A string next to another value counts as that
value's type (`value_casts`). Problems have the span of the offending part; the caller adds the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Call, Expression, Literal, Span
from cepheid.lang.literals import TIMESTAMP
from cepheid.plan.conditions.script import Fold
from cepheid.plan.conditions.texts import TEXT_FUNCTIONS
from cepheid.plan.conditions.types import (
    DURATION,
    MAX_DIGITS,
    TIMESTAMP_NTZ,
    as_decimal,
    is_binary,
    is_decimal,
    is_float,
    is_integer,
    is_months,
    is_numeric,
    is_orderable,
    is_string,
    is_time,
    sql_name,
)

COMPARISONS = frozenset({"=", "<=>", "<", "<=", ">", ">=", "!="})
ARITHMETIC = frozenset({"+", "-", "*", "/", "div", "%"})
_DAY_COUNTS = (pa.int8(), pa.int16(), pa.int32())
"""The types that may be added to a date, and that count characters."""


def _literal_as_decimal(literal: Literal) -> pa.DataType:
    """The smallest decimal that holds an integer literal: Spark's type for `2` next to a decimal."""
    return pa.decimal128(len(str(abs(int(str(literal.value))))), 0)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The result type of CASE, coalesce, IN, least and greatest for values of these types; None: there is none."""
    return reduce(_wider_or_none, types[1:], types[0])


def _wider_or_none(left: pa.DataType | None, right: pa.DataType) -> pa.DataType | None:
    return None if left is None else _wider(left, right)


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if left == right or arrow.is_null(right):
        return left
    if arrow.is_null(left):
        return right
    if is_numeric(left) and is_numeric(right):
        return _wider_number(left, right)
    if is_time(left) and is_time(right):
        return _wider_time(left, right)
    if is_string(left) and is_string(right):
        return left
    if is_string(left) or is_string(right):
        return beside_text(right if is_string(left) else left)
    return left if is_binary(left) and is_binary(right) else None


def beside_text(type_: pa.DataType) -> pa.DataType | None:
    """What a text next to a value of this type is cast to; None if it is not cast. The value may be widened to it."""
    if is_integer(type_):
        return pa.int64()
    if is_numeric(type_):
        return pa.float64()
    return type_ if is_time(type_) or arrow.is_boolean(type_) else None


def _wider_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_float(left) or is_float(right):
        return pa.float64()
    if is_integer(left) and is_integer(right):
        return max(left, right, key=lambda t: t.bit_width)
    return _wider_decimal(as_decimal(left), as_decimal(right))


def _wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= MAX_DIGITS:
        return pa.decimal128(whole + scale, scale)
    # More than 38 digits: Spark keeps the whole part and reduces the scale.
    return pa.decimal128(MAX_DIGITS, max(0, scale - (whole + scale - MAX_DIGITS)))


def _wider_time(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    for type_ in (left, right):
        if arrow.is_timestamp(type_) and type_.tz:
            return type_
    return TIMESTAMP_NTZ if left != right else left


def arithmetic_type(function: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of `left function right`; None: it is refused."""
    if function == "/" and arrow.is_null(left) and is_decimal(right):
        return pa.float64()  # as in Spark, where only a NULL divisor takes the other side's type
    if arrow.is_null(left) and is_numeric(right):
        left = right
    elif arrow.is_null(right) and is_numeric(left):
        right = left
    if is_numeric(left) and is_numeric(right):
        return _number_arithmetic(function, left, right)
    if text := cast_in_arithmetic(function, left, right):
        place, type_ = text
        return arithmetic_type(function, type_ if place == 0 else left, type_ if place == 1 else right)
    if text_is_moved(function, left, right):
        return pa.string()
    return _time_arithmetic(function, left, right)


def cast_in_arithmetic(function: str, left: pa.DataType, right: pa.DataType) -> tuple[int, pa.DataType] | None:
    """The place of the operand that is a text, and the type that it is cast to; None: there is no such operand."""
    if is_string(left) == is_string(right):
        return None
    place, other = (0, right) if is_string(left) else (1, left)
    type_ = beside_text(other) if is_numeric(other) or (function == "-" and is_time(other)) else None
    return None if type_ is None else (place, type_)


def text_is_moved(function: str, left: pa.DataType, right: pa.DataType) -> bool:
    """Whether it is a time as a text that is moved by an interval: the result is a text, too."""
    if function == "+" and arrow.is_duration(left):
        left, right = right, left
    return function in ("+", "-") and is_string(left) and arrow.is_duration(right)


def _number_arithmetic(function: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    inexact = is_float(left) or is_float(right)
    if function == "div":
        return None if inexact else pa.int64()
    if function == "/" and not (is_decimal(left) or is_decimal(right)):
        return pa.float64()
    if inexact or (is_integer(left) and is_integer(right)):
        return _wider_number(left, right) if left != right else left
    return _decimal_arithmetic(function, as_decimal(left), as_decimal(right))


def _decimal_arithmetic(function: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Digits and scale of a decimal result, cut to 38 digits as Spark does (`allowPrecisionLoss`)."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match function:
        case "+" | "-":
            scale = max(s1, s2)
            return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return _adjusted(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return _adjusted(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)
        case _:
            raise AssertionError(function)


def _adjusted(precision: int, scale: int) -> pa.DataType:
    if precision <= MAX_DIGITS:
        return pa.decimal128(precision, scale)
    # As in Spark, the whole part stays, and at least six digits of the scale, if there are as many.
    return pa.decimal128(MAX_DIGITS, max(MAX_DIGITS - (precision - scale), min(scale, 6)))


def _time_arithmetic(function: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    duration_left, duration_right = arrow.is_duration(left), arrow.is_duration(right)
    if function in ("+", "-"):
        if duration_left and duration_right:
            return left
        if is_time(left) and (duration_right or is_months(right)):
            return _moved_type(left, right)
        if function == "+" and is_time(right) and (duration_left or is_months(left)):
            return _moved_type(right, left)
        if function == "-" and is_time(left) and is_time(right):
            return DURATION
        if left == pa.date32() and right in _DAY_COUNTS:
            return left
        if function == "+" and left in _DAY_COUNTS and right == pa.date32():
            return right
    if function == "*" and duration_left != duration_right:
        return DURATION if is_numeric(right if duration_left else left) else None
    if function == "/" and duration_left and is_numeric(right):
        return DURATION
    return None


def _moved_type(time: pa.DataType, length: pa.DataType) -> pa.DataType:
    """The type of a time that is moved by an interval, which is not of days alone."""
    return TIMESTAMP if time == pa.date32() and not is_months(length) else time


def fold_type(fold: Fold, type_: pa.DataType) -> pa.DataType | None:
    """The type of a pattern function over values of this type; None: it is refused."""
    match fold:
        case Fold.COUNT:
            return pa.int64()
        case Fold.DISTINCT:
            return pa.int64() if is_orderable(type_) else None
        case Fold.MIN | Fold.MAX:
            return type_ if is_orderable(type_) else None
        case Fold.SUM:
            return _sum_type(type_)
        case Fold.AVG:
            return _avg_type(type_)
        case Fold.LIST:
            return pa.list_(type_)
        case Fold.MAX_BY | Fold.MIN_BY:
            return type_
    return pa.float64() if is_numeric(type_) or arrow.is_null(type_) else None


def _sum_type(type_: pa.DataType) -> pa.DataType | None:
    """The type of the pattern function sum; None: it is refused.

    A sum of decimals has 18 digits, and fails if they do not suffice.
    """
    if is_integer(type_):
        return pa.int64()
    if is_float(type_) or arrow.is_null(type_):
        return pa.float64()
    return pa.decimal128(18, type_.scale) if is_decimal(type_) and type_.precision <= 18 else None


def _avg_type(type_: pa.DataType) -> pa.DataType | None:
    """The type of the pattern function avg; None: it is refused."""
    if is_integer(type_) or is_float(type_) or arrow.is_null(type_):
        return pa.float64()
    if is_decimal(type_) and type_.precision + 4 <= 18:
        return pa.decimal128(type_.precision + 4, type_.scale + 4)
    return None


def type_of_call(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of an operator's result, given its operands' types; `call.function` is one of `SCRIPT_FUNCTIONS`.

    Raises:
        PatternError: the operands do not fit; with the span that is wrong.
    """
    arity = _ARITIES.get(call.function, len(types))
    if len(types) != arity:
        raise _problem(f"{call.function} takes {_arguments(arity)}, got {len(types)}", call.span)
    read = texts_read(call.function, types)
    return _RULES[call.function](call, [read.get(place, type_) for place, type_ in enumerate(types)])


def texts_read(function: str, types: Sequence[pa.DataType]) -> dict[int, pa.DataType]:
    """The places of the texts that are cast because the function takes no texts, with the types that they become."""
    places = range(1) if function == "round" else range(len(types))
    if function in DIFFERENCES:
        type_, places = (pa.date32() if len(types) == 2 else TIMESTAMP), places[-2:]
    elif function in _OF_NUMBERS or (function in _LOGICAL and not _begins_with_texts(types)):
        type_ = pa.float64() if function in _OF_NUMBERS else pa.bool_()
    else:
        return {}
    return {place: type_ for place in places if is_string(types[place])}


def _begins_with_texts(types: Sequence[pa.DataType]) -> bool:
    """Whether the first two operands are texts: AND and OR of texts alone are refused."""
    return len(types) > 1 and all(map(is_string, types[:2]))


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def operand_types(call: Call, types: Sequence[pa.DataType]) -> list[pa.DataType]:
    """The operands' types. Next to a decimal, an integer literal has the smallest decimal type that holds it."""
    picked = list(types)
    if call.function in ARITHMETIC | COMPARISONS | {"between"} and any(is_decimal(t) for t in types):
        for i, (arg, type_) in enumerate(zip(call.args, types, strict=True)):
            if isinstance(arg, Literal) and is_integer(type_):
                picked[i] = _literal_as_decimal(arg)
    return picked


def _arithmetic(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    left, right = operand_types(call, types)
    result = arithmetic_type(call.function, left, right)
    if result is None:
        given = f"{sql_name(types[0])} and {sql_name(types[1])}"
        raise _problem(f"{call.function!r} cannot be applied to {given}", call.span)
    return pa.date32() if pa.date32() in types and moves_by_days(call) else result


def moves_by_days(call: Call) -> bool:
    """Whether an operand is an interval written in days and weeks alone: a DATE moved by it is a DATE."""
    return any(isinstance(arg, Literal) and arg.days for arg in call.args)


def _comparison(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    first, first_arg = types[0], call.args[0]
    for type_, arg in zip(types[1:], call.args[1:], strict=True):
        common = common_type([first, type_])
        if common is None:
            raise _problem(f"cannot compare {sql_name(first)} with {sql_name(type_)}", (first_arg.span[0], arg.span[1]))
        if call.function not in ("=", "<=>", "!=", "in") and not is_orderable(common):
            raise _problem(f"values of type {sql_name(common)} have no order", call.span)
    return pa.bool_()


def _logical(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    for type_, arg in zip(types, call.args, strict=True):
        if not (arrow.is_boolean(type_) or arrow.is_null(type_)):
            raise _problem(f"{call.function.upper()} takes BOOLEAN, this is {sql_name(type_)}", arg.span)
    return pa.bool_()


def _is_null(_: Call, __: Sequence[pa.DataType]) -> pa.DataType:
    return pa.bool_()


def _signed(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    if not (is_numeric(types[0]) or arrow.is_duration(types[0])):
        written = {"negate": "'-'", "positive": "'+'"}.get(call.function, call.function)
        raise _problem(f"{written} cannot be applied to {sql_name(types[0])}", call.args[0].span)
    return types[0]


def _cast(call: Call, _: Sequence[pa.DataType]) -> pa.DataType:
    return call.args[1].type if isinstance(call.args[1], Literal) else pa.null()


def _log(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    if len(types) not in (1, 2):
        raise _problem(f"log takes 1 or 2 arguments, got {len(types)}", call.span)
    return _numbers(call, types)


DIFFERENCES = frozenset({"datediff", "date_diff", "timestampdiff"})
_LOGICAL = frozenset({"and", "or", "not"})
_NUMBER_FUNCTIONS = """negate negative positive abs sqrt exp ln log log2 log10 power pow sign signum
    floor ceil ceiling round"""
_OF_NUMBERS = frozenset(_NUMBER_FUNCTIONS.split())
_UNITS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
_UNITS |= {"day": 86_400 * 10**6, "week": 7 * 86_400 * 10**6}


def unit_of(call: Call) -> int:
    """The microseconds of the unit of a difference."""
    unit = call.args[0]
    name = unit.value if isinstance(unit, Literal) else None
    if not isinstance(name, str) or name not in _UNITS:
        known = ", ".join(_UNITS).upper()
        raise _problem(f"across events the unit of {call.function} is one of {known}", unit.span)
    return _UNITS[name]


def _difference(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    if len(types) not in ((3,) if call.function == "timestampdiff" else (2, 3)):
        raise _problem(f"{call.function} takes two times, and before them a unit such as MINUTE", call.span)
    for type_, arg in zip(types[-2:], call.args[-2:], strict=True):
        if not is_time(type_):
            raise _problem(f"{call.function} takes dates and times, this is {sql_name(type_)}", arg.span)
    if len(types) == 2:
        return pa.int32()
    unit_of(call)
    return pa.int64()


def _numbers(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    for type_, arg in zip(types, call.args, strict=True):
        if not (is_numeric(type_) or arrow.is_null(type_)):
            raise _problem(f"{call.function} takes numbers, this is {sql_name(type_)}", arg.span)
    return pa.float64()


def _whole(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    _numbers(call, types)
    if is_decimal(types[0]):
        return _of_digits(types[0], 0) if types[0].scale else types[0]
    return pa.int64()


MOST_DIGITS = 15
"""The most digits after the point to which `round` rounds across events."""


def digits_of(call: Call) -> int:
    """The digits after the point to which `round` rounds."""
    if len(call.args) == 1:
        return 0
    digits = call.args[1]
    if not (isinstance(digits, Literal) and type(digits.value) is int and 0 <= digits.value <= MOST_DIGITS):
        message = f"across events {call.function} takes a number of digits from 0 to {MOST_DIGITS}"
        raise _problem(message, digits.span)
    return digits.value


def _round(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    if len(types) not in (1, 2):
        raise _problem(f"{call.function} takes 1 or 2 arguments, got {len(types)}", call.span)
    _numbers(call, types)
    digits = digits_of(call)
    if is_decimal(types[0]):
        return _of_digits(types[0], min(digits, types[0].scale))
    return pa.float64() if arrow.is_null(types[0]) else types[0]


def _of_digits(decimal: pa.DataType, scale: int) -> pa.DataType:
    """The decimal of so many digits after the point that holds what values are rounded to."""
    return pa.decimal128(min(decimal.precision - decimal.scale + 1 + scale, MAX_DIGITS), scale)


def _common(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    return _same(call, types, call.args)


def _extreme(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of least and greatest, which cast no text."""
    texts = [is_string(type_) for type_ in types if not arrow.is_null(type_)]
    if any(texts) and not all(texts):
        given = ", ".join(dict.fromkeys(sql_name(type_) for type_ in types))
        raise _problem(f"{call.function} needs values of one type, got {given}", call.span)
    return _common(call, types)


def _case(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    for type_, arg in zip(types[:-1:2], call.args[:-1:2], strict=True):
        if not (arrow.is_boolean(type_) or arrow.is_null(type_)):
            raise _problem(f"WHEN takes BOOLEAN, this is {sql_name(type_)}", arg.span)
    results = (*range(1, len(types) - 1, 2), len(types) - 1)
    return _same(call, [types[i] for i in results], [call.args[i] for i in results])


def _case_of(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    values = (0, *range(1, len(types) - 1, 2))
    _comparison(replace(call, args=tuple(call.args[i] for i in values)), [types[i] for i in values])
    results = (*range(2, len(types) - 1, 2), len(types) - 1)
    return _same(call, [types[i] for i in results], [call.args[i] for i in results])


def _nvl2(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    return _same(call, types[1:], call.args[1:])


def _nullif(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    _comparison(call, types)
    return types[0]


def _same(call: Call, types: Sequence[pa.DataType], args: Sequence[Expression]) -> pa.DataType:
    common = common_type(types) if types else None
    if common is None:
        given = ", ".join(dict.fromkeys(sql_name(t) for t in types))
        raise _problem(f"{call.function} needs values of one type, got {given}", (args[0].span[0], args[-1].span[1]))
    return common


def _text(call: Call, types: Sequence[pa.DataType]) -> pa.DataType:
    function = TEXT_FUNCTIONS[call.function]
    if function.any_number:
        return function.returns
    most = len(function.takes)
    if not most - function.optional <= len(types) <= most:
        counts = " or ".join(str(count) for count in range(most - function.optional, most))
        wanted = f"{counts} or {_arguments(most)}" if counts else _arguments(most)
        raise _problem(f"across events {call.function} takes {wanted}, got {len(types)}", call.span)
    for type_, wanted_type, arg in zip(types, function.takes, call.args, strict=False):
        fits = is_string(type_) if is_string(wanted_type) else type_ in _DAY_COUNTS
        if not (fits or arrow.is_null(type_)):
            given, name = sql_name(type_), sql_name(wanted_type)
            hint = f"Write CAST(… AS {name})."
            raise PatternError(Problem(f"{call.function} takes {name}, this is {given}", span=arg.span, hint=hint))
    return function.returns


_RULES: dict[str, Callable[[Call, Sequence[pa.DataType]], pa.DataType]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys((*COMPARISONS, "between", "in"), _comparison),
    "and": _logical,
    "or": _logical,
    "not": _logical,
    "is_null": _is_null,
    "is_not_null": _is_null,
    "negate": _signed,
    "positive": _signed,
    "abs": _signed,
    "cast": _cast,
    "case": _case,
    "case_of": _case_of,
    "if": _case,
    "coalesce": _common,
    "nvl": _common,
    "ifnull": _common,
    "least": _extreme,
    "greatest": _extreme,
    "nullif": _nullif,
    "nvl2": _nvl2,
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "log2", "power", "pow"), _numbers),
    "log": _log,
    **dict.fromkeys(TEXT_FUNCTIONS, _text),
    **dict.fromkeys(("sign", "signum"), _numbers),
    **dict.fromkeys(("floor", "ceil", "ceiling"), _whole),
    "round": _round,
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), _difference),
}
_ARITIES = {"if": 3, "nvl2": 3, "nullif": 2, "nvl": 2, "ifnull": 2, "abs": 1, "power": 2, "pow": 2}
_ARITIES |= dict.fromkeys(("sqrt", "exp", "ln", "log10", "log2", "sign", "signum", "floor", "ceil", "ceiling"), 1)


def _problem(message: str, span: Span) -> PatternError:
    return PatternError(Problem(message, span=span))
