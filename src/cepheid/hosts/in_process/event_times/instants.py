"""Times of a column as instants. An error names the value that is no time, and its row."""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError
from cepheid.events.clock import instants_of, on_clock
from cepheid.events.time import TIME_TYPE

TIME_WITHOUT_ZONE = pa.timestamp("us")


def instants(time: pa.ChunkedArray, name: str, zone: str) -> pa.ChunkedArray:
    """The times of the column `name` as instants in microseconds. Times without a zone are read in `zone`, where a DATE
    is the start of the day.

    Raises:
        EventError: a time does not fit microseconds, or a local time is ambiguous or does not exist.
    """
    if pa.types.is_date(time.type):
        # Where clocks change at midnight, the day starts with the first of two midnights, or with the change.
        midnight = time.cast(TIME_WITHOUT_ZONE)
        return instants_of(midnight, zone, ambiguous="earliest", nonexistent="latest")
    given = time
    try:
        time = time.cast(pa.timestamp("us", time.type.tz))
    except pa.ArrowInvalid as error:
        _refuse_finer(given, name, error)
    if time.type.tz is not None:
        return time.cast(TIME_TYPE)
    try:
        return instants_of(time, zone)
    except pa.ArrowInvalid:
        _refuse_uncertain(time, name, zone)


def row_text(row: int) -> str:
    """How messages name a row of a table."""
    return f"row {row:,}, counted from 0"


def mixes_zones(with_zone: str, without: str) -> str:
    """What is wrong with a column that mixes times with a zone and without one; both examples have their row."""
    return (
        f"holds times with a zone and times without one, as {with_zone} and {without}: which instants these are is not "
        "known. Give all of them a zone, or none"
    )


def _refuse_finer(time: pa.ChunkedArray, name: str, error: pa.ArrowInvalid) -> NoReturn:
    reason = str(error)
    if time.type.unit == "ns":
        kept = pc.cast(time, pa.timestamp("us", time.type.tz), safe=False).cast(time.type)
        row = pc.index(pc.not_equal(kept, time), value=True).as_py()
        reason = f"it is {time[row].cast(pa.string()).as_py()} ({row_text(row)})"
    message = f"a time in {name!r} does not fit microseconds: {reason}. Round the column to microseconds first"
    raise EventError(f"{message}, or give time_resolution='us', which cuts times and orders by the rest") from error


def _refuse_uncertain(local: pa.ChunkedArray, name: str, zone: str) -> NoReturn:
    """Raises EventError for the first local time that no instant, or two instants, have on the clock of the zone."""
    early, late = (instants_of(local, zone, ambiguous=rule, nonexistent=rule) for rule in ("earliest", "latest"))
    wrong = pc.fill_null(pc.not_equal(early, late), fill_value=False)
    row, count = pc.index(wrong, value=True).as_py(), pc.sum(wrong).as_py()
    is_shown = on_clock(early[row], zone) == local[row]
    what = "is ambiguous in" if is_shown else "does not exist in"
    direction = "back" if is_shown else "forward"
    more = "" if count == 1 else f" It is the first of {count:,} such times."
    raise EventError(
        f"the local time {local[row].as_py()} in column {name!r} ({row_text(row)}) {what} {zone}, where clocks were "
        f"set {direction}.{more} Convert the column to instants (with a zone) first, where it is known which is meant"
    )
