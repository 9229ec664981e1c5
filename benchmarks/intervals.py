"""Interval patterns in process: `detect` over tables, and an IntervalMatcher over events that arrive in the order of
their ends, or out of order. Lifting and rows are included.

python benchmarks/intervals.py [--rows 1000000]

The first table has the same events in both forms, with few matches; the second one has more matches than events, for
matches per second. Times are processor time of all threads, the smallest of three rounds.

In the third table an event comes every half second on average, lasts 1 to 4 seconds, and is of one of four types. The
fourth table joins by equal values, of which there are more and more.

The fifth table compares `detect` over a table with the same in SQL. Each window is ten times as long as the one
before, and the share of B is chosen so that the number of matches is similar. The sixth table has the same window with
more and more keys, whose events alternate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

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
FEW = "EVENT PAL((A a overlap B b) before C c) WITHIN 100 seconds"
JOINED = "EVENT PAL((A a before B b) before C c) WHERE a.user = b.user AND b.user = c.user WITHIN {window} seconds"
PIECE = 1 << 17
ROUNDS = 3
VALUES = (100, 1_000, 10_000)
"""The values of an equality. Each window is as long as there are values, so the number of matches is similar."""
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


Work: TypeAlias = Callable[[], int]
"""Something measured; it returns a number of rows."""


def live(query: str, table: pa.Table) -> Callable[[], Work]:
    """Makes a matcher, which then processes the table in pieces."""
    pattern = interval_pattern(query).taxonomy("type")

    def made() -> Work:
        # Lateness is by start: an event is at most 4 seconds long and arrives at most 4 seconds late.
        matcher = IntervalMatcher(pattern, table.schema, time=("start", "end"), lateness="8 seconds")
        pieces = [table.slice(start, PIECE) for start in range(0, len(table), PIECE)]
        return lambda: sum(len(rows) for rows in [*map(matcher.process, pieces), matcher.finish()])

    return made


def tables(query: str, table: pa.Table) -> Callable[[], Work]:
    """The same by `detect`."""
    pattern = interval_pattern(query).taxonomy("type")
    return lambda: lambda: len(detect(table, pattern, time=("start", "end")))


def fastest(made: Callable[[], Work]) -> tuple[float, int]:
    """The least seconds of processor time of several rounds, and the number of rows."""
    made()()
    return min(timed(made(), clock=time.process_time) for _ in range(ROUNDS))


def both_forms(query: str, table: pa.Table, share: float) -> Iterator[tuple[Any, ...]]:
    """A line for each form: million events and matches per second."""
    forms = {"table": tables(query, table)} if not share else {}
    forms |= {how: live(f"{query} CONSISTENCY {how}", table) for how in ("conservative", "earliest", "realtime")}
    for form, made in forms.items():
        seconds, rows = fastest(made)
        yield f"{share:.0%}", form, len(table) / seconds / 1e6, rows / seconds / 1e6, rows


def measured(query: str, table: pa.Table) -> tuple[Any, ...]:
    """Million events per second, and the number of rows."""
    seconds, rows = fastest(live(query, table))
    return len(table) / seconds / 1e6, rows


def by_values(rows: int, values: int) -> tuple[Any, ...]:
    """Million events per second of a table and a matcher, and the number of matches."""
    table = with_few_b(rows, values, b=1 / 3)
    table = table.append_column("user", pa.array(np.random.default_rng(3).integers(0, values, rows)))
    query = JOINED.format(window=values)
    found, seconds = [], []
    for made in (tables(query, table), live(query, table)):
        spent, matches = fastest(made)
        seconds.append(len(table) / spent / 1e6)
        found.append(matches)
    assert found[0] == found[1], found
    return values, *seconds, found[0]


def shared_events(rows: int, *, disordered: float) -> pa.Table:
    """The events of the first table: about one match for every twelve."""
    return with_few_b(rows, 100, disordered=disordered)


def with_few_b(rows: int, window: int, *, b: float | None = None, disordered: float = 0.0) -> pa.Table:
    """Events in the order of their ends, one per second on average, each 1 to 3 seconds long. The share `disordered` of
    them arrives up to 4 seconds late. The share of B is `b`, or such that the number of matches is similar.
    """
    random = np.random.default_rng(1)
    start = np.cumsum(random.exponential(SECOND, rows)).astype(np.int64)
    end = start + random.integers(SECOND, 3 * SECOND, rows)
    late = np.where(random.random(rows) < disordered, random.integers(0, 4 * SECOND, rows), 0) if disordered else 0
    order = np.argsort(end + late, kind="stable")
    b = min(2 * MATCHES / window, 1 / 3) if b is None else b
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
    forms = ("out of order", "form", "M events/s", "M matches/s", "rows")
    shares = (0.0, 0.45)
    lines = [line for share in shares for line in both_forms(FEW, shared_events(rows, disordered=share), share)]
    print_table(f"A overlap B before C, {rows:,} events with few matches", forms, lines)
    lines = [line for share in shares for line in both_forms(QUERY, events(rows, disordered=share), share)]
    print_table(f"A overlap B before C, {rows:,} events with many matches", forms, lines)
    lines = []
    for share in shares:
        table = events(rows, disordered=share)
        for what, query in (("with a negation", NEGATED), ("with one of many open", LASTING), ("five values", EQUAL)):
            for consistency in ("conservative", "realtime"):
                found = measured(f"{query} CONSISTENCY {consistency}", table)
                lines.append((what, f"{share:.0%}", consistency, *found))
    print_table(f"{rows:,} events", ("pattern", "out of order", "consistency", "M events/s", "rows"), lines)
    lines = [by_values(rows, values) for values in VALUES]
    print_table("A before B before C of one user", ("users", "table, M events/s", "live", "matches"), lines)
    beside = [(window, *beside_sql(with_few_b(rows, window), window)) for window in WINDOWS]
    title = f"A overlap B before C in a table of {rows:,} events, M events/s"
    print_table(title, ("events in the window", "detect", "SQL in DuckDB", "matches"), beside)
    table = with_few_b(rows, LONG)
    title = f"The same of many keys, {LONG:,} events in the window"
    print_table(title, ("keys", "detect, M events/s"), [(keys, of_keys(table, keys)) for keys in KEYS])


if __name__ == "__main__":
    main()
