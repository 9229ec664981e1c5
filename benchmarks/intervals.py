"""Interval patterns in process: an IntervalMatcher over events that arrive in the order of their ends, or out of order.

python benchmarks/intervals.py [--rows 1000000]

There are four types; an event comes every half second on average and lasts 1 to 4 seconds. Seconds are the processor
time of the matcher's thread; DuckDB lifts the conditions in other threads, whose time is not included.

The second table compares `detect` over a table with the same in SQL. Each window is ten times as long as the one
before, and the share of B is chosen so that the number of matches is similar. The third table has the same window with
more and more keys, whose events alternate.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
from interval_peers import in_duckdb
from measuring import machine, print_table, rows_wanted, timed

from cepheid import detect
from cepheid.intervals import IntervalMatcher, interval_pattern

SECOND = 1_000_000
QUERY = "EVENT PAL((A a overlap B b) before C c) WITHIN 20 seconds"
NEGATED = "EVENT PAL((A a overlap B b) (!D d) before C c) WITHIN 20 seconds"
LASTING = "EVENT PAL(A a, (!D d intersects_gap WHERE d.user = a.user), C c) RELATE a before c WITHIN 50 seconds"
"""The window has a hundred events, a quarter of them negated: many matches are open, and any may be forbidden."""
EQUAL = "EVENT PAL((A a overlap B b) before C c) WHERE a.user = b.user WITHIN 20 seconds"
PIECE = 1 << 17
WINDOWS = (10, 100, 1_000, 10_000)
"""In seconds, which is also the number of events in the window."""
LONG = 20_000
"""In seconds, which is also the number of events of all keys in the window."""
KEYS = (1, 1_000, 100_000)
MATCHES = 0.1
"""The approximate number of matches per event."""


def events(rows: int, *, disordered: float) -> pa.Table:
    """Events in the order of arrival. The share `disordered` of them arrives up to 4 seconds late."""
    random = np.random.default_rng(1)
    start = np.cumsum(random.exponential(0.5 * SECOND, rows)).astype(np.int64)
    end = start + random.integers(SECOND, 4 * SECOND, rows)
    arrives = end + np.where(random.random(rows) < disordered, random.integers(0, 4 * SECOND, rows), 0)
    order = np.argsort(arrives, kind="stable")
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "type": random.choice(list("ABCD"), rows),
            "start": pa.array(start[order]).cast(times),
            "end": pa.array(end[order]).cast(times),
            "user": random.integers(0, 5, rows),
        }
    )


def measured(query: str, table: pa.Table) -> tuple[Any, ...]:
    """Million events per second, the number of rows, and the number of events held at the end."""
    pattern = interval_pattern(query).taxonomy("type")
    # Lateness is by start: an event is at most 4 seconds long and arrives at most 4 seconds late.
    warm, matcher = (
        IntervalMatcher(pattern, table.schema, time=("start", "end"), lateness="8 seconds") for _ in range(2)
    )
    warm.process(table.slice(0, 1000))
    pieces = [table.slice(start, PIECE) for start in range(0, len(table), PIECE)]

    def work() -> int:
        return sum(len(rows) for rows in [*map(matcher.process, pieces), matcher.finish()])

    seconds, rows = timed(work, clock=time.thread_time)
    return len(table) / seconds / 1e6, rows, matcher.counts.held


def with_few_b(rows: int, window: int) -> pa.Table:
    """Events in the order of their ends, one per second on average, each 1 to 3 seconds long."""
    random = np.random.default_rng(1)
    start = np.cumsum(random.exponential(SECOND, rows)).astype(np.int64)
    end = start + random.integers(SECOND, 3 * SECOND, rows)
    order = np.argsort(end, kind="stable")
    b = min(2 * MATCHES / window, 1 / 3)
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": np.arange(rows),
            "type": random.choice(list("ABC"), rows, p=((1 - b) / 2, b, (1 - b) / 2)),
            "start": pa.array(start[order]).cast(times),
            "end": pa.array(end[order]).cast(times),
        }
    )


def beside_sql(table: pa.Table, window: int) -> tuple[Any, ...]:
    """Million events per second of processor time, for `detect` and for SQL, and the number of matches. Both must find
    the same matches.
    """
    asked = interval_pattern(f"EVENT PAL((A a overlap B b) before C c) WITHIN {window} seconds").taxonomy("type")
    names: dict[str, Any] = {"time": ("start", "end"), "columns": ["id"]}
    ours, rows = timed(lambda: detect(table, asked, **names), clock=time.process_time)
    sql, expected = timed(lambda: in_duckdb(table, window * SECOND), clock=time.process_time)
    found = [rows[name].combine_chunks().field("id") for name in "abc"]
    by_id = [(name, "ascending") for name in "abc"]
    assert pa.table(found, names=list("abc")).sort_by(by_id).equals(expected.sort_by(by_id).combine_chunks())
    return len(table) / ours / 1e6, len(table) / sql / 1e6, len(rows)


def of_keys(table: pa.Table, keys: int) -> float:
    """Million events per second; if `keys` is 1, without a key."""
    sites = np.random.default_rng(2).integers(0, keys, len(table))
    asked = interval_pattern(f"EVENT PAL((A a overlap B b) before C c) WITHIN {LONG} seconds").taxonomy("type")
    names: dict[str, Any] = {"time": ("start", "end"), "columns": ["id"]}
    table, names["key"] = table.append_column("site", pa.array(sites)), "site" if keys > 1 else None
    seconds, _ = timed(lambda: detect(table, asked, **names), clock=time.thread_time)
    return len(table) / seconds / 1e6


def main() -> None:
    rows = rows_wanted("Interval patterns in process", default=1_000_000)
    print(machine())
    lines: list[tuple[Any, ...]] = []
    for share in (0.0, 0.45):
        table = events(rows, disordered=share)
        for what, query in (
            ("overlap, before", QUERY),
            ("with a negation", NEGATED),
            ("with one of many open", LASTING),
            ("with an equality", EQUAL),
        ):
            for consistency in ("conservative", "earliest", "realtime"):
                found = measured(f"{query} CONSISTENCY {consistency}", table)
                lines.append((what, f"{share:.0%}", consistency, *found))
    head = ("pattern", "out of order", "consistency", "M events/s", "rows emitted", "held in the end")
    print_table(f"{rows:,} events", head, lines)
    beside = [(window, *beside_sql(with_few_b(rows, window), window)) for window in WINDOWS]
    title = f"A overlap B before C in a table of {rows:,} events, M events/s"
    print_table(title, ("events in the window", "detect", "SQL in DuckDB", "matches"), beside)
    table = with_few_b(rows, LONG)
    title = f"The same of many keys, {LONG:,} events in the window"
    print_table(title, ("keys", "detect, M events/s"), [(keys, of_keys(table, keys)) for keys in KEYS])


if __name__ == "__main__":
    main()
