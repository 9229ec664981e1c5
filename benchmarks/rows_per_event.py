"""Rows of events beside rows of matches, in process: the same matches, with all columns or some and with measures."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from events import make_events
from measuring import alternating, machine, print_table, rows_wanted
from patterns import PATTERNS, RELEVANT, SELECTIVE

from cepheid import detect

SHAPES: dict[str, dict[str, Any]] = {
    "per match": {},
    "per event": {"rows_per": "event"},
    "per match, one column": {"columns": "price"},
    "per event, one column": {"columns": "price", "rows_per": "event"},
    "per match, measures": {"measures": {"n": "count(b)", "p": "avg(b.price)"}},
    "per event, measures": {"rows_per": "event", "measures": {"n": "count(b)", "p": "avg(b.price)"}},
    "per event, final measures": {"rows_per": "event", "measures": {"n": "FINAL count(b)", "p": "FINAL avg(b.price)"}},
}
KEYS = 1_000


def rows_of(events: pa.Table, pattern: Any, shape: dict[str, Any]) -> int:
    return int(detect(events, pattern, key="device", time="at", **shape).num_rows)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=3_000_000)
    print(machine())
    warm, events = make_events(1_000, 10), make_events(rows, KEYS)
    for pattern in PATTERNS.values():  # compile the kernel, or load it
        rows_of(warm, pattern, {})
    lines = []
    for name, pattern in (("all events relevant", RELEVANT), ("3 % relevant", SELECTIVE)):
        calls = {shape: partial(rows_of, events, pattern, given) for shape, given in SHAPES.items()}
        seconds = alternating(calls)
        for shape, call in calls.items():
            found = call()
            lines.append(
                [name, shape, seconds[shape], found, found / seconds[shape] / 1e6, rows / seconds[shape] / 1e6]
            )
    head = ["pattern", "rows", "s", "rows made", "M rows/s", "M events/s"]
    print_table(f"In process, {rows:,} events, {KEYS:,} keys", head, lines)


if __name__ == "__main__":
    main()
