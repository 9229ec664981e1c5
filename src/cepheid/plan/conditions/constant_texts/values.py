"""Constant texts as values of other types, read when the plan is built: `price > '100'`, `at > '2026-01-01'`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import pyarrow as pa

from cepheid.lang.expression import Constant
from cepheid.lang.literals import OnlyOnSpark, read_date, read_timestamp
from cepheid.plan.conditions.types import is_integer, sql_name

_BLANKS = r"[\x00-\x20\x7f]*"
_INTEGER = re.compile(rf"{_BLANKS}([+-]?)0*([0-9]{{1,40}}){_BLANKS}")
# For a DOUBLE, Java trims the text. To Java, 0x7f is not a space, and an F or D may follow the number.
_OF_JAVA = r"[\x00-\x20]*"
_DOUBLE = re.compile(rf"{_OF_JAVA}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?{_OF_JAVA}")
_NAN = re.compile(rf"{_OF_JAVA}(?:(?i:nan)|[+-]NaN){_OF_JAVA}")
_INFINITY = re.compile(rf"{_OF_JAVA}([+-]?)(?i:inf|infinity){_OF_JAVA}")
_HEXADECIMAL = re.compile(rf"{_OF_JAVA}[+-]?0[xX][0-9a-fA-F.]*[pP].*", re.DOTALL)
_TRUTHS = {True: ("t", "true", "y", "yes", "1"), False: ("f", "false", "n", "no", "0")}


def value_of_text(text: str, type_: pa.DataType) -> Constant:
    """What Spark's cast of a constant text to BOOLEAN, an integer, DOUBLE, DATE or a timestamp gives. A time without a
    zone is naive: where the type is zoned, it is one of the session's zone.

    Raises:
        OnlyOnSpark: only Spark may read it as a value of the type.
        ValueError: it is not a value of the type, or depends on the day on which it is read. The message says how to
            write it.
    """
    for holds, read in _READERS:
        if holds(type_):
            return read(text, type_)
    raise OnlyOnSpark(f"the text {text!r} is not read as {sql_name(type_)} here")


def _integer(text: str, type_: pa.DataType) -> int:
    match = _INTEGER.fullmatch(text)
    bound = 1 << (int(type_.bit_width) - 1)
    if match is None or not -bound <= (value := int(match[1] + match[2])) < bound:
        raise _unread(text, type_)
    return value


def _double(text: str, type_: pa.DataType) -> float:
    if match := _DOUBLE.fullmatch(text):
        return float(match[1])
    if _NAN.fullmatch(text):
        return float("nan")
    if match := _INFINITY.fullmatch(text):
        return float(f"{match[1]}inf")
    if _HEXADECIMAL.fullmatch(text):
        raise OnlyOnSpark(f"the text {text!r}, a hexadecimal number, is not read here")
    raise _unread(text, type_)


def _truth(text: str, type_: pa.DataType) -> bool:
    stripped = re.sub(rf"\A{_BLANKS}|{_BLANKS}\Z", "", text).lower()
    for truth, words in _TRUTHS.items():
        if stripped in words:
            return truth
    raise _unread(text, type_)


def _unread(text: str, type_: pa.DataType) -> ValueError:
    form = "TRUE or FALSE" if pa.types.is_boolean(type_) else "a number without quotes"
    return ValueError(f"the text {text!r} is not read as {sql_name(type_)}. Write {form}")


def _timestamp(text: str, type_: pa.DataType) -> datetime:
    moment = read_timestamp(text)
    return moment if type_.tz else moment.replace(tzinfo=None)  # Spark drops the zone of a text, too


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], Constant]], ...] = (
    (pa.types.is_date32, lambda text, _: read_date(text)),
    (pa.types.is_timestamp, _timestamp),
    (is_integer, _integer),
    (pa.types.is_float64, _double),
    (pa.types.is_boolean, _truth),
)
