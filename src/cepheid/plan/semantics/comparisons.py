"""Comparisons of SWRL as SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyarrow import types as arrow

from cepheid.knowledge.filters.values import Duration, value_of
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.values import (
    BIGINT,
    MICROSECONDS,
    NUMBERS,
    Excess,
    SqlValue,
    as_double,
    check_decimals,
    fits_bigint,
)

SIGNS: Mapping[str, str] = {
    "equal": "=",
    "notEqual": "!=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
_SWAPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared_sql(name: str, one: SqlValue, other: SqlValue) -> Iterator[str]:
    """SQL of a comparison of two values, whose own conditions are true; nothing if it never holds, as the two are of
    different kinds.

    Raises:
        NotLifted: it has no SQL.
    """
    sign, kinds = SIGNS[name], {one.kind, other.kind}
    if not (len(kinds) == 1 or kinds <= {*NUMBERS}) or (kinds == {"boolean"} and sign not in ("=", "!=")):
        return
    _check_types(one, other)
    yield _sql(sign, one, other)


def _sql(sign: str, one: SqlValue, other: SqlValue) -> str:
    if "double" in (one.kind, other.kind):
        return _doubles(sign, one, other)
    if one.kind in NUMBERS:
        return _exact(sign, one, other)
    if one.kind in ("zoned", "duration") and one.type != other.type and MICROSECONDS in (one.type, other.type):
        return f"{_microseconds(one)} {sign} {_microseconds(other)}"
    return f"{one.sql} {sign} {other.sql}"


def _check_types(one: SqlValue, other: SqlValue) -> None:
    """Raises NotLifted if a condition on several events cannot hold one of the types."""
    if len(one.events | other.events) < 2:
        return
    for type_ in (one.type, other.type):
        if (arrow.is_timestamp(type_) or arrow.is_duration(type_)) and type_.unit != "us":
            raise NotLifted("times of several events that are not in microseconds are compared")


# Numbers


def _doubles(sign: str, one: SqlValue, other: SqlValue) -> str:
    """In SQL NaN equals itself and is the greatest number; in SWRL it equals nothing, and has no place."""
    left, right = as_double(one), as_double(other)
    plain = f"{left} {sign} {right}"
    may_be_nan = [sql for value, sql in ((one, left), (other, right)) if value.kind == "double" and not value.literal]
    if sign == "!=":
        return f"({' OR '.join([plain, *(f'NOT {not_nan(sql)}' for sql in may_be_nan)])})" if may_be_nan else plain
    # The other side is then no NaN either, or less than NaN.
    wrong = {"=": may_be_nan[:1] if len(may_be_nan) == 2 else [], "<": [right], "<=": [right]}.get(sign, [left])
    return " AND ".join([*(not_nan(sql) for sql in wrong if sql in may_be_nan), plain])


def not_nan(sql: str) -> str:
    """SQL that is false for NaN. isnan is no function of conditions on several events."""
    return f"({sql} <= 0 OR -{sql} <= 0)"


def _exact(sign: str, one: SqlValue, other: SqlValue) -> str:
    if one.excess is not None:
        return _beyond(sign, one, one.excess, other)
    if other.excess is not None:
        return _beyond(_SWAPPED[sign], other, other.excess, one)
    if one.kind == other.kind == "integer" and (found := _by_bounds(sign, one, other)) is not None:
        return found
    check_decimals(one, other)
    return f"{one.sql} {sign} {other.sql}"


def _by_bounds(sign: str, one: SqlValue, other: SqlValue) -> str | None:
    """The SQL if one of two integers is a constant outside of BIGINT, and so of what the other may be."""
    if fits_bigint(one) and fits_bigint(other):
        return None
    (low, high), (least, most) = one.bounds, other.bounds
    if low <= most and least <= high:
        return None
    true = (">", ">=", "!=") if low > most else ("<", "<=", "!=")
    known = one.sql if one.literal is None else other.sql
    return f"{known} IS NOT NULL" if sign in true else "FALSE"


def _beyond(sign: str, one: SqlValue, excess: Excess, other: SqlValue) -> str:
    """The comparison of an integer that may be outside of BIGINT."""
    low, high = other.bounds
    if other.excess is not None or not fits_bigint(other) or not (-excess.beyond <= low <= high <= excess.beyond):
        raise NotLifted("integers that may exceed BIGINT are compared")
    above, below = (str(found).upper() for found in (sign in ("!=", ">", ">="), sign in ("!=", "<", "<=")))
    plain = f"{one.sql} {sign} {other.sql}"
    return f"CASE WHEN {excess.above} THEN {above} WHEN {excess.below} THEN {below} ELSE {plain} END"


# Times


def _microseconds(value: SqlValue) -> str:
    """A time or duration as microseconds."""
    if value.type == MICROSECONDS:
        return value.sql
    if value.kind == "zoned":
        return in_microseconds(value).sql
    if value.literal is None:
        raise NotLifted("a computed duration is compared with one of a column")
    duration = value_of(value.literal)
    assert isinstance(duration, Duration)
    return str(int(duration.amount * 1_000_000))


def in_microseconds(value: SqlValue) -> SqlValue:
    """A time with a zone as microseconds since 1970."""
    assert value.kind == "zoned", value
    if value.type == MICROSECONDS:
        return value
    return SqlValue(f"unix_micros({value.sql})", "zoned", MICROSECONDS, value.events, BIGINT, value.conditions)
