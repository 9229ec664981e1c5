"""Patterns whose stages are tied by values, without a key: detection in process, and DuckDB's join of the same events.

The events are of three kinds, a to c, equally likely. Their attributes have 1,000 values each. There are as many events
in ten minutes as make about as many matches as events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from measuring import machine, print_table, rows_wanted, timed

from cepheid import Pattern, detect

Names: TypeAlias = tuple[str, str]
"""The condition and the engine."""

VALUES = 1_000
WINDOW = 600_000_000
IN_WINDOW = 6_570
"""The events in ten minutes."""
OPEN = 1_000
"""The partial matches that wait for a higher price at a time."""

CHAIN = (
    Pattern.begin("a")
    .where("kind = 0")
    .followed_by_any("b")
    .where("kind = 1 AND x = a.x")
    .followed_by_any("c")
    .where("kind = 2 AND y = b.y")
    .within("10 minutes")
)
CHAIN_SQL = """
    SELECT a.at AS first, b.at AS second, c.at AS third FROM events a
    JOIN events b ON b.x = a.x AND b.at > a.at AND b.at < a.at + INTERVAL 10 MINUTES
    JOIN events c ON c.y = b.y AND c.at > b.at AND c.at < a.at + INTERVAL 10 MINUTES
    WHERE a.kind = 0 AND b.kind = 1 AND c.kind = 2"""
RISE = (
    Pattern.begin("a").where("kind = 0").followed_by_any("b").where("price > a.price * 3").within(f"{OPEN * 3} seconds")
)


def events_of(rows: int, gap: int) -> pa.Table:
    """Events `gap` microseconds apart."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "at": pa.array(np.arange(rows) * gap).cast(pa.timestamp("us", "UTC")),
            "kind": random.integers(0, 3, rows),
            "x": random.integers(0, VALUES, rows),
            "y": random.integers(0, VALUES, rows),
            "price": random.uniform(50, 151, rows),
        }
    )


def found(events: pa.Table, pattern: Pattern) -> int:
    return int(detect(events, pattern, time="at", columns=[]).num_rows)


def joined(events: pa.Table) -> int:
    """The number of rows of DuckDB's join, which is given as an Arrow table, like the matches."""
    connection = duckdb.connect()
    connection.register("events", events)
    return int(connection.sql(CHAIN_SQL).to_arrow_table().num_rows)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=2_000_000)
    print(machine())
    events, rising = events_of(rows, WINDOW // IN_WINDOW), events_of(rows, 1_000_000)
    found(events.slice(0, 10_000), CHAIN)  # loads the kernel
    matches, pairs = found(events, CHAIN), joined(events)
    assert matches == pairs, (matches, pairs)
    works = {
        ("x = a.x, then y = b.y", "Cepheid"): partial(found, events, CHAIN),
        ("x = a.x, then y = b.y", "DuckDB"): partial(joined, events),
        ("price > a.price * 3", "Cepheid"): partial(found, rising, RISE),
    }
    lines = [[*names, *figures, rows / figures[-1] / 1e6] for names, figures in measured(works).items()]
    head = ["condition", "engine", "matches", "seconds", "processor seconds", "M events a processor second"]
    print_table(f"Values compared between stages, no key, {rows:,} events", head, lines)


def measured(works: Mapping[Names, Callable[[], int]], rounds: int = 3) -> dict[Names, tuple[int, float, float]]:
    """What each work returns, and its least seconds and processor seconds of all threads; they take turns. Processor
    time hardly depends on other load on the machine.
    """
    least: dict[Names, tuple[int, float, float]] = {}
    for _ in range(rounds):
        for names, work in works.items():
            before = time.process_time()
            seconds, result = timed(work)
            spent = time.process_time() - before
            _, *others = least.get(names, (0, seconds, spent))
            least[names] = (result, min(seconds, others[0]), min(spent, others[1]))
    return least


if __name__ == "__main__":
    main()
