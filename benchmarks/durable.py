"""Durable hosts: how fast rows of open partial matches change, how a host bears very many of them, and how many
patterns it can run at once. On each kind of store that runs here, beside the same rows written by its driver alone; and
a host in files beside the bare Matcher.

python benchmarks/durable.py --rows 1000000 --store sqlite    # open partial matches
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
from durable_stores import NAMES, raw_changes, stores
from events import make_events
from measuring import machine, print_table, timed
from patterns import PATTERNS as PATTERNS_OF_STAGES

from cepheid import Matcher, Pattern
from cepheid.host import Host, open_host
from cepheid.hosts.durable.host import Fed

START = 1_767_225_600_000_000
SECOND = 1_000_000
SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("device", pa.int64()), ("phase", pa.int64())]
)
CHANGED = 20_000
"""The number of rows that change in one feed."""
AT_ONCE = 50_000
"""The events a feed while very many partial matches are opened."""
SMALL = 1_000
WAKEUPS = 10_000
FEED, FEEDS, WARM_UP = 10_000, 150, 4
PATTERNS, CONCERNED, RARE = 1_000, 10, (0, 1, 10)

STEPS = (
    Pattern.begin("first", name="steps")
    .where("phase = 0")
    .followed_by("second")
    .where("phase = 1")
    .followed_by("third")
    .where("phase = 2")
    .within("1 hour")
)
PAIRS = (
    Pattern.begin("first", name="pairs").where("phase = 0").followed_by("second").where("phase = 1").within("1 hour")
)


class Feeder:
    """Feeds events with ascending ids."""

    def __init__(self, host: Host) -> None:
        self.host, self.fed = host, 0

    def feed(self, device: np.ndarray, at: np.ndarray, phase: int) -> float:
        """The seconds that it took."""
        count = len(device)
        ids = self.fed + np.arange(count)
        events = pa.table(
            {
                "id": ids,
                "at": pa.array(START + at).cast(pa.timestamp("us", "UTC")),
                "device": device,
                "phase": np.full(count, phase),
            },
            SCHEMA,
        )
        self.fed += count
        seconds, _ = timed(lambda: self.host.feed(events, input="events", position=self.fed))
        return seconds


def opened(url: str) -> Host:
    host = open_host(url)
    host.input("events", SCHEMA, time="at", sequence="id")
    return host


def measure_changes(kind: str, url: str) -> list[object]:
    """One event for each of many keys: rows of open partial matches come, then change, then go with a match each."""
    with opened(url) as host:
        host.deploy(STEPS, input="events", key="device", columns="id")
        feeder, devices = Feeder(host), np.arange(CHANGED)
        feeder.feed(devices[:10], np.zeros(10, np.int64), 0)
        seconds = [feeder.feed(devices, np.full(CHANGED, step * SECOND), step % 3) for step in range(3, 15)]
        feeder.feed(devices, np.full(CHANGED, 15 * SECOND), 0)
        rows = host.sql("SELECT * FROM open_steps").select(NAMES)
    replace = raw_changes(kind, url, rows)
    replace()
    raw = statistics.median(timed(replace)[0] for _ in range(3))
    return [kind, *(CHANGED / statistics.median(seconds[step::3]) for step in range(3)), CHANGED / raw]


def measure_many(kind: str, url: str, rows: int) -> list[list[object]]:
    """Very many open partial matches."""
    host = opened(url)
    host.deploy(PAIRS, input="events", key="device", columns="id")
    feeder = Feeder(host)
    opening = [
        feeder.feed(np.arange(first, first + AT_ONCE), first + np.arange(AT_ONCE), 0)
        for first in range(0, rows, AT_ONCE)
    ]
    small, time = [], rows
    for _ in range(200):  # the devices are new, until the log is due to be replaced by a snapshot
        device = np.arange(rows, rows + SMALL) + feeder.fed
        small.append(feeder.feed(device, time + np.arange(SMALL), 0))
        time += SMALL
    query = "SELECT stage, wakeup FROM open_pairs WHERE device = {}"
    queries = [timed(partial(host.sql, query.format(at)))[0] for at in random.Random(0).sample(range(rows), 20)]
    deploying, _ = timed(lambda: host.deploy(STEPS, input="events", key="device", columns="id"))
    after = PAIRS.named("pairs", version=2)
    draining, _ = timed(lambda: host.deploy(after, input="events", key="device", columns="id", old="drain"))
    waking, _ = timed(lambda: host.advance_time(instant(3600 * SECOND + WAKEUPS - 1)))
    open_ = host.sql("SELECT count(*) AS n FROM open_pairs").column(0)[0].as_py()
    assert open_ == feeder.fed - WAKEUPS, (open_, feeder.fed)
    host.close()
    started = perf_counter()
    host = open_host(url)
    restart = perf_counter() - started
    host.close()
    return [
        [kind, "opening: events/s", rows / sum(opening)],
        [kind, f"opening: longest feed of {AT_ONCE:,}, ms", 1e3 * max(opening)],
        [kind, f"longest feed of {SMALL:,}, ms", 1e3 * max(small)],
        [kind, f"median feed of {SMALL:,}, ms", 1e3 * statistics.median(small)],
        [kind, "indexed query, ms", 1e3 * statistics.median(queries)],
        [kind, "deploy, ms", 1e3 * deploying],
        [kind, "deploy in place of a version that drains, ms", 1e3 * draining],
        [kind, f"{WAKEUPS:,} wakeups, ms", 1e3 * waking],
        [kind, "restart, ms", 1e3 * restart],
    ]


def measure_files(url: str, name: str) -> list[object]:
    """A host in files beside the bare Matcher: the same events in feeds of 10,000, which it commits one by one. The two
    take turns.
    """
    pattern, count = PATTERNS_OF_STAGES[name].named("stages"), FEEDS + WARM_UP
    events = make_events(FEED * count, 1_000, ordered=False)
    events = events.append_column("id", pa.array(np.arange(events.num_rows)))
    matcher = Matcher(pattern, events.schema, time="at", key="device", sequence="id", lateness="0 seconds")
    seconds, found = np.zeros((2, count, 2)), [0, 0]
    with open_host(url) as host:
        host.input("events", events.schema, time="at", sequence="id")
        host.deploy(pattern, input="events", key="device")
        for number in range(count):
            table = events.slice(number * FEED, FEED)
            works: list[Callable[[], pa.Table | Fed]] = [
                partial(matcher.process, table),
                partial(host.feed, table, input="events", position=(number + 1) * FEED),
            ]
            for side in (number % 2, 1 - number % 2):
                processor = process_time()
                taken, rows = timed(works[side])
                seconds[side, number] = process_time() - processor, taken
                found[side] += rows.num_rows if isinstance(rows, pa.Table) else sum(map(len, rows.rows.values()))
    assert found[0] == found[1], found
    alone, stored = seconds[:, WARM_UP:]
    medians, sums = np.median(alone / stored, axis=0), alone.sum(axis=0) / stored.sum(axis=0)
    clock = stored[:, 1]
    return [name, found[0], *map(float, (*medians, *sums)), FEED / float(clock.mean()) / 1e6, 1e3 * float(clock.max())]


def instant(at: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)


def measure_patterns(kind: str, url: str, patterns: int, *, rare: int) -> list[object]:
    """Many patterns, of which ten look at each kind of event. Of a thousand events of the kind, `rare` start a partial
    match of each of the ten, and as many end one.
    """
    kinds, deploying = patterns // CONCERNED, []
    schema = SCHEMA.append(pa.field("level", pa.int64()))
    with open_host(url) as host:
        host.input("events", schema, time="at", sequence="id")
        for number in range(patterns):
            own = f"phase = {number % kinds} AND level"
            pattern = Pattern.begin("first", name=f"p{number}").where(f"{own} >= {1000 - rare}")
            pattern = pattern.followed_by("second").where(f"{own} < {rare}").within("1 hour")
            deploy = partial(host.deploy, pattern, input="events", key="device", columns="id")
            deploying.append(timed(deploy)[0])
        chosen, seconds, fed = np.random.default_rng(0), [], 0
        for _ in range(30):
            columns = {
                "id": fed + np.arange(SMALL),
                "at": pa.array(START + (fed + np.arange(SMALL)) * 1000).cast(pa.timestamp("us", "UTC")),
                "device": chosen.integers(0, 1000, SMALL),
                "phase": chosen.integers(0, kinds, SMALL),
                "level": chosen.integers(0, 1000, SMALL),
            }
            fed += SMALL
            feed = partial(host.feed, pa.table(columns, schema), input="events", position=fed)
            seconds.append(timed(feed)[0])
    speed = SMALL / statistics.median(seconds)
    return [kind, patterns, rare, 1e3 * statistics.median(deploying), speed, 1e3 * max(seconds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="open partial matches (default 1,000,000)")
    parser.add_argument("--patterns", type=int, default=PATTERNS)
    parser.add_argument("--store", help="sqlite, duckdb or postgresql; without it, all")
    parser.add_argument("--only", choices=("changes", "many", "patterns", "files"))
    given = parser.parse_args()
    print(machine())
    if given.only in (None, "files"):
        with TemporaryDirectory(dir="/var/tmp") as folder:
            lines = [measure_files(f"file://{folder}/{number}", name) for number, name in enumerate(PATTERNS_OF_STAGES)]
        of = ("median, processor", "median, clock", "whole, processor", "whole, clock")
        head = ["pattern", "matches", *of, "M events/s", "longest feed, ms"]
        print_table(f"Host in files ÷ bare Matcher, {FEED:,} events a feed, each synced", head, lines)
        if given.only == "files":
            return
    with stores(given.store) as kinds:
        if given.only in (None, "changes"):
            lines = [measure_changes(kind, url("changes")) for kind, url in kinds.items()]
            head = ["store", "rows/s that come", "that change", "that go", "driver alone: replaced"]
            print_table(f"{CHANGED:,} changed rows a feed", head, lines)
        if given.only in (None, "many"):
            for kind, url in kinds.items():
                lines = measure_many(kind, url("many"), given.rows)
                print_table(f"{given.rows:,} open partial matches", ["store", "what", "measured"], lines)
        if given.only in (None, "patterns"):
            lines = [
                measure_patterns(kind, url(f"patterns{rare}"), given.patterns, rare=rare)
                for kind, url in kinds.items()
                for rare in RARE
            ]
            head = ["store", "patterns", "of 1,000 start", "deploy, ms", "events/s", "longest feed, ms"]
            print_table(f"Many patterns, {CONCERNED} concerned by each event", head, lines)


if __name__ == "__main__":
    main()
