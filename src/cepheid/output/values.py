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


_LONGEST, _MOST_COLUMNS = 100, 20
"""How much of an event a message shows: characters of a value, and columns."""


def shown_value(value: Any) -> str:
    """The value as SQL would show it, in one line."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return "'" + _printable(value).replace("'", "''") + "'"
        case datetime():
            return time_text(value)
        case _:
            return str(value)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def columns_text(values: Mapping[str, Any]) -> str:
    """The columns of an event, as in `at = 2026-03-02 08:00:00, kind = 'a'`: the first ones, and of long values the
    beginning.
    """
    shown = [f"{name} = {_beginning(value)}" for name, value in [*values.items()][:_MOST_COLUMNS]]
    if len(values) > _MOST_COLUMNS:
        shown.append(f"and {len(values) - _MOST_COLUMNS} more columns")
    return ", ".join(shown)


def _beginning(value: Any) -> str:
    text = shown_value(value[: _LONGEST + 1] if isinstance(value, str) else value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def event_text(*columns: str) -> str:
    """An event with these columns, texts as `columns_text` gives them, as an object of a sentence."""
    known = ", ".join(filter(None, columns))
    return f"the event with {known}" if known else "an event without columns"


def time_text(time: datetime) -> str:
    """The time without zeros after its seconds."""
    return f"{time:%Y-%m-%d %H:%M:%S.%f}".rstrip("0").rstrip(".")


def plain_value(value: Any) -> Any:
    """The value in JSON: text, unless it is a number, a boolean, text or NULL."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def plain_text(value: Any) -> str:
    """The value without quotes."""
    return value if isinstance(value, str) else shown_value(value)
