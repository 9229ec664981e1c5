"""Terms of the knowledge → the values that columns of events have where they mean these terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.knowledge.events.literals import datatype_of, is_text, literals, texts
from cepheid.knowledge.events.mapping import Individual
from cepheid.knowledge.events.names import Template, TemplatePart, encoded, is_template
from cepheid.knowledge.events.written import divisions, written_names
from cepheid.knowledge.filters.solving import is_equal
from cepheid.knowledge.filters.values import Duration, Moment, NoValue, value_of
from cepheid.knowledge.terms import Iri, Literal, Term
from cepheid.plan.conditions.types import is_integer, is_string

_MOST_DIGITS = 20
"""The most digits of an integer of 64 bits."""
Cells: TypeAlias = Mapping[str, Any]
"""Values of an event by column."""


def cells_of(
    source: str | Individual, terms: Sequence[Term], types: Mapping[str, pa.DataType], prefixes: Mapping[str, str]
) -> dict[Term, list[Cells]]:
    """For each term all the values of columns that mean it: as names for an individual, otherwise as a literal."""
    if isinstance(source, str):
        given = [term for term in terms if isinstance(term, Literal)]
        values = values_of(given, types[source])
        return {term: [{source: value}] for term, value in zip(given, values, strict=True) if value is not None}
    names = [term for term in terms if isinstance(term, Iri) and not term.is_made_up]
    if not is_template(source.name):
        return {name: [{source.name: text} for text in written_names(name, prefixes)] for name in names}
    return _cells_of_template(Template(source.name).whole(prefixes), names, types)


def _cells_of_template(
    parts: Sequence[TemplatePart], names: Sequence[Iri], types: Mapping[str, pa.DataType]
) -> dict[Term, list[Cells]]:
    """The values with which the template makes each name. Several columns may divide a name in several ways."""
    columns = [text for text, is_column in parts if is_column]
    divided = [(name, division) for name in names for division in divisions(name.value, parts)]
    decoded = {(column, text): None for _, division in divided for column, text in zip(columns, division, strict=True)}
    for column in dict.fromkeys(columns):
        some = [text for name, text in decoded if name == column]
        for text, value in zip(some, _decoded(some, types[column]), strict=True):
            decoded[column, text] = value
    found: dict[Term, list[Cells]] = {}
    for name, division in divided:
        cells = joined({column: decoded[column, text]} for column, text in zip(columns, division, strict=True))
        if cells is not None and None not in cells.values():
            found.setdefault(name, []).append(cells)
    return found


def joined(several: Iterator[Cells]) -> Cells | None:
    """The values together; None if they differ in a column."""
    found: dict[str, Any] = {}
    for cells in several:
        for column, value in cells.items():
            if found.setdefault(column, value) != value:
                return None
    return found


def _decoded(parts: Sequence[str], type_: pa.DataType) -> list[Any]:
    """The values of a column whose percent-encoded texts are these parts of names; None where there is none."""
    plain = [unquote(part) for part in parts]
    if is_string(type_):
        return [one if encoded(one) == part else None for one, part in zip(plain, parts, strict=True)]
    if is_integer(type_):
        return [_integer(part, 2 ** (type_.bit_width - 1)) for part in parts]
    datatype = datatype_of(type_)
    assert datatype is not None, type_
    values = [_value(Literal(text, datatype), type_) for text in plain]
    there = [at for at, value in enumerate(values) if value is not None]
    shown = texts(pa.array([values[at] for at in there], type_)).to_pylist()
    exact = {at for at, text in zip(there, shown, strict=True) if encoded(text) == parts[at]}
    return [value if at in exact else None for at, value in enumerate(values)]


def _integer(text: str, limit: int) -> int | None:
    """The integer that is written so; None if there is none within the limit."""
    digits = text.removeprefix("-")
    value = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None
    return value if value is not None and str(value) == text and -limit <= value < limit else None


def values_of(given: Sequence[Literal], type_: pa.DataType) -> list[Any]:
    """The values of a column of the type that are equal to these literals; None where there is none."""
    values = [_value(literal, type_) for literal in given]
    there = [at for at, value in enumerate(values) if value is not None]
    shown = literals(pa.array([values[at] for at in there], type_))
    equal = {
        at for at, literal in zip(there, shown, strict=True) if literal is not None and is_equal(given[at], literal)
    }
    return [value if at in equal else None for at, value in enumerate(values)]


def _value(literal: Literal, type_: pa.DataType) -> Any:
    """The value of a column of the type that may be equal to the literal; None if there is none."""
    try:
        value = value_of(literal)
    except NoValue:
        return None
    convert = next((convert for fits, convert in _CONVERSIONS if fits(type_)), None)
    try:
        found = None if convert is None else convert(value, type_)
        return None if found is None else pa.scalar(found, type_).as_py()
    except (pa.ArrowException, ArithmeticError, ValueError):  # out of the range of the type
        return None


def _text(value: object, type_: pa.DataType) -> str | None:  # noqa: ARG001 - as the others
    return value if isinstance(value, str) else None


def _boolean(value: object, type_: pa.DataType) -> bool | None:  # noqa: ARG001
    return value if isinstance(value, bool) else None


def _whole(value: object, type_: pa.DataType) -> int | None:  # noqa: ARG001
    return int(value) if _is_number(value) and value == int(value) else None  # type: ignore[call-overload]


def _decimal(value: object, type_: pa.DataType) -> Decimal | None:  # noqa: ARG001
    return Decimal(repr(value) if isinstance(value, float) else str(value)) if _is_number(value) else None


def _floating(value: object, type_: pa.DataType) -> float | None:  # noqa: ARG001
    return float(value) if _is_number(value) else None  # type: ignore[arg-type]


def _moment(value: object, type_: pa.DataType) -> object:
    if not isinstance(value, Moment):
        return None
    if arrow.is_date(type_):
        return value.at.date() if value.kind == "date" and not value.zoned else None
    return value.at if value.kind == "dateTime" and value.zoned == (type_.tz is not None) else None


def _duration(value: object, type_: pa.DataType) -> timedelta | None:  # noqa: ARG001
    if not isinstance(value, Duration) or value.kind != "dayTimeDuration":
        return None
    return timedelta(microseconds=int(value.amount * 1_000_000))


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)


_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], Any]], ...] = (
    (is_text, _text),
    (arrow.is_boolean, _boolean),
    (arrow.is_integer, _whole),
    (arrow.is_decimal, _decimal),
    (arrow.is_floating, _floating),
    (arrow.is_timestamp, _moment),
    (arrow.is_date, _moment),
    (arrow.is_duration, _duration),
)
