"""Against FlinkCEP 2.3: its NFA alone beside the kernel alone, and its local job beside `detect`, in process, on Spark
and on a stream.

Both sides get the same events, take turns, and must find the same number of matches. `make bench-flinkcep` installs
FlinkCEP and calls this; it needs a JDK of version 17 or newer.

python benchmarks/against_flinkcep.py --rows 500000 --seconds 5 --only P1 P8    # a quick look
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from flinkcep_peer import Peer, PeerMissing, compile_peer, write_events
from flinkcep_workloads import KEYED, WITHOUT_KEY, Workload, one_key_after_the_other
from kernel_alone import kernel_alone
from measuring import machine, print_table, timed
from streaming import progress_of_all, run_to_end, stream_of

from cepheid import detect
from cepheid.hosts.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = (1_000, 100_000)
MICRO_BATCH = 500_000
WARM_UP = 3.0
"""Seconds that the loop has for Java to compile it."""


@dataclass
class Comparison:
    """The settings of a run, and what it has found so far."""

    rows: int
    seconds: float
    rounds: int
    only: Sequence[str]
    class_path: str
    folder: Path
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    """Events that FlinkCEP's loop gets to in `seconds`, by workload and keys."""
    differences: list[str] = field(default_factory=list)

    def wanted(self, workloads: Sequence[Workload]) -> list[Workload]:
        return [workload for workload in workloads if not self.only or workload.name.partition(",")[0] in self.only]

    def check(self, where: str, expected: int, found: int) -> None:
        if expected != found:
            self.differences.append(f"{where}: FlinkCEP finds {expected:,} matches, Cepheid {found:,}")
            print(f"DIFFERENT MATCHES in {self.differences[-1]}", file=sys.stderr, flush=True)


def compare_kernels(run: Comparison, workloads: Sequence[Workload], keys: int) -> None:
    """One thread each, and of each the seconds of its thread on the processor."""
    lines: list[list[object]] = []
    ratios = []
    wanted = run.wanted(workloads)
    if not wanted:
        return
    for workload in wanted:
        events = workload.events(run.rows, keys)
        path = run.folder / "events"
        write_events(events, path)
        with Peer(run.class_path, "loop", path, workload.name) as peer:
            peer.run(run.rows, seconds=min(WARM_UP, run.seconds))
            first = peer.run(run.rows, seconds=run.seconds)
            kernel = kernel_alone(in_order(events.slice(0, first.events), workload), workload.pattern, key=workload.key)
            run.check(f"{workload.name}, kernel, {keys:,} keys", first.matches, kernel())
            theirs, ours = [first.seconds], [on_processor(kernel)]
            for _ in range(run.rounds - 1):
                theirs.append(peer.run(first.events).seconds)
                ours.append(on_processor(kernel))
        run.reached[workload.name, keys] = first.events
        flink, cepheid = (statistics.median(seconds) for seconds in (theirs, ours))
        ratios.append(flink / cepheid)
        shown = f"FlinkCEP {flink:.2f} s, kernel {cepheid:.4f} s"
        print(f"{workload.name}, {keys:,} keys, {first.events:,} events: {shown}", file=sys.stderr, flush=True)
        more = at_most(events, workload, run.seconds / 4) if workload in WITHOUT_KEY else []
        speeds = [first.events / seconds / 1e6 for seconds in (flink, cepheid)]
        lines.append(
            [workload.name, workload.what, first.events, first.matches, *map(digits, speeds), ratios[-1], *more]
        )
    head = ["", "pattern", "events", "matches", "FlinkCEP, M events/s", "kernel, M events/s", "ratio"]
    if workloads is WITHOUT_KEY:
        head += ["of more events", "M events/s", "M matches/s"]
    title = f"FlinkCEP's NFA and the kernel, one thread each, {keys:,} keys" if keys > 1 else "The same without a key"
    print_table(title, head, lines)
    print(f"\nGeometric mean of the ratios: {statistics.geometric_mean(ratios):.0f}", flush=True)


def at_most(events: pa.Table, workload: Workload, seconds: float) -> list[object]:
    """What the kernel does with all events or, as it cannot be stopped, with as many as have not taken too long:
    FlinkCEP's share of them may not even fill a window. Events, M events/s and M matches/s.
    """
    count = 1_000
    while True:
        kernel = kernel_alone(events.slice(0, count), workload.pattern, key=workload.key)
        matches = kernel()
        taken = on_processor(kernel)
        if taken > seconds / 8 or count >= len(events):
            return [min(count, len(events)), digits(count / taken / 1e6), matches / taken / 1e6]
        count = min(2 * count, len(events))


