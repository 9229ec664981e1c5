"""Events for the tests of Matcher, and short summaries of its rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from cepheid import Matcher, Pattern

T = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("at", pa.timestamp("us", "UTC")), ("x", pa.string())])
PAIR = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'").within("10 seconds")
ALL = ("matches", "timeouts", "late")


def at(second: float) -> datetime:
    return T + timedelta(seconds=second)


def events(*rows: tuple[int, str | None, float | None, str]) -> pa.Table:
    """Events (id, key, second, x)."""
    columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(SCHEMA.names)}
    columns["at"] = [None if second is None else at(second) for second in columns["at"]]
    return pa.table(columns, schema=SCHEMA)


def matcher(pattern: Pattern = PAIR, **options: Any) -> Matcher:
    """A matcher for events that arrive in order and have a sequence, with all outputs; `options` override this."""
    given = {"key": "k", "time": "at", "sequence": "id", "lateness": "0 seconds", "outputs": ALL, **options}
    return Matcher(pattern, SCHEMA, **given)


def summaries(rows: pa.Table | list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Each row as (kind, ids of its events, second of `detected_at`), in the order of the rows."""
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return [(row["kind"], _ids(row), _second(row["detected_at"])) for row in listed]


def _ids(row: dict[str, Any]) -> tuple[int, ...]:
    if row["kind"] == "late":
        return (row["event"]["id"],)
    return tuple(event["id"] for _, taken in row["stages"] for event in taken)


def _second(time: datetime | None) -> float | None:
    return None if time is None else (time - T).total_seconds()
