"""Deadlines by the calendar of a time zone."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.time import arrow_zone, microseconds, python_zone
from cepheid.lang.calendar import CalendarWindow

Instants: TypeAlias = npt.NDArray[np.int64]
"""Microseconds since 1970 UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAY = np.int64(86_400_000_000)
_FIRST, _LAST = (microseconds(datetime(year, 1, 2, tzinfo=UTC)) for year in (1, 9000))
_RULES_END = microseconds(datetime(2036, 12, 1, tzinfo=UTC))
"""Arrow knows no summer time after 2037."""
NO_DEADLINE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Deadlines:
    """How the deadline of a match follows from the time of its first event.

    A local time that the clock shows twice is the one with the offset of the first event, if it has one of the two
    offsets, otherwise the earlier one. One that the clock leaves out is as much later as is left out. So it is in Spark
    (`time + INTERVAL 1 MONTH`). Times outside of the years 1 to 8999 have no deadline.
    """

    window: CalendarWindow
    zone: str
    """As Arrow names it: `Europe/Berlin`, `+05:30`."""

    @staticmethod
    def of(window: CalendarWindow, zone: str) -> Deadlines:
        """In the zone with this name or offset; SchemaError if it is not known."""
        return Deadlines(window, arrow_zone(zone))


@lru_cache(maxsize=100_000)
def deadline_after(time: int, deadlines: Deadlines) -> int | None:
    """The deadline of a match that starts at `time`: the definition, in plain Python."""
    if not _FIRST <= time < _LAST:
        return None
    zone = python_zone(deadlines.zone)
    start = (_EPOCH + timedelta(microseconds=time)).astimezone(zone)
    clock = _moved(start.replace(tzinfo=None), deadlines.window)
    early, late = (clock.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    instant = _instant(early)
    twice = instant < _instant(late)  # otherwise the clock shows it once, or leaves it out
    if twice and deadlines.window.period is None and start.utcoffset() == late.utcoffset():
        instant = _instant(late)
    return instant


def _moved(clock: datetime, window: CalendarWindow) -> datetime:
    """What the clock shows at the deadline of a match that starts when it shows `clock`."""
    midnight = clock.replace(hour=0, minute=0, second=0, microsecond=0)
    match window.period:
        case None:
            return _in_months(clock, window.months)
        case "day":
            return midnight + timedelta(days=1)
        case "week":
            return midnight + timedelta(days=7 - midnight.weekday())
    months = _MONTHS[window.period]
    first = midnight.replace(day=1, month=(clock.month - 1) // months * months + 1)
    return _in_months(first, months)


def _in_months(clock: datetime, months: int) -> datetime:
    """The same time of day so many months later; in a shorter month, on its last day."""
    year, month = divmod(clock.year * 12 + clock.month - 1 + months, 12)
    return clock.replace(year=year, month=month + 1, day=min(clock.day, monthrange(year, month + 1)[1]))


def _instant(local: datetime) -> int:
    return microseconds(local.astimezone(UTC))


def deadlines_after(times: Instants, deadlines: Deadlines) -> Instants:
    """`deadline_after` of all times at once; NO_DEADLINE where that is None."""
    known = (times >= _FIRST) & (times < _LAST)
    starts = np.where(known, times, 0)
    offsets = _offsets(starts, deadlines.zone)
    clocks = _moved_all(starts + offsets, deadlines.window)
    before, after = (_offsets(clocks + days * _DAY, deadlines.zone) for days in (-1, 1))
    first, second = clocks - before, clocks - after
    is_first, is_second = (_offsets(one, deadlines.zone) == clocks - one for one in (first, second))
    takes_second = is_second & ~is_first
    if deadlines.window.period is None:
        takes_second |= is_second & (offsets == after)
    found = np.where(known, np.where(takes_second, second, first), NO_DEADLINE)
    for place in np.flatnonzero(known & (clocks >= _RULES_END)).tolist():
        found[place] = deadline_after(int(times[place]), deadlines)
    return found


def _offsets(instants: Instants, zone: str) -> Instants:
    """How far local clocks are ahead of UTC, in microseconds."""
    local = pc.local_timestamp(pa.array(instants).cast(pa.timestamp("us", zone)))
    ahead: Instants = local.cast(pa.int64()).to_numpy() - instants
    return ahead


def _moved_all(clocks: Instants, window: CalendarWindow) -> Instants:
    days, time_of_day = clocks // _DAY, clocks % _DAY
    months = days.view("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    moved: Instants
    match window.period:
        case None:
            target = months + window.months
            last = _first_days(target + 1) - _first_days(target) - 1
            moved = (_first_days(target) + np.minimum(days - _first_days(months), last)) * _DAY + time_of_day
        case "day":
            moved = (days + 1) * _DAY
        case "week":  # day 0 is a Thursday
            moved = (days - (days + 3) % 7 + 7) * _DAY
        case period:
            count = _MONTHS[period]
            moved = _first_days(months - months % count + count) * _DAY
    return moved


def _first_days(months: Instants) -> Instants:
    """The number of the first day of each month; both count from January 1970."""
    first: Instants = months.view("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first
