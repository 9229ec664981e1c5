"""Literals as values to compare and compute with, by the types of XML Schema."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, TypeAlias
from typing import Literal as OneOf

from cepheid.knowledge.terms import STRING, XSD, Literal

DurationKind: TypeAlias = OneOf["yearMonthDuration", "dayTimeDuration"]


class NoValue(Exception):
    """There is no value: a literal does not fit its type, or a built-in fails. The atom then does not hold."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of months or of seconds."""

    kind: DurationKind
    amount: Decimal
    """Months of a yearMonthDuration, seconds of a dayTimeDuration."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A dateTime, date or time, to the microsecond."""

    at: datetime
    kind: str
    """dateTime, date or time. A date is at midnight, a time on the first of January 2000."""

    @property
    def zoned(self) -> bool:
        return self.at.tzinfo is not None


Value: TypeAlias = int | Decimal | float | str | bool | Moment | Duration | Literal
"""A literal stands for itself if it has a language, or a type without a meaning here."""

_INTEGERS = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
MOST_DIGITS = 4300
"""The most digits of an integer: Python does not read or write more, as that takes quadratic time."""
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN", re.ASCII)
_ZONE = r"(?P<zone>Z|[+-]\d\d:\d\d)?"
_DATE = r"(?P<year>-?\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(\.\d+)?)"
_MOMENTS = {
    "dateTime": re.compile(f"{_DATE}T{_TIME}{_ZONE}", re.ASCII),
    "dateTimeStamp": re.compile(f"{_DATE}T{_TIME}(?P<zone>Z|[+-]\\d\\d:\\d\\d)", re.ASCII),
    "date": re.compile(_DATE + _ZONE, re.ASCII),
    "time": re.compile(_TIME + _ZONE, re.ASCII),
}
_DAY_TIME = re.compile(
    r"(?P<sign>-)?P(?!$)((?P<days>\d+)D)?(T(?=\d)((?P<hours>\d+)H)?((?P<minutes>\d+)M)?((?P<seconds>\d+(\.\d+)?)S)?)?",
    re.ASCII,
)
_YEAR_MONTH = re.compile(r"(?P<sign>-)?P(?!$)((?P<years>\d+)Y)?((?P<months>\d+)M)?", re.ASCII)
_TEXTS = {"string", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN"}


@lru_cache(maxsize=65536)
def value_of(literal: Literal) -> Value:
    """
    Raises:
        NoValue: the text does not fit the type.
    """
    if literal.datatype == STRING and literal.language is None:
        return literal.text
    kind = literal.datatype.removeprefix(XSD)
    if literal.language is not None or kind == literal.datatype:
        return literal
    text = literal.text.strip(" \t\r\n")
    if kind in _INTEGERS:
        return _integer(text, *_INTEGERS[kind])
    match kind:
        case "decimal" if _DECIMAL.fullmatch(text):
            return Decimal(text)
        case "double" | "float" if _DOUBLE.fullmatch(text):
            return float(text.replace("INF", "inf"))
        case "boolean" if text in ("true", "false", "1", "0"):
            return text in ("true", "1")
        case "dateTime" | "date" | "time" | "dateTimeStamp" if found := _MOMENTS[kind].fullmatch(text):
            return moment("dateTime" if kind == "dateTimeStamp" else kind, **found.groupdict())
        case "dayTimeDuration" if found := _DAY_TIME.fullmatch(text):
            parts = found.groupdict()
            units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
            seconds = sum((Decimal(parts[name] or 0) * unit for name, unit in units.items()), Decimal(0))
            return Duration("dayTimeDuration", -seconds if parts["sign"] else seconds)
        case "yearMonthDuration" if found := _YEAR_MONTH.fullmatch(text):
            parts = found.groupdict()
            months = 12 * _integer(parts["years"] or "0") + _integer(parts["months"] or "0")
            return Duration("yearMonthDuration", Decimal(-months if parts["sign"] else months))
    if kind in _TEXTS:
        return literal.text
    if kind in {"decimal", "double", "float", "boolean", *_MOMENTS, "dayTimeDuration", "yearMonthDuration"}:
        raise NoValue(f"{literal} is not of its type")
    return literal


def _integer(text: str, least: int | None = None, most: int | None = None) -> int:
    if not _INTEGER.fullmatch(text):
        raise NoValue(f"{text!r} is no integer")
    if len(text.lstrip("+-")) > MOST_DIGITS:
        raise NoValue(f"an integer has more than {MOST_DIGITS:,} digits")
    value = int(text)
    if (least is not None and value < least) or (most is not None and value > most):
        raise NoValue(f"{text!r} is out of the range of its type")
    return value


def moment(
    kind: str,
    *,
    year: object = 2000,
    month: object = 1,
    day: object = 1,
    hour: object = 0,
    minute: object = 0,
    second: object = 0,
    zone: str | None = None,
) -> Moment:
    """
    Raises:
        NoValue: there is no such day or time, or none that can be held: years are from 1 to 9999.
    """
    try:
        seconds = Decimal(str(second))
        if not 0 <= seconds < 60 or not 0 <= int(str(minute)) < 60:
            raise NoValue(f"there is no such time of day: {hour}:{minute}:{second}")
        midnight = (int(str(hour)), int(str(minute)), seconds) == (24, 0, Decimal(0))
        hours = 0 if midnight else int(str(hour))
        at = datetime(int(str(year)), int(str(month)), int(str(day)), hours, int(str(minute)), tzinfo=zone_of(zone))
        at += timedelta(microseconds=int(seconds * 1_000_000))
        if midnight and kind != "time":
            at += timedelta(days=1)
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise NoValue(str(error)) from error
    return Moment(at, kind)


def zone_of(text: str | None) -> timezone | None:
    """The zone of a text such as `Z` or `+02:00`.

    Raises:
        NoValue: the text is no zone.
    """
    if text is None:
        return None
    if text == "Z":
        return UTC
    found = re.fullmatch(r"([+-])(\d\d):(\d\d)", text)
    if found is None or int(found[2]) > 14 or int(found[3]) > 59 or (int(found[2]) == 14 and int(found[3])):
        raise NoValue(f"{text!r} is no zone")
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-offset if found[1] == "-" else offset)


