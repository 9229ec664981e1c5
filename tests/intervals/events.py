"""Events for the tests of interval patterns through the public calls, and a short notation for rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from cepheid.detect import detect
from cepheid.intervals import IntervalMatcher, IntervalPattern
from cepheid.intervals import interval_pattern as parsed

Row = tuple[Any, ...]
TIMES = pa.timestamp("us", "UTC")
NAMES: dict[str, Any] = {"time": ("begins", "ends")}
PAPER = "EVENT PAL((A a overlap B b) (!D d) before C c) WITHIN 10 seconds"
EVENTS: list[Row] = [
    ("A", 1, 4, "a1"),
    ("B", 3, 6, "b1"),
    ("C", 8, 9, "c1"),
    ("D", 5, 12, "d1"),
    ("A", 30, 31, "z1"),
]


def table(events: Iterable[Row]) -> pa.Table:
    """Events as (type, start, end, id) and optionally the user; times in seconds."""
    rows = [(*event, None)[:5] for event in events]
    kinds, starts, ends, ids, users = zip(*rows, strict=True)
    return pa.table(
        {
            "kind": pa.array(kinds, pa.string()),
            "begins": pa.array([None if s is None else s * 1_000_000 for s in starts], TIMES),
            "ends": pa.array([None if e is None else e * 1_000_000 for e in ends], TIMES),
            "id": pa.array(ids, pa.string()),
            "user": pa.array(users, pa.string()),
        }
    )


def interval_pattern(text: str, kinds: Mapping[str, str] | None = None) -> IntervalPattern:
    """The pattern of the text, with the types in the column `kind`."""
    return parsed(text).taxonomy("kind", kinds)


def matcher(
    pattern: str | IntervalPattern = PAPER, lateness: str | None = "8 seconds", **options: Any
) -> IntervalMatcher:
    given = interval_pattern(pattern) if isinstance(pattern, str) else pattern
    return IntervalMatcher(given, table(EVENTS).schema, lateness=lateness, **(NAMES | options))


def found(
    pattern: str, events: Iterable[Row], kinds: Mapping[str, str] | None = None, **options: Any
) -> list[tuple[str, ...]]:
    given = interval_pattern(pattern, kinds)
    matches = detect(table(events), given, **(NAMES | options))
    variables = [p.variable for p in given.positives]
    return [tuple(row[v]["id"] for v in variables) for row in matches.to_pylist()]


def shown(rows: pa.Table) -> list[str]:
    """Insertions as +a1,b1,c1, retractions as -a1,b1,c1, late events as "a1 late"."""
    signs = {"insertion": "+", "retraction": "-"}
    variables = [name for name in rows.schema.names if len(name) == 1]
    return [
        row["event"]["id"] + " late"
        if row["kind"] == "late"
        else signs[row["kind"]] + ",".join(row[v]["id"] for v in variables)
        for row in rows.to_pylist()
    ]
