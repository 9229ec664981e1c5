"""Columns of events → literals, and texts for names. Each distinct value of a column is converted once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from cepheid.knowledge.events.coded import NOTHING, Coded, Numbers
from cepheid.knowledge.events.mapping import Reading
from cepheid.knowledge.terms import STRING, XSD, Literal, literal_text, term_of


class Elements(NamedTuple):
    """The values of a column, one for each event; of a column of arrays one for each element."""

    values: pa.Array
    events: Numbers | None
    """The number of each value's event, ascending; None: each event has one value."""


def elements(column: pa.Array) -> Elements:
    """The values of a column of events."""
    if not is_array(column.type):
        return Elements(column, None)
    return Elements(column.flatten(), pc.list_parent_indices(column).to_numpy())


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
    codes, found = literal_terms(values)
    known = [*map(term_of, found), None]
    return [known[code] for code in codes.tolist()]


def literal_terms(values: pa.Array) -> Coded:
    """The same as terms of events."""
    datatype = datatype_of(values.type)
    assert datatype is not None, values.type
    before = literal_text(datatype)
    return of_distinct(values, lambda distinct: joined(before, texts(distinct)))


def texts(values: pa.Array) -> pa.Array:
    """The texts that the literals of values have, of which none is NULL: the canonical ones of XML Schema. Times with a
    zone are in UTC.
    """
    type_ = values.type
    if is_text(type_):
        return values
    if arrow.is_decimal(type_):
        return pa.array([_decimal(f"{value:f}") for value in values.to_pylist()], pa.string())
    if arrow.is_floating(type_):
        return pa.array([*map(_double, values.to_pylist())], pa.string())
    if arrow.is_timestamp(type_):
        return _times(values)
    if arrow.is_duration(type_):
        microseconds = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return pa.array([*map(_duration, microseconds.to_pylist())], pa.string())
    return values.cast(pa.string())


def joined(*parts: str | pa.Array) -> pa.Array:
    """The texts one after the other; a text that is given once is the same for all."""
    return pc.binary_join_element_wise(*(pa.scalar(one) if isinstance(one, str) else one for one in parts), "")


def of_distinct(values: pa.Array, converted: Callable[[pa.Array], pa.Array | Sequence[str | None]]) -> Coded:
    """The terms of values, whose texts are converted from the distinct values; NULL and None have none."""
    if arrow.is_null(values.type):
        return Coded(np.full(len(values), NOTHING, np.int32), ())
    if arrow.is_string_view(values.type):
        values = values.cast(pa.large_string())
    encoded = values.dictionary_encode()
    made = converted(encoded.dictionary)
    found: Sequence[str | None] = made.to_pylist() if isinstance(made, pa.Array) else made
    codes: npt.NDArray[np.int32] = encoded.indices.fill_null(NOTHING).to_numpy()
    known = [text for text in found if text is not None]
    if len(known) < len(found):
        is_known = np.array([text is not None for text in found])
        places = np.where(is_known, np.cumsum(is_known) - 1, NOTHING)
        codes = np.append(places, NOTHING).astype(np.int32)[codes]
    return Coded(codes, known)


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


def _times(values: pa.Array) -> pa.Array:
    shown = values.cast(pa.timestamp(values.type.unit)).cast(pa.string())  # times with a zone are stored in UTC
    if values.type.unit != "s":  # others have a fraction
        shown = pc.utf8_rtrim(pc.utf8_rtrim(shown, "0"), ".")
    return joined(pc.replace_substring(shown, " ", "T"), "Z" if values.type.tz else "")


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
