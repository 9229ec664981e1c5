"""Event times: their type in batches, and instants as numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from cepheid.errors import SchemaError

TIME_TYPE = pa.timestamp("us", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(instant: datetime) -> int:
    """Microseconds from 1970 UTC to the instant, which must have a time zone."""
    elapsed = instant - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def arrow_zone(zone: str) -> str:
    """The zone in Arrow's form: a name, or an offset such as +05:30. Offsets in Spark's forms, such as GMT+5, are
    converted.

    Raises:
        SchemaError: the zone is unknown.
    """
    try:
        return ZoneInfo(zone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    if zone in ("Z", "UT", "GMT0"):
        return "UTC"
    if (offset := _OFFSET.fullmatch(zone)) is None:
        raise SchemaError(f"time_zone: {zone!r} is not known here; give a name such as 'Europe/Berlin', or +05:30")
    sign, hours, minutes = offset.groups()
    return f"{sign}{int(hours):02}:{int(minutes or 0):02}"


def python_zone(zone: str) -> tzinfo:
    """The zone, whose name has Arrow's form."""
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        offset = datetime.strptime(zone, "%z").tzinfo
        assert offset is not None, zone
        return offset


def has_one_offset(zone: str) -> bool:
    """Whether the clock of the zone never changes; False for a zone that is not known here."""
    try:
        return python_zone(arrow_zone(zone)).utcoffset(None) is not None
    except SchemaError:
        return False


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
