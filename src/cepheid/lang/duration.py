"""Lengths of time as users write them: a timedelta, or text such as "12 hours" or "1 minute 30 seconds"."""

from __future__ import annotations

import re
from datetime import timedelta

from cepheid.errors import PatternError, warn
from cepheid.lang.plain_value import plain_value

_UNITS = {
    "microsecond": timedelta(microseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_SHORT = {
    "us": "microsecond",
    "µs": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "min": "minute",
    "h": "hour",
    "d": "day",
}
_ALSO = {"secs": "second", "mins": "minute", "hr": "hour", "hrs": "hour"}
"""More short names that are accepted. Messages do not suggest them."""
LONGEST = timedelta(days=36_525_000)
"""100,000 years. Even this long after the last possible event time, microseconds fit in 64 bits."""
WHOLE_UNITS = {
    name: _UNITS[name] // timedelta(microseconds=1) for name in ("day", "hour", "minute", "second", "microsecond")
}
"""The units of `format_duration` in microseconds."""
WORD = "[a-zA-Z\u00b5\u03bc]+"
"""A unit, as a regular expression; micro is either the micro sign (U+00B5) or the Greek letter (U+03BC)."""
_OF_CALENDAR = re.compile(r"\d\s*(month|quarter|year)", re.IGNORECASE)
_PART = re.compile(rf"\s*(\d+)\s*({WORD})\s*")


def parse_duration(length: object, *, or_zero: bool = False) -> timedelta:
    """The length of time as a timedelta. `length` is text, or a timedelta of Python, NumPy or pandas.

    Raises:
        PatternError: `length` is not text or a timedelta, is not positive (zero is allowed with `or_zero`), is longer
            than LONGEST, or is text that is not of the form "<whole number> <unit>", repeated.
    """
    try:
        length = plain_value(length)
    except ValueError as error:
        raise PatternError(f"a length of time: {error}") from error
    if not isinstance(length, str | timedelta):
        raise PatternError(
            f"a length of time is text such as '12 hours', or a timedelta; got {type(length).__name__}: {length!r}"
        )
    duration = _parse_text(length) if isinstance(length, str) else length
    if duration < timedelta(0) or (duration == timedelta(0) and not or_zero):
        allowed = "not be negative" if or_zero else "be positive"
        raise PatternError(f"a length of time must {allowed}, got {length!r}")
    if duration > LONGEST:
        raise _too_long()
    return duration


def _too_long() -> PatternError:
    return PatternError(f"a length of time must be {LONGEST.days} days at most, which are 100,000 years")


def _parse_text(text: str) -> timedelta:
    total, position = timedelta(0), 0
    while (part := _PART.match(text, position)) and (unit := _unit(part.group(2))) is not None:
        try:
            total += int(part.group(1)) * unit
        except (OverflowError, ValueError):
            raise _too_long() from None
        position = part.end()
    if position != len(text) or not text.strip():
        of_calendar = ". Only within(…) of a pattern of stages takes months, quarters and years"
        raise PatternError(
            f"not a length of time: {text!r}. Write a whole number and a unit, as in '12 hours'; "
            f"units: {', '.join(_called(unit) for unit in _UNITS)}{of_calendar if _OF_CALENDAR.search(text) else ''}"
        )
    return total


def _unit(word: str) -> timedelta | None:
    """The length of the unit with this name: singular, plural or short, in upper or lower case; None if unknown."""
    return _UNITS.get(unit_of_word(word) or "")


def unit_of_word(word: str) -> str | None:
    """The unit that the word names, in the singular; None if it is not a unit of fixed length."""
    word = word.lower().replace("\u03bc", "\u00b5")
    unit = (_SHORT | _ALSO).get(word, word.removesuffix("s"))
    return unit if unit in _UNITS else None


def _called(unit: str) -> str:
    """The unit as messages name it, with its short names."""
    short = [word for word, named in _SHORT.items() if named == unit]
    return f"{unit}s ({', '.join(short)})" if short else f"{unit}s"


def format_duration(duration: timedelta) -> str:
    """The text that `parse_duration` reads as `duration`, in the largest units that divide it."""
    parts, rest = [], microseconds(duration)
    for name, length in WHOLE_UNITS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(parts)


def microseconds(duration: timedelta) -> int:
    """The length in microseconds."""
    return duration // timedelta(microseconds=1)


def shorter(call: str, former: timedelta | None, length: timedelta | str) -> timedelta:
    """The shorter one of two lengths, which is what FlinkCEP takes. Warns of a length without an effect, at the line
    that has called the method `call`.
    """
    duration = parse_duration(length)
    if former is None or duration <= former:
        return duration
    what = f"{call}: {format_duration(duration)} has no effect, as {format_duration(former)} was given before"
    warn(f"{what}, and the shorter length holds")
    return former
