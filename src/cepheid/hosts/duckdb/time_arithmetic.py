"""`+` and `-` of times and intervals, and times moved on the clock of the session's zone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import TIMESTAMP, UTC_NAMES, Fragment, instant, local
from cepheid.hosts.duckdb.rule import NotInProcess, converted, guarded
from cepheid.lang.expression import Call, Literal
from cepheid.plan.conditions.result_types import type_of_call
from cepheid.plan.conditions.types import DURATION, TIMESTAMP_NTZ, is_integer, is_time, is_zoned, sql_name

MONTHS = pa.month_day_nano_interval()
"""The type of intervals of months and years."""
_DAY = 86_400_000_000


def time_arithmetic(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """A time and an interval, two times, a DATE and days, two intervals."""
    left, right = args
    if call.function == "+" and not is_time(left.type) and is_time(right.type):
        left, right = right, left
    if call.function in ("+", "-"):
        found = _moved(call, left, right, zone) if is_time(left.type) else None
        if found is not None:
            return found
        if arrow.is_duration(left.type) and arrow.is_duration(right.type):
            return guarded((left, right), f"{left.text} {call.function} {right.text}", DURATION, fails=True)
        if call.function == "-" and is_time(left.type) and is_time(right.type):
            return _between_times(left, right, zone)
    type_of_call(call, [arg.type for arg in args])
    raise NotInProcess(f"{call.function!r} of {sql_name(left.type)} and {sql_name(right.type)}")


def _moved(call: Call, time: Fragment, length: Fragment, zone: str) -> Fragment | None:
    """The time moved by the length; None if that is not a length."""
    sign = call.function
    is_date = time.type == pa.date32()
    if arrow.is_interval(length.type):
        return on_the_clock((time, length), time, f"to_months({sign}({length.text}))", zone)
    if is_date and is_integer(length.type) and length.type != pa.int64():
        return guarded((time, length), f"{time.text} {sign} CAST({length.text} AS INTEGER)", pa.date32(), fails=True)
    if not arrow.is_duration(length.type):
        return None
    if is_date and length.literal is not None and length.literal.days:
        days = length_of(length.literal) // _DAY
        return guarded((time, length), f"{time.text} {sign} {days}", pa.date32(), fails=True)
    if is_date:
        time = converted(time, TIMESTAMP, zone)
    literal = length.literal
    may_be_days = literal is None or abs(length_of(literal)) >= _DAY
    if not (may_be_days and time.type.tz and zone not in UTC_NAMES):
        text = f"{time.text} {sign} to_microseconds({length.text})"
        return guarded((time, length), text, time.type, fails=True)
    # Whole days are days of the clock, whose length may differ; the rest is a length.
    signed = f"{sign}({length.text})"
    on_day = on_the_clock((time, length), time, f"to_days(CAST({signed} // {_DAY} AS INTEGER))", zone)
    return guarded((on_day,), f"{on_day.text} + to_microseconds({signed} % {_DAY})", time.type, fails=True)


def on_the_clock(args: Sequence[Fragment], time: Fragment, interval: str, zone: str) -> Fragment:
    """The time moved by a DuckDB interval on the clock. Its offset stays as it is, if the clock has it then, too."""
    if time.type == pa.date32():
        return guarded(args, f"CAST({time.text} + {interval} AS DATE)", time.type, fails=True)
    clock = local(time, zone)
    moved = f"({clock} + {interval})"
    if not time.type.tz or zone in UTC_NAMES:
        return guarded(args, moved, time.type, fails=True)
    same_offset = f"({time.text} + ({moved} - {clock}))"
    shown = local(Fragment(same_offset, TIMESTAMP), zone)
    text = f"CASE WHEN {shown} = {moved} THEN {same_offset} ELSE {instant(moved, zone)} END"
    return guarded(args, text, TIMESTAMP, fails=True)


def length_of(literal: Literal) -> int:
    """Microseconds of an interval."""
    return int(pa.scalar(literal.value, DURATION).cast(pa.int64()).as_py() or 0)


def _between_times(left: Fragment, right: Fragment, zone: str) -> Fragment:
    if left.type == pa.date32() and right.type == pa.date32():
        text = f"CAST({left.text} - {right.text} AS BIGINT) * {_DAY}"
        return guarded((left, right), text, DURATION, fails=True)
    if any(is_zoned(time.type) for time in (left, right)):
        clocks = [local(time, zone) for time in (left, right)]
    else:  # beside a TIMESTAMP_NTZ, a DATE is its midnight
        clocks = [converted(time, TIMESTAMP_NTZ, zone).text for time in (left, right)]
    return guarded((left, right), f"epoch_us({clocks[0]}) - epoch_us({clocks[1]})", DURATION, fails=True)


def months(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """An interval of months and years as their number of months."""
    literal = args[0].literal
    assert literal is not None
    text = str(literal.value).strip().lower()
    if fields := re.fullmatch(r"([+-]?)(\d+)-(\d+)", text):
        count = (int(fields[2]) * 12 + int(fields[3])) * (-1 if fields[1] == "-" else 1)
    else:
        parts = re.findall(r"([+-]?)\s*(\d+)\s*(year|month)s?\b", text)
        if re.sub(r"[+-]?\s*\d+\s*(?:year|month)s?\b\s*", "", text):
            raise NotInProcess(f"INTERVAL {text!r}")
        count = sum(int(sign + number) * (12 if unit == "year" else 1) for sign, number, unit in parts)
    return Fragment(f"CAST({count} AS INTEGER)", MONTHS)
