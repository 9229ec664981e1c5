"""detect with one worker and with several: one key with most of the events, even keys, no key, and little to do."""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from flinkcep_workloads import KEYED
from measuring import machine, print_table, rows_wanted, timed

from cepheid import Pattern, Skip, detect
from cepheid.hosts.in_process.workers.pool import idle_workers
from cepheid.requests.arguments import cores

SECOND = 1_000_000
RISING = next(workload.pattern for workload in KEYED if workload.name == "P8")
OPEN = Pattern.begin("a").where("kind = 0").followed_by_any("b")
TRIPLED = OPEN.where("price > a.price * 3").within("10000 seconds")
APART = OPEN.where("abs(price - a.price) > 100.9").within("1000 seconds")  # no index finds what fits
CHEAP = Pattern.begin("a").where("price < 60").next("b").where("price > 140").within("30 seconds")

PAST_LAST = Skip.past_last_event()
BY_TWOS = Pattern.begin("a").next("b").within("30 seconds").skip(PAST_LAST)
"""Half of the slices are repeated, as which events are pairs depends on all before."""


class Case(NamedTuple):
    name: str
    pattern: Pattern
    share: float
    """The share of the events that the first of 100 keys has."""
    keyed: bool = True
    part: float = 1.0
    """The part of the events that are used: fewer where each takes long."""


CASES = [
    Case("P8, one key with 90 %", RISING, 0.9),
    Case("P8, even keys", RISING, 0.01),
    Case("P8, no key", RISING, 0.01, keyed=False),
    Case("10,000 open, one key with 90 %", TRIPLED, 0.9),
    Case("1,000 open, each visited, no key", APART, 0.9, keyed=False, part=0.1),
    Case("1,000 open, each visited, one key with 90 %", APART, 0.9, part=0.1),
    Case("1,000 open, each visited, no key, to next", APART.skip(Skip.to_next()), 0.9, keyed=False, part=0.1),
    Case("1,000 open, each visited, no key, past last", APART.skip(PAST_LAST), 0.9, keyed=False, part=0.1),
    Case("P8, no key, past last", RISING.skip(PAST_LAST), 0.01, keyed=False),
    Case("by twos, no key, past last", BY_TWOS, 0.01, keyed=False),
    Case("two rare conditions, even keys", CHEAP, 0.01),
]


def events(rows: int, share: float) -> pa.Table:
    """One event per second, of 100 keys of which the first has this share."""
    random = np.random.default_rng(1)
    key = np.where(random.random(rows) < share, 0, random.integers(1, 100, rows))
    return pa.table(
        {
            "device": key,
            "at": pa.array(np.arange(rows) * SECOND).cast(pa.timestamp("us", "UTC")),
            "kind": np.zeros(rows, np.int64),
            "price": random.uniform(50, 151, rows),
        }
    )


def measure(case: Case, rows: int) -> list[object]:
    table, key = events(int(rows * case.part), case.share), "device" if case.keyed else None

    def found(workers: int, of: pa.Table = table) -> pa.Table:
        return detect(of, case.pattern, key=key, time="at", columns=[], workers=workers)

    few = table.slice(0, 1000)
    assert found(1, few).equals(found(cores(), few))  # starts the processes, which remain
    taken: dict[int, list[Taken]] = {1: [], cores(): []}
    matches = set[int]()
    for _ in range(3):
        for workers, all_taken in taken.items():
            before = processor_times()
            seconds, rows_found = timed(partial(found, workers))
            matches.add(len(rows_found))
            spent = [after - former for after, former in zip(processor_times(), before, strict=True)]
            all_taken.append(Taken(seconds, spent[0] + max(spent[1:])))
    assert len(matches) == 1, matches
    one, several = (Taken(*map(statistics.median, zip(*all_taken, strict=True))) for all_taken in taken.values())
    return [case.name, matches.pop(), one.wall, several.wall, one.wall / several.wall, one.path / several.path]


class Taken(NamedTuple):
    wall: float
    path: float
    """Processor time of this process and of its busiest worker: what the call takes where cores are free, if the call
    does nothing else while workers work.
    """


def processor_times() -> list[float]:
    """The seconds of this process, and those of each worker."""
    pids = [worker.pid for worker in idle_workers()]
    return [time.process_time(), *map(_seconds_of, pids)]


def _seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=2_000_000)
    print(machine())
    head = ["events and pattern", "matches", "1 worker, s", f"{cores()} workers, s", "ratio", "ratio of processor time"]
    print_table(f"{rows:,} events", head, [measure(case, rows) for case in CASES])


if __name__ == "__main__":
    main()
