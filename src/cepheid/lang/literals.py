"""Constants as Spark reads them: the text of a number, string, date, timestamp or interval → its value and type."""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", "UTC")
"""The type of a zoned timestamp constant. Spark has one type for all zones."""

Number = int | float | Decimal

_SUFFIXED = re.compile(r"(-?)\s*(.+?)(bd|[lsydf])", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"-?(?:\d+(?:[lsy])?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:bd|[df])?)", re.IGNORECASE | re.ASCII)
_LONGEST_INTEGER = 40
"""Characters; longer ones are no integers, and Python does not read those of thousands of digits."""
_INTEGER_SUFFIXES = {"y": pa.int8(), "s": pa.int16(), "l": pa.int64()}


def read_number(text: str) -> tuple[Number, pa.DataType]:
    """The value and type of a number as written, with sign and suffix; ValueError if it is not a number, or out of its
    type's range.
    """
    text = re.sub(r"\s", "", text)
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"not a number: {text!r}")
    if match := _SUFFIXED.fullmatch(text):
        digits, suffix = match[1] + match[2], match[3].lower()
        if suffix in _INTEGER_SUFFIXES:
            return _integer(digits, _INTEGER_SUFFIXES[suffix])
        if suffix == "bd":
            return _decimal(digits)
        if suffix == "d":
            return _double(digits), pa.float64()
        return _float(digits), pa.float32()
    if "e" in text.lower():
        return _double(text), pa.float64()
    if "." in text or len(text) > _LONGEST_INTEGER:
        return _decimal(text)
    for type_ in (pa.int32(), pa.int64()):
        if _fits(int(text), type_):
            return int(text), type_
    return _decimal(text)


def _double(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is out of range for a DOUBLE, which ends at 1.7976931348623157E308")
    return value


def _float(digits: str) -> float:
    (rounded,) = struct.unpack("f", struct.pack("f", _double(digits)))
    if math.isinf(rounded):
        raise ValueError(f"{digits} is out of range for a FLOAT, which ends at 3.4028235E38")
    return float(rounded)


def _fits(value: int, type_: pa.DataType) -> bool:
    bound = 1 << (int(type_.bit_width) - 1)
    return -bound <= value < bound


def _integer(digits: str, type_: pa.DataType) -> tuple[int, pa.DataType]:
    value = int(digits)
    if not _fits(value, type_):
        raise ValueError(f"{digits} is out of range for a {type_.bit_width} bit integer")
    return value, type_


def _decimal(digits: str) -> tuple[Decimal, pa.DataType]:
    too_long = ValueError(f"{digits} has more than 38 digits, the most of a DECIMAL")
    try:
        value = Decimal(digits)
    except InvalidOperation:  # an exponent of 19 digits
        raise too_long from None
    _, all_digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise too_long
    whole_digits = len(all_digits) + exponent if value else 1
    precision = max(len(all_digits), whole_digits, -exponent)
    if precision > 38:
        raise too_long
    return (Decimal(int(value)) if exponent > 0 else value), pa.decimal128(precision, max(-exponent, 0))


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def read_string(source: str) -> str:
    """One quoted string as written, quotes and `r` prefix included."""
    if source[0] in "rR":
        return source[2:-1]
    return _ESCAPE.sub(_unescape, source[1:-1])


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if code := short or long:
        return chr(int(code, 16))
    return chr(int(octal, 8)) if octal else _ESCAPED.get(other, other)


_DATE = r"\+?(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_TIME = r"(?(3)(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)?)"  # after a whole day only
_AND_ZONE = r"(?(6) *([A-Za-z+-]\S*)?)"  # after seconds only
_TIMESTAMP = re.compile(_DATE + _TIME + _AND_ZONE, re.ASCII)
_DAY = re.compile(rf"{_DATE}(?(3)(?:[ T].*)?)", re.ASCII | re.DOTALL)
"""Spark reads no further than the day."""
_FAR = re.compile(r"(?:-\d{4,7}|\+?\d{5,7})(?:-.*)?", re.ASCII | re.DOTALL)
_OF_TODAY = re.compile(
    r"(?:now|today|tomorrow|yesterday)\b.*|\d{1,2}:.*|T\d{1,2}(?::.*)?", re.ASCII | re.DOTALL | re.IGNORECASE
)
_OF_EPOCH = re.compile(r"epoch\b.*", re.DOTALL | re.IGNORECASE)
_BLANKS = "".join(map(chr, range(33))) + "\x7f"
"""What Spark's casts trim from a text."""
_LARGEST_OFFSET = timedelta(hours=18)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)


