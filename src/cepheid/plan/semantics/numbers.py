"""SWRL's built-ins for numbers as SQL: integers and decimals are exact, and a double makes the result a double."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa

from cepheid.knowledge.terms import XSD, Literal
from cepheid.plan.conditions.result_types import arithmetic_type
from cepheid.plan.conditions.types import MAX_DIGITS, is_decimal
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.values import (
    BIGINT,
    NUMBERS,
    SCRIPT_DIGITS,
    Excess,
    Kind,
    SqlValue,
    as_double,
    decimal_of,
    fits_bigint,
)

Computation = Callable[[Sequence[SqlValue]], SqlValue | None]
"""The result of a built-in; None: it fails for all values of these kinds. NotLifted: it has no SQL."""
_ZERO = Literal("0", f"{XSD}integer")
_BEYOND_PRODUCTS = 9_190_000_000_000_000_000
"""A product of doubles of at least 9.2e18 is that of integers with a product of more than this. A lesser one is that of
integers with a product in BIGINT.
"""


def _folded(operator: str) -> Computation:
    def compute(given: Sequence[SqlValue]) -> SqlValue | None:
        if not _are_numbers(given):
            return None
        if any(value.kind == "double" for value in given):
            return _double(f" {operator} ".join(map(as_double, given)), given)
        return reduce(lambda one, other: _exact(operator, one, other), given)

    return compute


def _are_numbers(given: Sequence[SqlValue]) -> bool:
    return all(value.kind in NUMBERS for value in given)


def _double(sql: str, given: Sequence[SqlValue]) -> SqlValue:
    """A double, which must be finite."""
    conditions = tuple(condition for value in given for condition in value.conditions)
    return SqlValue(f"({sql})", "double", pa.float64(), _events(given), conditions=(*conditions, f"({sql}) * 0 = 0"))


def _events(given: Sequence[SqlValue]) -> frozenset[str]:
    return frozenset[str]().union(*(value.events for value in given))


def _of_two(sql: str, one: SqlValue, other: SqlValue) -> SqlValue:
    return SqlValue(sql, "integer", pa.int64(), one.events | other.events, conditions=one.conditions + other.conditions)


def _exact(operator: str, one: SqlValue, other: SqlValue) -> SqlValue:
    if one.kind == other.kind == "integer" and fits_bigint(one) and fits_bigint(other):
        return _integer(operator, one, other)
    return _decimal(operator, one, other)


def _integer(operator: str, one: SqlValue, other: SqlValue) -> SqlValue:
    if one.excess is not None or other.excess is not None:
        raise NotLifted("a result that may exceed BIGINT is computed with")
    left, right = _bigint(one), _bigint(other)
    bounds = _bounds(operator, one.bounds, other.bounds)
    found = replace(_of_two(f"({left} {operator} {right})", one, other), bounds=bounds)
    if fits_bigint(found):
        return found
    return replace(found, bounds=BIGINT, excess=_excess(operator, one, other))


def _bigint(value: SqlValue) -> str:
    return value.sql if value.literal is not None or value.type == pa.int64() else f"CAST({value.sql} AS BIGINT)"


def _bounds(operator: str, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    compute = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[operator]
    found = [compute(left, right) for left in one for right in other]
    return min(found), max(found)


def _excess(operator: str, one: SqlValue, other: SqlValue) -> Excess:
    """When the result is outside of BIGINT, without computing it."""
    left, right = _bigint(one), _bigint(other)
    if operator == "*":
        product = f"{as_double(one)} * {as_double(other)}"
        return Excess(f"{product} >= 9.2E18", f"{product} <= -9.2E18", _BEYOND_PRODUCTS)
    least, most = BIGINT
    if operator == "+":
        above = f"({right} > 0 AND {left} > {most} - {_if(right, '>')})"
        below = f"({right} < 0 AND {left} < {least} - {_if(right, '<')})"
    else:
        above = f"({right} < 0 AND {left} > {most} + {_if(right, '<')})"
        below = f"({right} > 0 AND {left} < {least} + {_if(right, '>')})"
    return Excess(above, below, most)


def _if(sql: str, sign: str) -> str:
    """The value if it has this sign, so that it can be added to the end of BIGINT; otherwise 0."""
    return f"CASE WHEN {sql} {sign} 0 THEN {sql} ELSE 0 END"


def _decimal(operator: str, one: SqlValue, other: SqlValue) -> SqlValue:
    if one.excess is not None or other.excess is not None:
        raise NotLifted("a result that may exceed BIGINT is computed with")
    types = [decimal_of(value) for value in (one, other)]
    if operator == "*":
        digits = types[0].precision + types[1].precision + 1
    else:
        scale = max(type_.scale for type_ in types)
        digits = max(type_.precision - type_.scale for type_ in types) + scale + 1
    several = len(one.events | other.events) > 1
    # Spark takes any decimal of 38 digits for one that may overflow.
    if digits > (SCRIPT_DIGITS if several else MAX_DIGITS - 1):
        raise NotLifted(f"a decimal result has {digits} digits")
    type_ = arithmetic_type(operator, *types)
    sides = [
        value.sql
        if is_decimal(value.type) or value.literal is not None
        else f"CAST({value.sql} AS DECIMAL({own.precision}, 0))"
        for value, own in zip((one, other), types, strict=True)
    ]
    kind: Kind = "integer" if one.kind == other.kind == "integer" else "decimal"
    bounds = _bounds(operator, one.bounds, other.bounds) if kind == "integer" else BIGINT
    found = _of_two(f"({sides[0]} {operator} {sides[1]})", one, other)
    return replace(found, kind=kind, type=type_, bounds=bounds)


def _divided(given: Sequence[SqlValue]) -> SqlValue | None:
    if not _are_numbers(given):
        return None
    if not any(value.kind == "double" for value in given):
        raise NotLifted("a quotient of exact numbers has more digits than SQL's")
    one, other = map(as_double, given)
    return _double(f"{one} / nullif({other}, 0E0)", given)


def _integer_division(operator: str) -> Computation:
    """The quotient or the remainder of integers, cut towards 0."""

    def compute(given: Sequence[SqlValue]) -> SqlValue | None:
        if not _are_numbers(given):
            return None
        one, other = given
        if not all(fits_bigint(value) and value.excess is None for value in given):
            raise NotLifted("numbers that are no integers of BIGINT are divided")
        if one.bounds[0] == BIGINT[0] and other.bounds[0] <= -1 <= other.bounds[1]:
            raise NotLifted("the quotient may exceed BIGINT")
        divisor, most = _bigint(other), max(map(abs, one.bounds))
        found = replace(_of_two("", one, other), bounds=(-most, most) if most <= BIGINT[1] else BIGINT)
        if other.literal is None:
            divisor, found = f"nullif({divisor}, 0)", replace(found, conditions=(*found.conditions, f"{divisor} != 0"))
        elif other.bounds == (0, 0):
            return None
        return replace(found, sql=f"({_bigint(one)} {operator} {divisor})")

    return compute


def _negated(given: Sequence[SqlValue]) -> SqlValue | None:
    if given[0].kind == "integer":
        return _exact("-", SqlValue("0", "integer", pa.int64(), bounds=(0, 0), literal=_ZERO), given[0])
    return _signed(given[0], lambda sql: f"(-{sql})")


def _absolute(given: Sequence[SqlValue]) -> SqlValue | None:
    value = given[0]
    if value.kind != "integer" or is_decimal(value.type):
        return _signed(value, lambda sql: f"abs({sql})")
    if value.excess is not None:
        raise NotLifted("a result that may exceed BIGINT is computed with")
    sql, most = _bigint(value), max(map(abs, value.bounds))
    found = replace(value, sql=f"abs({sql})", type=pa.int64(), bounds=(0, min(most, BIGINT[1])))
    # Only the least BIGINT has no opposite.
    return found if most <= BIGINT[1] else replace(found, excess=Excess(f"{sql} < -{most - 1}", "FALSE", most - 1))


def _signed(value: SqlValue, change: Callable[[str], str]) -> SqlValue | None:
    if value.kind == "double":
        return _double(change(as_double(value)), [value])
    if value.kind not in NUMBERS:
        return None
    if value.type.precision == MAX_DIGITS:
        raise NotLifted(f"a decimal result has {MAX_DIGITS} digits")
    most = max(map(abs, value.bounds))
    return replace(value, sql=change(value.sql), bounds=(-most, most), literal=None)


def _whole(given: Sequence[SqlValue]) -> SqlValue | None:
    """Integers rounded are themselves."""
    if not _are_numbers(given):
        return None
    if given[0].kind != "integer":
        raise NotLifted("numbers that are no integers are rounded")
    return given[0]


def _same(given: Sequence[SqlValue]) -> SqlValue | None:
    if given[0].kind == "double":
        return _double(as_double(given[0]), given)
    return given[0] if _are_numbers(given) else None


COMPUTED: Mapping[str, Computation] = {
    "add": _folded("+"),
    "subtract": _folded("-"),
    "multiply": _folded("*"),
    "divide": _divided,
    "integerDivide": _integer_division("div"),
    "mod": _integer_division("%"),
    "unaryPlus": _same,
    "unaryMinus": _negated,
    "abs": _absolute,
    "floor": _whole,
    "ceiling": _whole,
    "round": _whole,
}
"""By name: what computes the first argument from the others."""
