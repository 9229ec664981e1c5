"""A small log of a shop, for the tests of plans and of `detect`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from cepheid import OccurrencePattern, detect

START = datetime(2024, 5, 1, tzinfo=UTC)
ROWS = [
    (1, "Login", "ann", None),
    (2, "Login", "bob", None),
    (3, "Buy", "bob", 30),
    (5, "Logout", "ann", None),
    (7, "Logout", "bob", None),
    (9, "Login", "ann", None),
]


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def shop(rows: list[tuple[int, str, str, int | None]] = ROWS, time: pa.DataType | None = None) -> pa.Table:
    seconds, types, users, prices = ([row[column] for row in rows] for column in range(4))
    times = pa.array([at(second) for second in seconds], pa.timestamp("us", "UTC"))
    if time is not None:
        times = times.cast(pa.int64()).cast(time)
    return pa.table(
        {
            "at": times,
            "type": pa.array(types, pa.string()),
            "user": pa.array(users, pa.string()),
            "price": pa.array(prices, pa.int64()),
        },
    )


def found(text: str, events: pa.Table | None = None, policy: str = "unrestricted", **arguments: Any) -> list[Any]:
    """The rows that `detect` gives for the pattern text."""
    pattern = OccurrencePattern.of(text).taxonomy("type").policy(policy)
    table = detect(shop() if events is None else events, pattern, **{"time": "at", **arguments})
    return list(table.to_pylist())


def spans(rows: list[Any]) -> list[tuple[int, int]]:
    """The start and end of each row, in seconds."""
    second = timedelta(seconds=1)
    return [((row["match_start"] - START) // second, (row["match_end"] - START) // second) for row in rows]
