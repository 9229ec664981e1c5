"""Built-ins of SWRL for dates, times and durations."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal

from cepheid.knowledge.filters.builtins.numbers import finite, numbers
from cepheid.knowledge.filters.values import Duration, DurationKind, Moment, NoValue, Value, moment

_MONTHS: DurationKind = "yearMonthDuration"
_SECONDS: DurationKind = "dayTimeDuration"


def _amounts(kind: DurationKind, values: tuple[Value, ...]) -> list[Decimal]:
    """The months or seconds of durations of this kind."""
    for value in values:
        if not isinstance(value, Duration) or value.kind != kind:
            raise NoValue(f"{value} is no {kind}")
    return [value.amount for value in values if isinstance(value, Duration)]


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


def _day_time(days: Value, hours: Value, minutes: Value, seconds: Value) -> Duration:
    whole = _integers(days, hours, minutes)
    return Duration(_SECONDS, 86400 * Decimal(whole[0]) + 3600 * whole[1] + 60 * whole[2] + _exact(seconds))


def _year_month(years: Value, months: Value) -> Duration:
    year, month = _integers(years, months)
    return Duration(_MONTHS, Decimal(12 * year + month))


def _added(kind: DurationKind) -> Callable[..., Duration]:
    return lambda *values: Duration(kind, sum(_amounts(kind, values), Decimal(0)))


def _subtracted(kind: DurationKind) -> Callable[[Value, Value], Duration]:
    def apply(one: Value, other: Value) -> Duration:
        left, right = _amounts(kind, (one, other))
        return Duration(kind, left - right)

    return apply


def _scaled(kind: DurationKind, *, divides: bool = False) -> Callable[[Value, Value], Duration]:
    """A duration multiplied or divided by a number. Months are whole: halves are rounded towards the greater number."""

    def apply(value: Value, by: Value) -> Duration:
        (amount,), number = _amounts(kind, (value,)), _exact(by)
        if divides and not number:
            raise NoValue("division by zero")
        amount = amount / number if divides else amount * number
        if kind == _MONTHS:
            amount = (amount + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
        return Duration(kind, amount)

    return apply


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
        given, (length,) = _a(kind, value), _amounts(_SECONDS, (duration,))
        try:
            at = given.at + sign * timedelta(microseconds=int(length * 1_000_000))
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
        given, (length,) = _a(kind, value), _amounts(_MONTHS, (duration,))
        year, month = divmod(12 * given.at.year + given.at.month - 1 + sign * int(length), 12)
        try:
            last = calendar.monthrange(year, month + 1)[1]
            return Moment(given.at.replace(year=year, month=month + 1, day=min(given.at.day, last)), kind)
        except (ValueError, OverflowError) as error:
            raise NoValue("there is no such day") from error

    return by_months


def _between(kind: str) -> Callable[[Value, Value], Duration]:
    def difference(one: Value, other: Value) -> Duration:
        left, right = _a(kind, one), _a(kind, other)
        if left.zoned != right.zoned:
            raise NoValue("one has a zone, and the other has none")
        return Duration(_SECONDS, Decimal((left.at - right.at) // timedelta(microseconds=1)) / 1_000_000)

    return difference


COMPUTED: Mapping[str, tuple[Callable[..., Value], int, int | None]] = {
    "dayTimeDuration": (_day_time, 4, 4),
    "yearMonthDuration": (_year_month, 2, 2),
    "date": (_date, 3, 4),
    "time": (_time, 3, 4),
    "dateTime": (_date_time, 6, 7),
    "addYearMonthDurations": (_added(_MONTHS), 1, None),
    "subtractYearMonthDurations": (_subtracted(_MONTHS), 2, 2),
    "multiplyYearMonthDuration": (_scaled(_MONTHS), 2, 2),
    "divideYearMonthDurations": (_scaled(_MONTHS, divides=True), 2, 2),
    "addDayTimeDurations": (_added(_SECONDS), 1, None),
    "subtractDayTimeDurations": (_subtracted(_SECONDS), 2, 2),
    "multiplyDayTimeDurations": (_scaled(_SECONDS), 2, 2),
    "divideDayTimeDuration": (_scaled(_SECONDS, divides=True), 2, 2),
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