class OnlyOnSpark(ValueError):
    """A text that Spark may read as a value, and that is not read here."""


class DependsOnDay(ValueError):
    """A text such as 'now', which Spark reads in constants: the same events would give different matches on different
    days.
    """


def read_date(text: str) -> date:
    """The day in `DATE 'text'`; ValueError if the text is not a day, or depends on the day on which it is read."""
    match = _DAY.fullmatch(text.strip(_BLANKS))
    if not match:
        raise _unread(text, "date", "'2024-12-31'", "'1970-01-01'")
    year, month, day = match.groups()
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError as error:
        raise ValueError(f"not a date: {text!r}, as {error}") from error


def read_timestamp(text: str) -> datetime:
    """The time in `TIMESTAMP 'text'`, naive if the text has no zone; ValueError if the text is not a time, or depends
    on the day on which it is read.
    """
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if not match:
        raise _unread(text, "timestamp", "'2024-12-31 23:59:59' or with a zone after it", "'1970-01-01 00:00:00Z'")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    microsecond = int((fraction or "0").ljust(6, "0")[:6])
    parts = (int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), microsecond)
    offset = _zone(zone) if zone else None
    try:
        return datetime(*parts, tzinfo=offset)
    except ValueError as error:
        raise ValueError(f"not a timestamp: {text!r}, as {error}") from error


def _unread(text: str, what: str, form: str, epoch: str) -> ValueError:
    """Why a text is not a date or timestamp here."""
    stripped = text.strip(_BLANKS)
    if _OF_TODAY.fullmatch(stripped):
        return DependsOnDay(f"{text!r} depends on the day on which it is read. Write the {what} itself, as in {form}")
    if _OF_EPOCH.fullmatch(stripped):
        return ValueError(f"not a {what}: {text!r}. Write it as {epoch}")
    if _FAR.fullmatch(stripped):
        return OnlyOnSpark(f"not a {what}: {text!r}, as years here are those from 1 to 9999")
    return ValueError(f"not a {what}: {text!r}. Write it as {form}")


def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC", "GMT"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        length = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if length > _LARGEST_OFFSET:
            raise ValueError(f"unknown time zone: {name!r}, as offsets end at 18:00")
        return timezone(-length if match[1] == "-" else length)
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise OnlyOnSpark(f"unknown time zone: {name!r}. Write an offset, such as +01:00") from error


_UNIT_MICROSECONDS = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_UNIT_ORDER = ("day", "hour", "minute", "second")
_MONTH_UNITS = ("month", "year")
_MOST_OF_FRACTION = 9
"""Digits. Those after the sixth are dropped, as in Spark."""
_QUANTITY = re.compile(r"\s*([+-]?\s*\d+(?:\.\d*)?|[+-]?\s*\.\d+)\s*([A-Za-z]+)\s*")


def unit_name(word: str) -> str | None:
    """The unit of an interval that the word names, in the singular; None if it is not a unit."""
    singular = word.lower().removesuffix("s")
    return singular if singular in _UNIT_MICROSECONDS or singular in _MONTH_UNITS else None


