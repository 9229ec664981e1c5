"""What one would write for these patterns without Cepheid: SQL window functions, or a loop where SQL cannot express the
pattern.

Each function returns the number of matches in events that are sorted by device and time.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import polars as pl
import pyarrow as pa

SECOND = 1_000_000

_STRICT_SQL = """
SELECT count(*) FROM (
    SELECT phase = 0 AND price > 100 AS a,
           lead(phase = 1 AND price > 100, 1) OVER device_order AS b,
           lead(phase = 2 AND price > 100, 2) OVER device_order AS c
    FROM events WINDOW device_order AS (PARTITION BY device ORDER BY "at")
) WHERE a AND b AND c
"""


def strict_in_duckdb(events: pa.Table) -> int:
    with duckdb.connect() as connection:
        connection.register("events", events)
        return int(connection.sql(_STRICT_SQL).fetchall()[0][0])


def strict_in_polars(events: pa.Table) -> int:
    """Assumes that the events are sorted, as `shift` does."""
    high = pl.col("price") > 100
    stages = [(pl.col("phase") == phase) & high for phase in range(3)]
    frame = pl.DataFrame(events).lazy()
    match = stages[0] & stages[1].shift(-1).over("device") & stages[2].shift(-2).over("device")
    found: int = frame.select(match.sum()).collect().item()
    return found


def relaxed_in_a_loop(events: pa.Table, column: str, codes: tuple[int, int, int], window: int) -> int:
    """a, then b, then c; other events in between are skipped. The matches of a device do not overlap. `window` is in
    microseconds.

    All partial matches that wait for b wait for the same event, so the earliest is enough; the same is true for c.
    """
    a, b, c = codes
    matches, current = 0, None
    starts: list[int] = []
    seconds: list[int] = []
    devices, times = events.column("device").to_pylist(), events.column("at").cast(pa.int64()).to_pylist()
    for device, time, code in zip(devices, times, events.column(column).to_pylist(), strict=True):
        if device != current:
            current, starts, seconds = device, [], []
        if code == a:
            starts.append(time)
        elif code == b:
            seconds += starts
            starts = []
        elif code == c:
            if any(time - start < window for start in seconds):
                matches += 1
                starts = []
            seconds = []
    return matches


def across_in_a_loop(events: pa.Table, window: int) -> int:
    """Pattern `ACROSS`. A match waits while a partial match with an earlier start is open, which has precedence."""
    matches, current = 0, None
    columns = [events.column(name).to_pylist() for name in ("device", "phase", "price")]
    times = events.column("at").cast(pa.int64()).to_pylist()
    open_: list[Partial] = []
    waiting: list[tuple[int, int]] = []
    for device, phase, price, time in zip(*columns, times, strict=True):
        if device != current:
            matches += released([], waiting)
            current = device
            open_.clear()
        while open_ and time - open_[0].start >= window:
            open_.pop(0)
            if waiting:
                matches += released(open_, waiting)
        if phase == 0:
            open_.append(Partial(time, price, None))
        elif phase == 1:
            for partial in open_:
                if partial.second is None and price > partial.first * 1.1:
                    partial.second = price
        else:
            complete = [p for p in open_ if p.second is not None and price < p.second]
            if complete:
                open_[:] = [p for p in open_ if p not in complete]
                waiting += [(p.start, time) for p in complete]
                matches += released(open_, waiting)
    return matches + released([], waiting)


@dataclass(slots=True, eq=False)
class Partial:
    """A partial match of `ACROSS`: the time of a, and the prices of a and b."""

    start: int
    first: float
    second: float | None


def released(open_: list[Partial], waiting: list[tuple[int, int]]) -> int:
    """The number of waiting matches, given as (start, end), that are certain now. Matches that overlap them are
    dropped.
    """
    matches = 0
    waiting.sort()
    while waiting and not (open_ and open_[0].start < waiting[0][0]):
        matches += 1
        end = waiting[0][1]
        waiting[:] = [match for match in waiting if match[0] > end]
        open_[:] = [partial for partial in open_ if partial.start > end]
    return matches
