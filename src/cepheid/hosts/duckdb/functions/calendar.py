"""Parts of times, and times moved by months and days on the clock of the session's zone."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.casts import as_type, read_as
from cepheid.hosts.duckdb.fragment import TIMESTAMP, Fragment, instant, local, widened
from cepheid.hosts.duckdb.functions.units import date_trunc, trunc
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, guarded
from cepheid.hosts.duckdb.time_arithmetic import on_the_clock
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import is_string, is_time, sql_name

_PARTS: dict[str, str] = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year(v)"),
    **dict.fromkeys(("yearofweek",), "isoyear(v)"),
    **dict.fromkeys(("quarter", "qtr"), "quarter(v)"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month(v)"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear(v)"),
    **dict.fromkeys(("day", "d", "days"), "day(v)"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek(v) + 1"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "isodow(v)"),
    "doy": "dayofyear(v)",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour(v)"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute(v)"),
}
_FIELDS = "YEAR, YEAROFWEEK, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DOY, HOUR, MINUTE or SECOND"
_SECONDS = ("second", "s", "sec", "seconds", "secs")
_OF_CLOCK = frozenset(("hour", "h", "hours", "hr", "hrs", "minute", "m", "min", "mins", "minutes", *_SECONDS))
_SECOND = pa.decimal128(8, 6)
_DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _extract(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`extract(field FROM time)`, `date_part('field', time)`."""
    field, time = args
    name = str(field.literal.value).lower() if field.literal and isinstance(field.literal.value, str) else ""
    if is_string(time.type):
        time = as_type(time, TIMESTAMP if name in _OF_CLOCK else pa.date32(), zone)
    if arrow.is_duration(time.type):
        raise NotInProcess(f"{call.function} from {sql_name(time.type)}")
    if not is_time(time.type) or (name not in _PARTS and name not in _SECONDS):
        advice = ". Write unix_timestamp(time)" if name == "epoch" else ""
        given = f"{name.upper() or 'another field'} of {sql_name(time.type)}"
        raise WrongArguments(f"{call.function} takes {_FIELDS} of a time, got {given}{advice}")
    clock = local(time, zone)
    if name in _SECONDS:
        text = f"CAST(CAST(microsecond({clock}) AS DECIMAL(8, 0)) * CAST('0.000001' AS DECIMAL(6, 6)) AS DECIMAL(8, 6))"
        return guarded([time], text, _SECOND)
    return guarded([time], f"CAST({_PARTS[name].replace('(v)', f'({clock})')} AS INTEGER)", pa.int32())


def _next_day(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The first day after the date that has the name."""
    day, name = read_as(args[0], pa.date32(), zone), args[1].literal
    wanted = str(name.value).lower() if name and isinstance(name.value, str) else ""
    known = [i for i, full in enumerate(_DAY_NAMES) if wanted in (full, full[:3], full[:2])]
    if day is None:
        raise WrongArguments(f"next_day takes a DATE, got {sql_name(args[0].type)}")
    if not known:
        raise NotInProcess("next_day with other than a constant name of a day in English")
    return guarded(
        [day], f"{day.text} + CAST((({known[0] + 1} - isodow({day.text}) + 6) % 7) + 1 AS INTEGER)", pa.date32()
    )


def _difference(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`timestampdiff(unit, from, to)`: the whole units between two times on the clock."""
    unit, start, end = _unit(args[0]), *(read_as(arg, TIMESTAMP, zone) for arg in args[1:])
    if start is None or end is None:
        raise WrongArguments(
            f"{call.function} takes a unit and two times, got {', '.join(sql_name(a.type) for a in args[1:])}"
        )
    first, last = local(start, zone), local(end, zone)
    if unit in _MONTHS:
        text = f"CAST({_months_between(first, last)} // {_MONTHS[unit]} AS BIGINT)"
    else:
        text = f"(epoch_us({last}) - epoch_us({first})) // {_MICROSECONDS[unit]}"
    return guarded((start, end), text, pa.int64())


def _months_between(first: str, last: str) -> str:
    """Whole months, counted as in Java: by days of 32 a month, without a day that is not over."""
    start, end = (f"CAST({clock} AS DATE)" for clock in (first, last))
    begins, ends = (f"CAST({clock} AS TIME)" for clock in (first, last))
    before = f"WHEN {end} > {start} AND {ends} < {begins} THEN {end} - 1"
    after = f"WHEN {end} < {start} AND {ends} > {begins} THEN {end} + 1"
    full = f"(CASE {before} {after} ELSE {end} END)"
    to, since = (f"((year({day}) * 12 + month({day})) * 32 + day({day}))" for day in (full, start))
    return f"(({to} - {since}) // 32)"


def _unit(arg: Fragment) -> str:
    if arg.literal is None or not isinstance(arg.literal.value, str):
        raise WrongArguments("before two times or a count and a time comes a unit such as MINUTE")
    unit = arg.literal.value
    if unit not in _MONTHS and unit not in _MICROSECONDS:
        raise NotInProcess(f"the unit {unit.upper()}")
    return unit


def _added(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`timestampadd(unit, count, time)`."""
    unit, count, time = _unit(args[0]), widened(args[1], pa.int32(), zone), _moment(args[2], zone)
    if count is None or time is None:
        raise WrongArguments(f"{call.function} takes a unit, an INT and a time")
    if unit in _MONTHS:
        moved = f"to_months(CAST({count.text} AS INTEGER) * {_MONTHS[unit]})"
    elif unit in ("day", "week"):
        moved = f"to_days(CAST({count.text} AS INTEGER) * {7 if unit == 'week' else 1})"
    else:
        text = f"{time.text} + to_microseconds(CAST({count.text} AS BIGINT) * {_MICROSECONDS[unit]})"
        return guarded((count, time), text, time.type, fails=True)
    return on_the_clock((count, time), time, moved, zone)


def _moment(time: Fragment, zone: str) -> Fragment | None:
    return time if arrow.is_timestamp(time.type) else read_as(time, TIMESTAMP, zone)


def _from_utc(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`from_utc_timestamp`, `to_utc_timestamp`: the clock of another zone, as a TIMESTAMP."""
    time, name = read_as(args[0], TIMESTAMP, zone), args[1].literal
    if time is None:
        raise WrongArguments(f"{call.function} takes a TIMESTAMP, got {sql_name(args[0].type)}")
    if name is None or not isinstance(name.value, str) or name.value not in _zones():
        raise NotInProcess(f"{call.function} with other than the constant name of a time zone")
    text = local(time, name.value) if call.function == "from_utc_timestamp" else instant(time.text, name.value)
    return guarded([time], text, TIMESTAMP)


def _zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


CALENDAR: dict[str, Rule] = {
    "date_trunc": date_trunc,
    "trunc": trunc,
    **dict.fromkeys(("extract", "date_part", "datepart"), _extract),
    "next_day": _next_day,
    "timestampdiff": _difference,
    "timestampadd": _added,
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), _from_utc),
}
