"""A Matcher over events out of order: conservative, and in real time with insertions and retractions.

python benchmarks/real_time.py [--rows 200000]

A share of the events arrives late: most by an eighth of the lateness or less, some by all of it. A key has one event
per second. Two ways to roll a key back are measured: to one base, which is replaced when it is as old as the lateness;
and to forks, with a minimum number of the key's events between them. Seconds are processor time of the thread.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from events import SECOND, make_events
from measuring import machine, print_table, rows_wanted, timed
from patterns import PATTERNS

from cepheid import Matcher, Pattern
from cepheid.kernel.arrays import Int32s
from cepheid.matchers.real_time import matcher as real_time
from cepheid.matchers.real_time.rollback_points import RollbackPoints

FORKS = (16, 64, 256)
WORKLOADS = ((1_000, 10_000, 30), (10, 10_000, 1_200), (10, 500, 1_200))
"""The number of keys, the events per batch, and the lateness in seconds."""
NAMES = ("relaxed, all events relevant", "across events")


class OneBase(RollbackPoints):
    """The baseline: a key is rolled back to a state that is at least as old as the lateness."""

    every = 1 << 40
    lateness = 0

    def fork(self, keys: Int32s, step: int) -> None:
        due = keys[[self._is_old(key) for key in keys.tolist()]]
        self.forked[due] = self.seen[due] - self.every
        super().fork(due, step)

    def _is_old(self, key: int) -> bool:
        forks = self.forks[key]
        return not forks or int(self.after[key]) - forks[-1].after > self.lateness * SECOND


def disordered(events: pa.Table, share: float, lateness: int) -> pa.Table:
    """The events in the order of arrival; the share of them arrives late."""
    random = np.random.default_rng(1)
    at = events.column("at").cast(pa.int64()).to_numpy()
    late = np.where(random.random(len(at)) < share, random.random(len(at)) ** 3 * lateness * SECOND, 0)
    return events.take(pa.array(np.argsort(at + late, kind="stable")))


def measured(
    events: pa.Table, pattern: Pattern, batch: int, lateness: int, consistency: str | None
) -> tuple[float, Counter[str]]:
    """Thousand events per second, and the number of rows of each kind."""
    named: dict[str, Any] = {"key": "device", "time": "at", "outputs": ("matches", "late")}
    length = f"{lateness} seconds"
    matcher = Matcher(pattern, events.schema, lateness=length, columns=[], consistency=consistency, **named)
    pieces = [events.slice(start, batch) for start in range(0, len(events), batch)]
    kinds = Counter[str]()

    def work() -> None:
        for rows in [*map(matcher.process, pieces), matcher.finish()]:
            kinds.update(rows.column("kind").to_pylist())

    seconds, _ = timed(work, clock=time.thread_time)
    return len(events) / seconds / 1e3, kinds


def lines_of(rows: int, keys: int, batch: int, lateness: int, name: str) -> list[list[Any]]:
    events, pattern = make_events(rows, keys, ordered=False), PATTERNS[name]
    measured(events.slice(0, 1000), pattern, batch, lateness, "realtime")
    lines = []
    for share in (0.0, 0.01, 0.1, 0.45):
        arriving = disordered(events, share, lateness)
        plain, kinds = measured(arriving, pattern, batch, lateness, None)
        line: list[Any] = [name, keys, batch, lateness, f"{share:.0%}", plain]
        OneBase.lateness, real_time.RollbackPoints = lateness, OneBase  # type: ignore[attr-defined]
        line.append(measured(arriving, pattern, batch, lateness, "realtime")[0])
        real_time.RollbackPoints = RollbackPoints  # type: ignore[attr-defined]
        retractions = 0
        for every in FORKS:
            RollbackPoints.every = every
            speed, emitted = measured(arriving, pattern, batch, lateness, "realtime")
            assert emitted["insertion"] - emitted["retraction"] == kinds["match"]
            line.append(speed)
            retractions = emitted["retraction"]
        lines.append([*line, kinds["match"], retractions])
    return lines


def main() -> None:
    rows = rows_wanted("A Matcher over events out of order", default=200_000)
    print(machine())
    lines = []
    for keys, batch, lateness in WORKLOADS:
        for name in NAMES:
            lines += lines_of(rows, keys, batch, lateness, name)
    head = [
        "pattern",
        "keys",
        "batch",
        "lateness, s",
        "out of order",
        "conservative",
        "one base",
        *(f"points {n}" for n in FORKS),
    ]
    print_table(f"{rows:,} events, thousand events/s", [*head, "matches", "retracted"], lines)


if __name__ == "__main__":
    main()
