"""Comparison with FlinkCEP 2.3: its NFA alone with the kernel alone, and its local job with `detect`, in process, on
Spark and on a stream.

Both sides get the same events, take turns, and must find the same number of matches. A stream gets more events, as it
is measured without its start; it must find as many matches as `detect` finds in process.

`make bench-flinkcep` installs FlinkCEP and runs this program, which needs a JDK of version 17 or newer.

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
from flinkcep_workloads import KEYED, WITHOUT_KEY, Workload, interleaved, one_key_after_the_other
from kernel_alone import kernel_alone
from measuring import machine, print_table, timed
from streaming import events_a_second, progress_of_all, run_to_end, stream_of

from cepheid import detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = (1_000, 100_000)
CORES = 2
MICRO_BATCHES = 4
MATCHES_OF_A_STREAM = 2_000_000
"""The approximate maximum number of matches of a stream."""
WARM_UP = 3.0
"""Seconds for which the loop runs unmeasured, so that Java compiles it."""


@dataclass
class Comparison:
    """The settings of a run, and its results so far."""

    rows: int
    seconds: float
    rounds: int
    only: Sequence[str]
    class_path: str
    folder: Path
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    """The number of events that FlinkCEP's loop processes in `seconds`, by workload and number of keys."""
    differences: list[str] = field(default_factory=list)

    def wanted(self, workloads: Sequence[Workload]) -> list[Workload]:
        return [workload for workload in workloads if not self.only or workload.name.partition(",")[0] in self.only]

    def check(self, where: str, expected: int, found: int) -> None:
        if expected != found:
            self.differences.append(f"{where}: FlinkCEP finds {expected:,} matches, Cepheid {found:,}")
            print(f"DIFFERENT MATCHES in {self.differences[-1]}", file=sys.stderr, flush=True)


