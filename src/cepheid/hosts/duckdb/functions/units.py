"""`date_trunc` and `trunc`: times truncated to a unit, which is a constant."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cepheid.hosts.duckdb.casts import read_as
from cepheid.hosts.duckdb.fragment import TIMESTAMP, UTC_NAMES, Fragment, instant, local, quoted
from cepheid.hosts.duckdb.rule import NotInProcess, guarded
from cepheid.lang.expression import Call

_DATE_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
_TIME_UNITS = {
    **_DATE_UNITS,
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}


def date_trunc(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The TIMESTAMP at the start of the unit, on the clock of the session's zone."""
    unit = _TIME_UNITS[_unit(args[0], _TIME_UNITS)]
    time = read_as(args[1], TIMESTAMP, zone)
    if time is None:
        raise NotInProcess("date_trunc of anything but a time")
    clock = local(time, zone)
    start = f"date_trunc({quoted(unit)}, {clock})"
    if unit == "week" or zone in UTC_NAMES:
        return guarded([time], instant(start, zone), TIMESTAMP)
    # Clocks may be set back between the start and the time. Then the time's own offset is used, provided that it also
    # applied at the start.
    same_offset = f"({time.text} - ({clock} - {start}))"
    shown = local(Fragment(same_offset, TIMESTAMP), zone)
    return guarded([time], f"CASE WHEN {shown} = {start} THEN {same_offset} ELSE {instant(start, zone)} END", TIMESTAMP)


def trunc(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The DATE at the start of the unit."""
    day = read_as(args[0], pa.date32(), zone)
    if day is None:
        raise NotInProcess("trunc of anything but a date or time")
    unit = _DATE_UNITS[_unit(args[1], _DATE_UNITS)]
    return guarded([day], f"CAST(date_trunc({quoted(unit)}, {day.text}) AS DATE)", pa.date32())


def _unit(arg: Fragment, known: dict[str, str]) -> str:
    name = arg.literal.value if arg.literal else None
    if not isinstance(name, str) or name.lower() not in known:
        raise NotInProcess(f"a unit other than the constants {', '.join(known)}")
    return name.lower()
