"""Columns of events → literals, and texts for names. Each distinct value of a column is converted once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from cepheid.knowledge.events.mapping import Reading
from cepheid.knowledge.terms import STRING, XSD, Literal

_T = TypeVar("_T")

_ENDING_ZEROS = re.compile(r"\.?0+$")


class Elements(NamedTuple):
    """The values of a column, one for each event; of a column of arrays one for each element."""

    values: pa.Array
    events: list[int] | None
    """The number of each value's event; None: each event has one value."""


def elements(column: pa.Array) -> Elements:
    """The values of a column of events."""
    if not is_array(column.type):
        return Elements(column, None)
    return Elements(column.flatten(), pc.list_parent_indices(column).to_numpy().tolist())


def is_array(type_: pa.DataType) -> bool:
    return bool(arrow.is_list(type_) or arrow.is_large_list(type_))


def is_text(type_: pa.DataType) -> bool:
    """Whether values of the type are texts, or all are NULL."""
    return bool(
        arrow.is_string(type_) or arrow.is_large_string(type_) or arrow.is_string_view(type_) or arrow.is_null(type_)
    )


def fits(type_: pa.DataType, reading: Reading) -> bool:
    """Whether a column of the type can be read so."""
    if is_array(type_):
        type_, single = type_.value_type, {Reading.TEXTS: Reading.TEXT, Reading.VALUES: Reading.VALUE}.get(reading)
        return single is not None and not is_array(type_) and fits(type_, single)
    return is_text(type_) if reading in (Reading.TEXT, Reading.TEXTS) else datatype_of(type_) is not None


def literals(values: pa.Array) -> list[Literal | None]:
    """The literals of the values; None for NULL."""
    if is_text(values.type):
        return of_distinct(values, lambda distinct: [Literal(text) for text in distinct.to_pylist()])
    datatype = datatype_of(values.type)
    assert datatype is not None, values.type
    return of_distinct(values, lambda distinct: [Literal(text, datatype) for text in texts(distinct)])


def texts(values: pa.Array) -> list[str]:
    """The texts that the literals of values have, of which none is NULL: the canonical ones of XML Schema. Times with a
    zone are in UTC.
    """
    type_ = values.type
    if is_text(type_):
        return list(values.to_pylist())
    if arrow.is_decimal(type_):
        return [_decimal(f"{value:f}") for value in values.to_pylist()]
    if arrow.is_floating(type_):
        return [_double(value) for value in values.to_pylist()]
    if arrow.is_timestamp(type_):
        shown = (
            values.cast(pa.timestamp(type_.unit)).cast(pa.string()).to_pylist()
        )  # times with a zone are stored in UTC
        return [_time(text) + ("Z" if type_.tz else "") for text in shown]
    if arrow.is_duration(type_):
        microseconds = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return [_duration(value) for value in microseconds.to_pylist()]
    return list(values.cast(pa.string()).to_pylist())


def of_distinct(values: pa.Array, converted: Callable[[pa.Array], Sequence[_T]]) -> list[_T | None]:
    """The results for all values, from those for the distinct ones; None for NULL."""
    if arrow.is_null(values.type):
        return [None] * len(values)
    if arrow.is_string_view(values.type):
        values = values.cast(pa.large_string())
    coded = values.dictionary_encode()
    results = [*converted(coded.dictionary), None]
    return [results[code] for code in coded.indices.fill_null(len(results) - 1).to_numpy().tolist()]


def datatype_of(type_: pa.DataType) -> str | None:
    """The type of literals, as XML Schema names it; None if there is none."""
    if is_text(type_):
        return STRING
    if arrow.is_boolean(type_):
        return f"{XSD}boolean"
    if arrow.is_integer(type_):
        return f"{XSD}integer"
    if arrow.is_decimal(type_):
        return f"{XSD}decimal"
    if arrow.is_floating(type_):
        return f"{XSD}double"
    if arrow.is_timestamp(type_):
        return f"{XSD}dateTime"
    if arrow.is_date(type_):
        return f"{XSD}date"
    return f"{XSD}dayTimeDuration" if arrow.is_duration(type_) else None


def _decimal(text: str) -> str:
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def _double(value: float) -> str:
    if value != value:  # noqa: PLR0124 - as NaN does
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    digits, _, exponent = f"{value!r}".partition("e")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    if not significant:
        return f"{sign}0.0E0"
    power = len(whole) - 1 - (len(whole + fraction) - len(significant)) + int(exponent or 0)
    return f"{sign}{significant[0]}.{significant[1:].rstrip('0') or '0'}E{power}"


def _time(text: str) -> str:
    day, _, time = text.partition(" ")
    return f"{day}T{_ENDING_ZEROS.sub('', time) if '.' in time else time}"


def _duration(microseconds: int) -> str:
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    exact = f"{seconds}.{fraction:06}".rstrip("0") if fraction else str(seconds)
    parts = [(hours, f"{hours}H"), (minutes, f"{minutes}M"), (seconds or fraction, f"{exact}S")]
    time = "".join(text for size, text in parts if size)
    shown = (f"{days}D" if days else "") + (f"T{time}" if time else "")
    return f"{'-' if microseconds < 0 else ''}P{shown or 'T0S'}"