def compare_end_to_end(run: Comparison, keys: int) -> None:
    """From events in memory (on Spark in Parquet) to matches: of each the seconds that pass."""
    wanted = [workload for workload in run.wanted(KEYED) if (workload.name, keys) in run.reached]
    if not wanted:
        return
    session = local_session("against FlinkCEP", cores=2, time_zone="UTC")
    lines: list[list[object]] = []
    ratios = []
    for workload in wanted:
        count = run.reached[workload.name, keys]
        events = workload.events(run.rows, keys).slice(0, count)
        write_events(events, run.folder / "events")
        parquet = str(run.folder / f"{workload.name}-{keys}.parquet")
        pq.write_table(events, parquet)
        works: dict[str, Callable[[], int]] = {
            "in process": partial(found, events, workload),
            "sorted": partial(found, in_order(events, workload), workload),
            "Spark": partial(found_on_spark, session.read.parquet(parquet), workload),
            "stream": partial(found_on_stream, session, write_micro_batches(events, run.folder), workload),
        }
        with Peer(run.class_path, "job", run.folder / "events", workload.name) as peer:
            expected = peer.run(count).matches  # warms up, as the first of the others do
            for name, work in works.items():
                run.check(f"{workload.name}, {name}, {keys:,} keys", expected, work())
            seconds: dict[str, list[float]] = {name: [] for name in ("FlinkCEP", *works)}
            for _ in range(run.rounds):
                seconds["FlinkCEP"].append(peer.run(count).seconds)
                for name, work in works.items():
                    seconds[name].append(timed(work)[0])
        medians = [statistics.median(taken) for taken in seconds.values()]
        ratios.append([medians[0] / taken for taken in medians[1:]])
        shown = ", ".join(f"{name} {taken:.2f} s" for name, taken in zip(seconds, medians, strict=True))
        print(f"{workload.name}, {keys:,} keys, {count:,} events: {shown}", file=sys.stderr, flush=True)
        speeds = [digits(count / taken / 1e6) for taken in medians]
        lines.append([workload.name, count, expected, *speeds, *ratios[-1]])
    session.stop()
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    lines.append(["geometric mean", *[None] * 7, *means])
    sides = ["in process", "in process, sorted", "on Spark", "on a stream"]
    head = ["", "events", "matches", "FlinkCEP, M events/s", *(f"{side}, M events/s" for side in sides)]
    print_table(
        f"FlinkCEP's local job and `detect`, {keys:,} keys", [*head, *(f"ratio {side}" for side in sides)], lines
    )


def in_order(events: pa.Table, workload: Workload) -> pa.Table:
    """By key and time; without a key they are."""
    return events.sort_by([("key", "ascending"), ("at", "ascending")]) if workload.key else events


def found(events: pa.Table, workload: Workload) -> int:
    return int(detect(events, workload.pattern, key=workload.key, time="at").num_rows)


def found_on_spark(events: DataFrame, workload: Workload) -> int:
    return int(detect(events, workload.pattern, key=workload.key, time="at").count())


def write_micro_batches(events: pa.Table, folder: Path) -> Path:
    """A file a micro-batch; the last has one event that lets time pass all others, and that is of no kind."""
    files = Path(tempfile.mkdtemp(dir=folder))
    for number, first in enumerate(range(0, len(events), MICRO_BATCH)):
        pq.write_table(events.slice(first, MICRO_BATCH), files / f"{number:03}.parquet")
    latest = pc.max(events.column("at")).as_py()
    end = {"key": -1, "at": latest + timedelta(days=1), "kind": -1, "price": 0.0, "v": -1}
    pq.write_table(pa.Table.from_pylist([end], schema=events.schema), files / "end.parquet")
    return files


def found_on_stream(session: SparkSession, files: Path, workload: Workload) -> int:
    """With the start of the query and its first plans."""
    rows = detect(stream_of(session, files), workload.pattern, key=workload.key, time="at", lateness="0 seconds")
    with tempfile.TemporaryDirectory(dir=files.parent) as checkpoint:
        return progress_of_all(run_to_end(rows, Path(checkpoint))).patterns[workload.pattern.name].matches


def on_processor(kernel: Callable[[], int]) -> float:
    return timed(kernel, clock=time.thread_time)[0]


def digits(speed: float) -> str:
    """With three digits, as speeds here are from a few events a second to a hundred million."""
    return f"{speed:.{3}g}" if speed < 1e3 else f"{speed:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="events at most (default 2,000,000)")
    parser.add_argument("--seconds", type=float, default=10, help="that FlinkCEP's loop gets at most (default 10)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median counts (default 3)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="workloads, for example P1 W4")
    parser.add_argument("--kernel-only", action="store_true", help="leave out the comparison end to end")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            class_path = compile_peer(Path(folder) / "classes")
        except PeerMissing as missing:
            print(f"SKIPPED, nothing is compared with FlinkCEP: {missing}", file=sys.stderr)
            return
        print(machine())
        options = arguments.rows, arguments.seconds, arguments.rounds, arguments.only
        run = Comparison(*options, class_path, Path(folder))
        for keys in KEYS:
            # one key after the other, a few thousand events know nothing of so many keys
            compare_kernels(run, [w for w in KEYED if keys == KEYS[0] or w.events is not one_key_after_the_other], keys)
        compare_kernels(run, WITHOUT_KEY, 1)
        for keys in () if arguments.kernel_only else KEYS:
            compare_end_to_end(run, keys)
    if run.differences:
        sys.exit("\n".join(["", "MATCHES DIFFER:", *run.differences]))


if __name__ == "__main__":
    main()
