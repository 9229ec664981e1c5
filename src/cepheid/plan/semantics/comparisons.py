"""Comparisons of SWRL as SQL over columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.knowledge.filters.values import NoValue, value_of
from cepheid.knowledge.terms import Literal
from cepheid.lang.parameters import string_literal
from cepheid.plan.semantics.inert import NotLifted

_SIGNS: Mapping[str, str] = {
    "equal": "=",
    "notEqual": "!=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
Column: TypeAlias = tuple[str, pa.DataType]
"""A column as SQL, and its type."""


def compared_sql(name: str, one: Column | Literal, other: Column | Literal) -> Iterator[str]:
    """SQL of a comparison; nothing if it never holds, as the two are of different kinds.

    Raises:
        NotLifted: it has no SQL.
    """
    if name not in _SIGNS:
        raise NotLifted(f"{name} has no SQL")
    kinds = _kind(one), _kind(other)
    if kinds[0] != kinds[1] or (kinds[0] == "boolean" and _SIGNS[name] not in ("=", "!=")):
        return  # values of different kinds are not compared
    guards = [f"NOT isnan({side[0]})" for side in (one, other) if isinstance(side, tuple) and _is_floating(side[1])]
    if guards and name == "notEqual":
        raise NotLifted("notEqual of doubles has no SQL")
    yield " AND ".join([f"{_sql(one)} {_SIGNS[name]} {_sql(other)}", *guards])


def _kind(side: Column | Literal) -> str:
    if isinstance(side, Literal):
        try:
            value = value_of(side)
        except NoValue:
            return "nothing"
        known = {bool: "boolean", int: "number", Decimal: "number", str: "text"}
        if type(value) not in known or side.language is not None:
            raise NotLifted(f"the literal {side} has no SQL")
        return known[type(value)]
    type_ = side[1]
    if arrow.is_boolean(type_):
        return "boolean"
    if arrow.is_integer(type_) or arrow.is_decimal(type_) or _is_floating(type_):
        return "number"
    if arrow.is_string(type_) or arrow.is_large_string(type_) or arrow.is_string_view(type_):
        return "text"
    raise NotLifted(f"the column {side[0]} has values that are not compared in SQL")


def _is_floating(type_: pa.DataType) -> bool:
    return bool(arrow.is_floating(type_))


def _sql(side: Column | Literal) -> str:
    if isinstance(side, tuple):
        return side[0]
    value = value_of(side)
    if isinstance(value, str):
        return string_literal(value)
    return str(value).upper() if isinstance(value, bool) else f"{value:f}" if isinstance(value, Decimal) else str(value)
