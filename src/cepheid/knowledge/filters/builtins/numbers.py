"""Built-ins of SWRL for numbers. Integers and decimals are exact; a double makes the result a double."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, DecimalException
from functools import reduce
from operator import add, mul, sub
from typing import Any

from cepheid.knowledge.filters.values import NoValue, Value, as_double

_EXACT = Context(prec=4000, Emax=100_000, Emin=-100_000)
"""Sums, differences and products of decimals are exact up to so many digits."""
_DIVISION = Context(prec=40)
_MOST_BITS = 100_000
"""A power with more is refused: it would take all memory."""


def numbers(*values: Value) -> list[Any]:
    """The numbers, all of the greatest of their types.

    Raises:
        NoValue: one is no number.
    """
    given = list[Any]()
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
            raise NoValue(f"{value} is no number")
        given.append(value)
    if any(isinstance(value, float) for value in given):
        return [as_double(value) for value in given]
    if any(isinstance(value, Decimal) for value in given):
        return [Decimal(value) for value in given]
    return given


def finite(value: Any) -> Any:
    """
    Raises:
        NoValue: the value is infinite, or no number.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise NoValue("the result is infinite, or no number")
    return value


def _folded(operation: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(*values: Value) -> Any:
        given = numbers(*values)
        return finite(reduce(exact if isinstance(given[0], Decimal) else operation, given))

    return apply


def _divide(one: Value, other: Value) -> Any:
    left, right = numbers(one, other)
    if not right:
        raise NoValue("division by zero")
    if isinstance(left, float):
        return finite(left / right)
    return _DIVISION.divide(Decimal(left), Decimal(right))


def _integer_divide(one: Value, other: Value) -> Any:
    left, right = numbers(one, other)
    if not right:
        raise NoValue("division by zero")
    if isinstance(left, float):
        return math.trunc(finite(left / right))
    if isinstance(left, Decimal):
        return int(_EXACT.divide_int(left, right))
    quotient = abs(left) // abs(right)
    return int(quotient if (left < 0) == (right < 0) else -quotient)


def _mod(one: Value, other: Value) -> Any:
    left, right = numbers(one, other)
    if not right:
        raise NoValue("division by zero")
    if isinstance(left, float):
        return finite(math.fmod(finite(left), right))
    if isinstance(left, Decimal):
        return _EXACT.remainder(left, right)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _pow(one: Value, other: Value) -> Any:
    base, exponent = numbers(one, other)
    if isinstance(base, int) and exponent >= 0:
        if base.bit_length() * exponent > _MOST_BITS:
            raise NoValue("the result has too many digits")
        return int(base**exponent)
    try:
        return finite(math.pow(as_double(base), as_double(exponent)))
    except (ValueError, OverflowError) as error:
        raise NoValue(str(error)) from error


def _whole(rounding: str, of_double: Callable[[float], float]) -> Callable[[Value], Any]:
    def apply(value: Value) -> Any:
        (given,) = numbers(value)
        if isinstance(given, Decimal):
            return given.to_integral_value(rounding, _EXACT)
        return finite(of_double(given)) if isinstance(given, float) else given

    return apply


def _round(value: Value) -> Any:
    """Halves are rounded towards the greater number."""
    (given,) = numbers(value)
    if isinstance(given, Decimal):
        return _EXACT.add(given, Decimal("0.5")).to_integral_value(ROUND_FLOOR, _EXACT)
    if not isinstance(given, float):
        return given
    below = math.floor(finite(given))
    return float(below + 1 if given - below >= 0.5 else below)


def _round_half_even(value: Value, precision: Value = 0) -> Any:
    (given,) = numbers(value)
    if isinstance(precision, bool) or not isinstance(precision, int) or abs(precision) > 1000:
        raise NoValue(f"{precision} is no number of digits")
    if isinstance(given, float):
        return finite(round(finite(given), precision))
    rounded = Decimal(given).quantize(Decimal(1).scaleb(-precision), ROUND_HALF_EVEN, _EXACT)
    return int(rounded) if isinstance(given, int) else rounded


def _of_doubles(function: Callable[[float], float]) -> Callable[[Value], Any]:
    def apply(value: Value) -> Any:
        (given,) = numbers(value)
        try:
            return finite(function(as_double(given)))
        except ValueError as error:
            raise NoValue(str(error)) from error

    return apply


def _sign(change: Callable[[Any], Any]) -> Callable[[Value], Any]:
    return lambda value: finite(change(numbers(value)[0]))


def guarded(function: Callable[..., Value]) -> Callable[..., Value]:
    """The same, where an error of decimals says that there is no value."""

    def apply(*values: Value) -> Value:
        try:
            return function(*values)
        except DecimalException as error:
            raise NoValue(f"there is no such decimal: {type(error).__name__}") from error

    return apply


COMPUTED: Mapping[str, tuple[Callable[..., Value], int, int | None]] = {
    "add": (_folded(add, _EXACT.add), 1, None),
    "subtract": (_folded(sub, _EXACT.subtract), 2, 2),
    "multiply": (_folded(mul, _EXACT.multiply), 1, None),
    "divide": (_divide, 2, 2),
    "integerDivide": (_integer_divide, 2, 2),
    "mod": (_mod, 2, 2),
    "pow": (_pow, 2, 2),
    "unaryPlus": (_sign(lambda value: value), 1, 1),
    "unaryMinus": (_sign(lambda value: value.copy_negate() if isinstance(value, Decimal) else -value), 1, 1),
    "abs": (_sign(lambda value: value.copy_abs() if isinstance(value, Decimal) else abs(value)), 1, 1),
    "ceiling": (_whole(ROUND_CEILING, lambda value: float(math.ceil(finite(value)))), 1, 1),
    "floor": (_whole(ROUND_FLOOR, lambda value: float(math.floor(finite(value)))), 1, 1),
    "round": (_round, 1, 1),
    "roundHalfToEven": (_round_half_even, 1, 2),
    "sin": (_of_doubles(math.sin), 1, 1),
    "cos": (_of_doubles(math.cos), 1, 1),
}
"""By name: what computes the first argument from the others, and how many of these there are at least and at most."""
