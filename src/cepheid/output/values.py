"""Values of scripts as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def given_value(value: Any, type_: pa.DataType) -> Any:
    """The value of a script (None: NULL) as the Python value that its type means: scaled integers become decimals,
    microseconds times (instants in UTC) and lengths of time, days dates.
    """
    if value is None:
        return None
    if pa.types.is_decimal(type_):
        return Decimal(value).scaleb(-type_.scale)
    if pa.types.is_duration(type_):
        return timedelta(microseconds=value)
    if pa.types.is_timestamp(type_):
        return _instant(value, zoned=type_.tz is not None)
    if pa.types.is_date(type_):
        return date(1970, 1, 1) + timedelta(days=value)
    return value


def _instant(value: int, *, zoned: bool) -> Any:
    """The time, as text if Python has no such year."""
    try:
        instant = _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return f"{value} microseconds since 1970"
    return instant if zoned else instant.replace(tzinfo=None)


def shown_value(value: Any) -> str:
    """The value as SQL would show it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return time_text(value)
        case _:
            return str(value)


def columns_text(values: Mapping[str, Any]) -> str:
    """The columns of an event, as in `at = 2026-03-02 08:00:00, kind = 'a'`."""
    return ", ".join(f"{name} = {shown_value(value)}" for name, value in values.items())


def event_text(values: Mapping[str, Any]) -> str:
    """An event with these columns, as an object of a sentence."""
    return f"the event with {columns_text(values)}" if values else "an event without columns"


def time_text(time: datetime) -> str:
    """The time without zeros after its seconds."""
    return f"{time:%Y-%m-%d %H:%M:%S.%f}".rstrip("0").rstrip(".")


def plain_value(value: Any) -> Any:
    """The value in JSON: text, unless it is a number, a boolean, text or NULL."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def plain_text(value: Any) -> str:
    """The value without quotes."""
    return value if isinstance(value, str) else shown_value(value)