def literal_of(value: Value) -> Literal:
    """The value as a literal.

    Raises:
        NoValue: it is an integer with too many digits.
    """
    match value:
        case Literal():
            return value
        case bool():
            return Literal(str(value).lower(), f"{XSD}boolean")
        case int():
            if abs(value) >= _TOO_GREAT:
                raise NoValue(f"an integer has more than {MOST_DIGITS:,} digits")
            return Literal(str(value), f"{XSD}integer")
        case Decimal():
            return Literal(f"{value:f}", f"{XSD}decimal")
        case float():
            return Literal(repr(value).replace("inf", "INF").replace("nan", "NaN"), f"{XSD}double")
        case str():
            return Literal(value)
        case Duration(kind, amount):
            size = f"{abs(amount):f}M" if kind == "yearMonthDuration" else f"T{abs(amount):f}S"
            return Literal(f"{'-' if amount < 0 else ''}P{size}", XSD + kind)
        case Moment(at, kind):
            return Literal(_shown(at, kind), XSD + kind)


_TOO_GREAT = 10**MOST_DIGITS


def _shown(at: datetime, kind: str) -> str:
    text = at.isoformat()
    if kind == "dateTime":
        return text
    zone = text[len(at.replace(tzinfo=None).isoformat()) :]
    return (date(at.year, at.month, at.day).isoformat() if kind == "date" else at.time().isoformat()) + zone


def compared(one: Value, other: Value) -> int | None:
    """Less than, equal to or greater than zero; None: neither, as NaN. Booleans are equal or not, without an order:
    then 1.

    Raises:
        NoValue: they cannot be compared.
    """
    (kind, left), (other_kind, right) = _of_kind(one), _of_kind(other)
    if kind != other_kind:
        raise NoValue(f"{one} and {other} cannot be compared")
    if isinstance(left, float) or isinstance(right, float):
        left, right = as_double(left), as_double(right)
        if math.isnan(left) or math.isnan(right):
            return None
    if left == right:
        return 0
    return -1 if left < right else 1


def _of_kind(value: Value) -> tuple[str, Any]:
    """The kind of values with which it can be compared, and what is compared."""
    match value:
        case Literal():
            raise NoValue(f"{value} cannot be compared")
        case bool():
            return "boolean", value
        case str():
            return "string", value
        case Moment(at, kind):
            return f"{kind}, {'zoned' if value.zoned else 'local'}", at
        case Duration(kind, amount):
            return kind, amount
        case _:
            return "number", value


def as_double(value: Decimal | float) -> float:
    """The number as a double: infinite if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
