"""Patterns without key, and with a key that has most of the events, on Spark: in time slices on all cores, and not.

Beside the seconds, which depend on what else the machine does, it measures the processor time of the busiest of Spark's
Python workers: the matching. With slices it is shared.

python benchmarks/spark_slices.py --case key    # nine in ten events have the same key
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import alternating, machine, print_table

from cepheid import Limits, Pattern, Report, detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_SECOND, SECOND = 10, 1_000_000
ROUNDS = 3


class Case(NamedTuple):
    """How events are detected in time slices, and without them."""

    slices: dict[str, Any]
    whole: dict[str, Any]
    title: str


CASES = {
    # A limit counts the partial matches of all starts together, so events are not divided.
    "none": Case({}, {"limits": Limits(on_limit="drop")}, "without key"),
    "key": Case({"key": "sensor", "slices": True}, {"key": "sensor"}, "nine in ten events with the same key"),
}
PATTERNS = {
    "next, few open": Pattern.begin("a").where("price < 5").next("b").where("price > 95").within("10 minutes"),
    "300 open, by index": (
        Pattern.begin("a")
        .where("price BETWEEN 20 AND 25")
        .followed_by_any("b")
        .where("price > a.price * 4.99")
        .within("10 minutes")
    ),
    "300 open, each visited": (
        Pattern.begin("a").followed_by_any("b").where("abs(price - a.price) > 99.9").within("30 seconds")
    ),
    "1,200 open, each visited": (
        Pattern.begin("a").followed_by_any("b").where("abs(price - a.price) > 99.9").within("2 minutes")
    ),
}


def make_events(rows: int) -> pa.Table:
    """Ten events a second."""
    random = np.random.default_rng(1)
    at = np.arange(rows) * (SECOND // PER_SECOND)
    return pa.table(
        {
            "id": np.arange(rows),
            "sensor": np.where(random.random(rows) < 0.9, 0, random.integers(1, 1_000, rows)),
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "price": np.round(random.random(rows) * 100, 3),
        }
    )


def find(events: DataFrame, pattern: Pattern, options: dict[str, Any], report: Report | None = None) -> None:
    found = detect(events, pattern, time="at", sequence="id", columns=["id"], report=report, **options)
    found.write.format("noop").mode("overwrite").save()


def matches(events: DataFrame, pattern: Pattern, options: dict[str, Any]) -> int:
    """The number of matches. Warms up Spark's own code, and the workers load the kernel."""
    report = Report()
    find(events, pattern, options, report)
    return report.counts.matches


def busiest(work: Callable[[], None]) -> float:
    """The seconds of processor time that the work has taken in the busiest Python worker below this process."""
    before = _processor_seconds()
    work()
    return max(seconds - before.get(pid, 0.0) for pid, seconds in _processor_seconds().items())


def _processor_seconds() -> dict[int, float]:
    """By process, of all descendants of this one that run Python."""
    parents, seconds = dict[int, int](), dict[int, float]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        parents[int(folder.name)] = int(fields[1])
        if "(python" in name:
            seconds[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: seconds[pid] for pid in below & {*seconds} - {os.getpid()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="events to measure with (default 1,000,000)")
    parser.add_argument("--case", choices=CASES, default="none")
    wanted = parser.parse_args()
    case = CASES[wanted.case]
    print(machine())
    session = local_session("benchmark", time_zone="UTC")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pq.write_table(make_events(wanted.rows), path, row_group_size=1 << 17)
        events = session.read.parquet(str(path))
        for name, pattern in PATTERNS.items():
            count = matches(events, pattern, case.slices)
            assert count == matches(events, pattern, case.whole)
            ways = {
                "slices": partial(find, events, pattern, case.slices),
                "whole": partial(find, events, pattern, case.whole),
            }
            seconds = alternating(ways, rounds=ROUNDS)
            whole, slices = (busiest(ways[way]) for way in ("whole", "slices"))
            lines.append([name, count, seconds["whole"], seconds["slices"], whole, slices, whole / slices])
            print(lines[-1], flush=True)
    head = ["", "matches", "whole, s", "slices, s", "busiest worker of the whole, s", "of slices, s", "ratio"]
    print_table(f"Spark batch, {case.title}, {wanted.rows:,} events", head, lines)
    session.stop()


if __name__ == "__main__":
    main()
