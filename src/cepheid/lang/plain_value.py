"""Converts single values of NumPy and pandas to Python's own, so that values from a table can be used as arguments."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

_OF_DAYS = ("Y", "M", "W", "D")


def plain_value(value: object) -> object:
    """The value as a value of Python's own types.

    A scalar of NumPy becomes a number, text, date, datetime or timedelta; a time or length of time of pandas becomes a
    datetime or timedelta. Other values are returned unchanged.

    Raises:
        ValueError: the value has nanoseconds, which Python's types cannot hold, or is NaT.
    """
    if isinstance(value, np.datetime64):
        in_microseconds = value.astype("datetime64[us]")
        _check(str(value), nanoseconds=not np.isnat(value) and in_microseconds != value)
        return (value if np.datetime_data(value.dtype)[0] in _OF_DAYS else in_microseconds).item()
    if isinstance(value, np.timedelta64):
        in_microseconds = value.astype("timedelta64[us]")
        _check(str(value), nanoseconds=not np.isnat(value) and in_microseconds != value)
        return in_microseconds.item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime) and hasattr(value, "to_pydatetime"):
        _check(value.isoformat(), nanoseconds=bool(getattr(value, "nanosecond", 0)))
        return value.to_pydatetime()
    if isinstance(value, timedelta) and hasattr(value, "to_pytimedelta"):
        _check(str(value), nanoseconds=bool(getattr(value, "nanoseconds", 0)))
        return value.to_pytimedelta()
    return value


def _check(shown: str, *, nanoseconds: bool) -> None:
    if shown == "NaT":
        raise ValueError("NaT is not a time")
    if nanoseconds:
        raise ValueError(f"{shown} has nanoseconds: round it to microseconds")