def read_interval(text: str) -> timedelta | None:
    """The length of `3 hours 2 minutes`; None for months, whose length varies. ValueError if it is not an interval, or
    has a fraction of another unit than seconds, which Spark refuses.
    """
    total, position = 0, 0
    months = False
    while match := _QUANTITY.match(text, position):
        unit = unit_name(match[2])
        if unit is None:
            break
        months = months or unit in _MONTH_UNITS
        total += int(_amount(match[1].replace(" ", ""), unit) * _UNIT_MICROSECONDS.get(unit, 0))
        position = match.end()
    if position != len(text) or position == 0:
        raise ValueError(f"not an interval: {text!r}. Write it as in INTERVAL '3' HOUR or INTERVAL 3 hours 20 minutes")
    return None if months else _length(total, text)


def _amount(number: str, unit: str) -> Decimal:
    _, point, fraction = number.partition(".")
    if point and unit != "second":
        advice = "Write smaller units, as in INTERVAL 1 HOUR 30 MINUTES"
        raise ValueError(f"{number} {unit}s: only seconds have a fraction. {advice}")
    if len(fraction) > _MOST_OF_FRACTION:
        raise ValueError(f"{number} seconds: a fraction has {_MOST_OF_FRACTION} digits at most")
    return Decimal(number)


def _length(total: int, text: str) -> timedelta:
    return timedelta(microseconds=in_range(total, text))


def in_range(total: int, text: str) -> int:
    """The microseconds of an interval; ValueError if SQL's intervals do not reach so far."""
    if not _fits(total, pa.int64()):
        raise ValueError(f"{text} is out of range for an INTERVAL, which ends at 106,751,991 days")
    return total


def interval_fields(length: timedelta) -> str:
    """The length as `read_interval_fields` reads it from DAY TO SECOND."""
    rest, micros = divmod(abs(length) // timedelta(microseconds=1), 1_000_000)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    sign = "-" if length < timedelta(0) else ""
    return f"{sign}{days} {hours:02}:{minutes:02}:{seconds:02}" + (f".{micros:06}" if micros else "")


def read_length(text: str) -> timedelta:
    """The length that a parameter has in a file: fields as in `interval_fields`, or text as in `read_interval`."""
    if re.fullmatch(r"\s*[+-]?\d+ \d+:.*", text):
        found = read_interval_fields(text, "day", "second")
    else:
        found = read_interval(text)
    if found is None:
        raise ValueError(f"not a length of time: {text!r}, as the length of months varies")
    return found


def is_of_days(text: str) -> bool:
    """Whether the interval that `read_interval` reads is written in days and weeks alone."""
    return {unit_name(word) for word in re.findall("[A-Za-z]+", text)} in ({"day"}, {"week"}, {"day", "week"})


def read_interval_fields(text: str, first: str, last: str) -> timedelta | None:
    """The length of `INTERVAL 'text' first TO last`, such as '1 02:03:04' DAY TO SECOND; None for YEAR TO MONTH."""
    if (first, last) == ("year", "month"):
        return None
    if first not in _UNIT_ORDER or last not in _UNIT_ORDER or _UNIT_ORDER.index(first) >= _UNIT_ORDER.index(last):
        raise ValueError(f"not an interval: {first.upper()} TO {last.upper()}")
    units = _UNIT_ORDER[_UNIT_ORDER.index(first) : _UNIT_ORDER.index(last) + 1]
    pattern = {"day": r"(\d+)", "hour": r"(\d+)", "minute": r"(\d+)", "second": r"(\d+(?:\.\d+)?)"}
    separators = ["" if i == 0 else (" " if units[i - 1] == "day" else ":") for i in range(len(units))]
    fields = "".join(separator + pattern[unit] for separator, unit in zip(separators, units, strict=True))
    match = re.fullmatch(rf"\s*([+-]?){fields}\s*", text)
    if not match:
        raise ValueError(f"not an interval {first.upper()} TO {last.upper()}: {text!r}")
    amounts = zip(match.groups()[1:], units, strict=True)
    total = sum(int(Decimal(amount) * _UNIT_MICROSECONDS[unit]) for amount, unit in amounts)
    return _length(-total if match[1] == "-" else total, text)