def compare_kernels(run: Comparison, workloads: Sequence[Workload], keys: int) -> None:
    """Compares the two on one thread each, by the processor time of that thread."""
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
    """The speed of the kernel on as many events as it processes in about an eighth of `seconds`, or on all. FlinkCEP
    processes so few events that they may not even fill a window. Returns the number of events, M events/s and M
    matches/s. The kernel cannot be interrupted, so the number of events is doubled until the time is reached.
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
    """Compares the elapsed seconds from events in memory (on Spark in Parquet) to matches."""
    wanted = [workload for workload in run.wanted(KEYED) if (workload.name, keys) in run.reached]
    if not wanted:
        return
    session = local_session("against FlinkCEP", cores=CORES, time_zone="UTC")
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
        }
        with Peer(run.class_path, "job", run.folder / "events", workload.name) as peer:
            expected = peer.run(count).matches  # also the warm-up, as is the first run of each of the others
            for name, work in works.items():
                run.check(f"{workload.name}, {name}, {keys:,} keys", expected, work())
            seconds: dict[str, list[float]] = {name: [] for name in ("FlinkCEP", *works)}
            for _ in range(run.rounds):
                seconds["FlinkCEP"].append(peer.run(count).seconds)
                for name, work in works.items():
                    seconds[name].append(timed(work)[0])
        speeds = [count / statistics.median(taken) for taken in seconds.values()]
        speeds.append(speed_on_stream(run, session, workload, events_of_stream(run, workload, keys, expected / count)))
        ratios.append([speed / speeds[0] for speed in speeds[1:]])
        shown = ", ".join(f"{name} {speed / 1e6:.3g}" for name, speed in zip([*seconds, "stream"], speeds, strict=True))
        print(f"{workload.name}, {keys:,} keys, {count:,} events, M/s: {shown}", file=sys.stderr, flush=True)
        lines.append([workload.name, count, expected, *(digits(speed / 1e6) for speed in speeds), *ratios[-1]])
    session.stop()
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    lines.append(["geometric mean", *[None] * 7, *means])
    sides = ["in process", "in process, sorted", "on Spark", "on a stream"]
    head = ["", "events", "matches", "FlinkCEP, M events/s", *(f"{side}, M events/s" for side in sides)]
    print_table(
        f"FlinkCEP's local job and `detect`, {keys:,} keys", [*head, *(f"ratio {side}" for side in sides)], lines
    )


def in_order(events: pa.Table, workload: Workload) -> pa.Table:
    """The events sorted by key and time; without a key they are sorted already."""
    return events.sort_by([("key", "ascending"), ("at", "ascending")]) if workload.key else events


def found(events: pa.Table, workload: Workload) -> int:
    return int(detect(events, workload.pattern, key=workload.key, time="at").num_rows)


def found_on_spark(events: DataFrame, workload: Workload) -> int:
    return int(detect(events, workload.pattern, key=workload.key, time="at").count())


def events_of_stream(run: Comparison, workload: Workload, keys: int, matches: float) -> pa.Table:
    """The events for the stream: at least as many as the other hosts get, and more while there are at most about
    MATCHES_OF_A_STREAM matches, at `matches` per event. A workload with one key after the other gets no more than the
    other hosts, as a few of its events may have thousands of matches.
    """
    of_all = run.reached[workload.name, keys]
    enough = max(of_all, int(MATCHES_OF_A_STREAM / max(matches, 0.01)))
    return workload.events(run.rows, keys).slice(0, enough if workload.events is interleaved else of_all)


def speed_on_stream(run: Comparison, session: SparkSession, workload: Workload, events: pa.Table) -> float:
    """Events per second of the micro-batches after the first: planning, matching and commit."""
    beside = session.newSession()
    beside.conf.set("spark.sql.shuffle.partitions", str(CORES))
    files = write_micro_batches(events, run.folder)
    expected = found(events, workload)
    speeds = []
    for number in range(run.rounds):
        rows = detect(stream_of(beside, files), workload.pattern, key=workload.key, time="at", lateness="0 seconds")
        query = run_to_end(rows, run.folder / f"{files.name} {number}")
        matches = progress_of_all(query).patterns[workload.pattern.name].matches
        if matches != expected:
            run.differences.append(f"{workload.name}: in process {expected:,} matches, on a stream {matches:,}")
        speeds.append(events_a_second(query, least=len(events) // MICRO_BATCHES, warm_up=1))
    return statistics.median(speeds)


def write_micro_batches(events: pa.Table, folder: Path, count: int = MICRO_BATCHES) -> Path:
    """Writes one file per micro-batch, with a row group for each core. The last file has one event, of no kind of the
    pattern, whose time moves the watermark past all other events.
    """
    files = Path(tempfile.mkdtemp(dir=folder))
    size = len(events) // count
    for number in range(count):
        rows = size if number < count - 1 else len(events)
        part = events.slice(number * size, rows)
        pq.write_table(part, files / f"{number:03}.parquet", row_group_size=-(-len(part) // CORES))
    latest = pc.max(events.column("at")).as_py()
    end = {"key": -1, "at": latest + timedelta(days=1), "kind": -1, "price": 0.0, "v": -1}
    pq.write_table(pa.Table.from_pylist([end], schema=events.schema), files / "end.parquet")
    return files


def on_processor(kernel: Callable[[], int]) -> float:
    return timed(kernel, clock=time.thread_time)[0]


def digits(speed: float) -> str:
    """The speed with three digits, as speeds range from a few events per second to a hundred million."""
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
            # a few thousand events, one key after the other, contain only a few of so many keys
            compare_kernels(run, [w for w in KEYED if keys == KEYS[0] or w.events is not one_key_after_the_other], keys)
        compare_kernels(run, WITHOUT_KEY, 1)
        for keys in () if arguments.kernel_only else KEYS:
            compare_end_to_end(run, keys)
    if run.differences:
        sys.exit("\n".join(["", "MATCHES DIFFER:", *run.differences]))


if __name__ == "__main__":
    main()
