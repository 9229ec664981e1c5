"""The cost of an event when many partial matches are open for its key: visits, retention between calls, emission."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
from measuring import machine, print_table, rows_wanted, timed

from cepheid import Pattern, detect

SECOND = 1_000_000


def one_key(rows: int, every: int) -> pa.Table:
    """One event per second. One in `every` is of kind 1 (none if `every` is 0), the others are of kind 0."""
    kind = np.zeros(rows, np.int64)
    if every:
        kind[every - 1 :: every] = 1
    at = pa.array(np.arange(rows) * SECOND).cast(pa.timestamp("us", "UTC"))
    return pa.table({"at": at, "kind": kind, "price": np.random.default_rng(1).uniform(50, 150, rows)})


def found(events: pa.Table, pattern: Pattern) -> int:
    return int(detect(events, pattern, time="at", columns=[]).num_rows)


def measure(rows: int, window: int, every: int, condition: str) -> list[object]:
    start = Pattern.begin("a").where("kind = 0")
    pattern = start.followed_by_any("b").where(condition).within(f"{window} seconds")
    events = one_key(rows, every)
    found(one_key(1_000, every), pattern)
    taken, matches = timed(partial(found, events, pattern))
    return [condition, window, every or None, matches, rows / taken / 1e6, taken / rows * 1e6]


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=1_000_000)
    print(machine())
    lines = [
        measure(rows, window, every, condition)
        for condition in ("kind = 1", "kind = 1 AND price > a.price * 1.5", "price > a.price * 3")
        for window, every in ((10, 100), (100, 100), (1_000, 1_000), (10_000, 0))
        if rows * window < 2e9 or condition != "price > a.price * 3"
    ]
    head = ["condition of b", "open", "kind 1 every", "matches", "M events/s", "microseconds an event"]
    print_table(f"Partial matches open at a time, one key, {rows:,} events", head, lines)


if __name__ == "__main__":
    main()
