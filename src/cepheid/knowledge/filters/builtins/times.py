"""Built-ins of SWRL for dates, times and durations."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import TypeVar

from cepheid.knowledge.filters.builtins.numbers import finite, numbers
from cepheid.knowledge.filters.values import Moment, Months, NoValue, Seconds, Value, moment

_T = TypeVar("_T")


def _are(kind: type[_T], values: tuple[Value, ...]) -> list[_T]:
    for value in values:
        if not isinstance(value, kind):
            raise NoValue(f"{value} is no value of {kind.__name__}")
    return [value for value in values if isinstance(value, kind)]


def _a(kind: str, value: Value) -> Moment:
    if not isinstance(value, Moment) or value.kind != kind:
        raise NoValue(f"{value} is no {kind}")
    return value


def _integers(*values: Value) -> list[int]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise NoValue(f"{value} is no integer")
    return [value for value in values if isinstance(value, int)]


def _exact(value: Value) -> Decimal:
    """The number as a decimal; a double as it is written."""
    (number,) = numbers(value)
    return Decimal(repr(finite(number))) if isinstance(number, float) else Decimal(number)


# Durations


def _day_time(days: Value, hours: Value, minutes: Value, seconds: Value) -> Seconds:
    whole = _integers(days, hours, minutes)
    return Seconds(86400 * Decimal(whole[0]) + 3600 * whole[1] + 60 * whole[2] + _exact(seconds))


def _year_month(years: Value, months: Value) -> Months:
    year, month = _integers(years, months)
    return Months(12 * year + month)


def _add_months(*values: Value) -> Months:
    return Months(sum(one.months for one in _are(Months, values)))


def _subtract_months(one: Value, other: Value) -> Months:
    left, right = _are(Months, (one, other))
    return Months(left.months - right.months)


def _multiply_months(value: Value, factor: Value) -> Months:
    (given,) = _are(Months, (value,))
    return _rounded_months(given.months * _exact(factor))


def _divide_months(value: Value, divisor: Value) -> Months:
    (given,), number = _are(Months, (value,)), _exact(divisor)
    if not number:
        raise NoValue("division by zero")
    return _rounded_months(given.months / number)


def _rounded_months(months: Decimal) -> Months:
    return Months(int((months + Decimal("0.5")).to_integral_value(ROUND_FLOOR)))


def _add_seconds(*values: Value) -> Seconds:
    return Seconds(sum((one.seconds for one in _are(Seconds, values)), Decimal(0)))


def _subtract_seconds(one: Value, other: Value) -> Seconds:
    left, right = _are(Seconds, (one, other))
    return Seconds(left.seconds - right.seconds)


def _multiply_seconds(value: Value, factor: Value) -> Seconds:
    (given,) = _are(Seconds, (value,))
    return Seconds(given.seconds * _exact(factor))


def _divide_seconds(value: Value, divisor: Value) -> Seconds:
    (given,), number = _are(Seconds, (value,)), _exact(divisor)
    if not number:
        raise NoValue("division by zero")
    return Seconds(given.seconds / number)


# Dates and times


def _zone(given: tuple[Value, ...]) -> str | None:
    if not given:
        return None
    if not isinstance(given[0], str):
        raise NoValue(f"{given[0]} is no zone")
    return given[0]


def _date(year: Value, month: Value, day: Value, *zone: Value) -> Moment:
    years, months, days = _integers(year, month, day)
    return moment("date", year=years, month=months, day=days, zone=_zone(zone))


def _time(hour: Value, minute: Value, second: Value, *zone: Value) -> Moment:
    hours, minutes = _integers(hour, minute)
    return moment("time", hour=hours, minute=minutes, second=_exact(second), zone=_zone(zone))


def _date_time(  # noqa: PLR0917 - as SWRL has it
    year: Value, month: Value, day: Value, hour: Value, minute: Value, second: Value, *zone: Value
) -> Moment:
    years, months, days, hours, minutes = _integers(year, month, day, hour, minute)
    parts = {"hour": hours, "minute": minutes, "second": _exact(second)}
    return moment("dateTime", year=years, month=months, day=days, **parts, zone=_zone(zone))


def _later(kind: str, sign: int) -> Callable[[Value, Value], Moment]:
    """A moment of this kind, and seconds or months later or earlier."""

    def by_seconds(value: Value, duration: Value) -> Moment:
        given, (length,) = _a(kind, value), _are(Seconds, (duration,))
        try:
            at = given.at + sign * timedelta(microseconds=int(length.seconds * 1_000_000))
        except OverflowError as error:
            raise NoValue("there is no such day") from error
        if kind == "date":
            at = at.replace(hour=0, minute=0, second=0, microsecond=0)
        if kind == "time":
            at = at.replace(year=2000, month=1, day=1)
        return Moment(at, kind)

    return by_seconds


def _months_later(kind: str, sign: int) -> Callable[[Value, Value], Moment]:
    def by_months(value: Value, duration: Value) -> Moment:
        given, (length,) = _a(kind, value), _are(Months, (duration,))
        year, month = divmod(12 * given.at.year + given.at.month - 1 + sign * length.months, 12)
        try:
            last = calendar.monthrange(year, month + 1)[1]
            return Moment(given.at.replace(year=year, month=month + 1, day=min(given.at.day, last)), kind)
        except (ValueError, OverflowError) as error:
            raise NoValue("there is no such day") from error

    return by_months


def _between(kind: str) -> Callable[[Value, Value], Seconds]:
    def difference(one: Value, other: Value) -> Seconds:
        left, right = _a(kind, one), _a(kind, other)
        if left.zoned != right.zoned:
            raise NoValue("one has a zone, and the other has none")
        return Seconds(Decimal((left.at - right.at) // timedelta(microseconds=1)) / 1_000_000)

    return difference


COMPUTED: Mapping[str, tuple[Callable[..., Value], int, int | None]] = {
    "dayTimeDuration": (_day_time, 4, 4),
    "yearMonthDuration": (_year_month, 2, 2),
    "date": (_date, 3, 4),
    "time": (_time, 3, 4),
    "dateTime": (_date_time, 6, 7),
    "addYearMonthDurations": (_add_months, 1, None),
    "subtractYearMonthDurations": (_subtract_months, 2, 2),
    "multiplyYearMonthDuration": (_multiply_months, 2, 2),
    "divideYearMonthDurations": (_divide_months, 2, 2),
    "addDayTimeDurations": (_add_seconds, 1, None),
    "subtractDayTimeDurations": (_subtract_seconds, 2, 2),
    "multiplyDayTimeDurations": (_multiply_seconds, 2, 2),
    "divideDayTimeDuration": (_divide_seconds, 2, 2),
    "addYearMonthDurationToDateTime": (_months_later("dateTime", 1), 2, 2),
    "subtractYearMonthDurationFromDateTime": (_months_later("dateTime", -1), 2, 2),
    "addYearMonthDurationToDate": (_months_later("date", 1), 2, 2),
    "subtractYearMonthDurationFromDate": (_months_later("date", -1), 2, 2),
    "addDayTimeDurationToDateTime": (_later("dateTime", 1), 2, 2),
    "subtractDayTimeDurationFromDateTime": (_later("dateTime", -1), 2, 2),
    "addDayTimeDurationToDate": (_later("date", 1), 2, 2),
    "subtractDayTimeDurationFromDate": (_later("date", -1), 2, 2),
    "addDayTimeDurationToTime": (_later("time", 1), 2, 2),
    "subtractDayTimeDurationFromTime": (_later("time", -1), 2, 2),
    "subtractDates": (_between("date"), 2, 2),
    "subtractTimes": (_between("time"), 2, 2),
    "subtractDateTimesYieldingDayTimeDuration": (_between("dateTime"), 2, 2),
}
