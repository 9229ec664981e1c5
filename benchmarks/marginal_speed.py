"""The marginal speed of FlinkCEP's local job and of `detect`, in process, on Spark and on a stream: n events by what 2n
events take longer than n. What is left of the time of n is the fixed cost.

Each side has as many events as it processes in the wanted seconds. On a stream a micro-batch has a million events, and
2n are all of them: the time that 2n take longer than n is that of the second half. Beside it, the speed of the same
stream without matchers, where each shard writes its events into one value of state.

`make bench-flinkcep` installs FlinkCEP, which needs a JDK of version 17 or newer. P5 is left out: a few hundred of its
events take seconds.

python benchmarks/marginal_speed.py --seconds 10 --only P1 P8
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from against_flinkcep import CORES, digits, found, found_on_spark, write_micro_batches
from flinkcep_peer import Peer, PeerMissing, compile_peer, write_events
from flinkcep_workloads import KEYED, Workload, interleaved
from measuring import machine, print_table, timed
from streaming import events_a_second, find_benchmarks, progress_of_all, run_to_end, stream_of, value_written

from cepheid import detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 1_000
FIRST = 200_000
ROUNDS = 3
SHOWS = 0.5
"""So many seconds more are not the noise of two runs."""
MOST = 12_000_000
"""As many events as fit the memory, twice."""
MICRO_BATCH = 1_000_000
MICRO_BATCHES = 20


class Marginal(NamedTuple):
    """What n and 2n events took."""

    events: int
    seconds: float
    twice: float

    @property
    def speed(self) -> float:
        """Events a second beyond the fixed cost."""
        return self.events / (self.twice - self.seconds)

    @property
    def fixed(self) -> float:
        """Seconds."""
        return max(0.0, 2 * self.seconds - self.twice)


def marginal(work: Callable[[int], float], seconds: float) -> Marginal:
    """`work` returns the seconds that so many events take. The first run is the warm-up. Then there are four times as
    many events until their number shows in the time, and so how many are wanted; these take the middle of some rounds.
    """
    work(FIRST)
    both = Marginal(FIRST, work(FIRST), work(2 * FIRST))
    while both.twice - both.seconds < SHOWS and both.events < MOST:
        events = min(MOST, 4 * both.events)
        both = Marginal(events, work(events), work(2 * events))
    events = min(MOST, max(both.events, int(both.speed * seconds) // FIRST * FIRST))
    rounds = [(work(events), work(2 * events)) for _ in range(ROUNDS)]
    return Marginal(events, *map(statistics.median, zip(*rounds, strict=True)))


@lru_cache(maxsize=1)
def events_of(workload: Workload) -> pa.Table:
    return workload.events(2 * MOST, KEYS)


@contextmanager
def flinkcep(classes: str, folder: Path, workload: Workload) -> Iterator[Callable[[int], float]]:
    """Runs the job on the first so many events."""
    path = folder / "events"
    write_events(events_of(workload), path)
    with Peer(classes, "job", path, workload.name) as peer:
        yield lambda events: peer.run(events).seconds


def in_process(workload: Workload, events: int) -> float:
    table = events_of(workload).slice(0, events)
    return timed(partial(found, table, workload))[0]


def on_spark(session: SparkSession, folder: Path, workload: Workload, events: int) -> float:
    path = folder / f"{events}.parquet"
    if not path.exists():
        pq.write_table(events_of(workload).slice(0, events), path, row_group_size=MICRO_BATCH)
    return timed(partial(found_on_spark, session.read.parquet(str(path)), workload))[0]


def on_a_stream(session: SparkSession, folder: Path, workload: Workload) -> tuple[float, float]:
    """Events a second, with `detect` and without matchers."""
    beside = session.newSession()
    beside.conf.set("spark.sql.shuffle.partitions", str(CORES))
    events = events_of(workload).slice(0, MICRO_BATCHES * MICRO_BATCH)
    files = write_micro_batches(events, folder, MICRO_BATCHES)
    options: dict[str, Any] = {"key": workload.key, "time": "at", "lateness": "0 seconds"}
    without = value_written(stream_of(beside, files), workload.pattern, **options)
    floor = run_to_end(without, folder / f"{files.name} checkpoint without matchers")
    rows = detect(stream_of(beside, files), workload.pattern, **options)
    query = run_to_end(rows, folder / f"{files.name} checkpoint")
    matches = progress_of_all(query).patterns[workload.pattern.name].matches
    if matches != (expected := found(events, workload)):
        sys.exit(f"{workload.name}: in process {expected:,} matches, on a stream {matches:,}")
    first_half = MICRO_BATCHES // 2
    speed, without_matchers = (events_a_second(one, least=MICRO_BATCH, warm_up=first_half) for one in (query, floor))
    return speed, without_matchers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="that n events take about (default 10)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="workloads, for example P1 P8")
    arguments = parser.parse_args()
    wanted = [one for one in KEYED if one.events is interleaved and (not arguments.only or one.name in arguments.only)]
    lines: list[list[object]] = []
    ratios: list[list[float]] = []
    with tempfile.TemporaryDirectory() as name:
        try:
            classes = compile_peer(Path(name) / "classes")
        except PeerMissing as missing:
            print(f"SKIPPED, nothing is compared with FlinkCEP: {missing}", file=sys.stderr)
            return
        print(machine())
        find_benchmarks()
        session = local_session("marginal speed", cores=CORES, time_zone="UTC")
        for workload in wanted:
            with tempfile.TemporaryDirectory(dir=name) as own:
                folder = Path(own)
                with flinkcep(classes, folder, workload) as job:
                    theirs = marginal(job, arguments.seconds)
                ours = marginal(partial(in_process, workload), arguments.seconds)
                spark = marginal(partial(on_spark, session, folder, workload), arguments.seconds)
                streams = on_a_stream(session, folder, workload)
            sides = [ours.speed, spark.speed, *streams]
            ratios.append([speed / theirs.speed for speed in sides])
            speeds = [digits(speed / 1e6) for speed in (theirs.speed, *sides)]
            fixed = [one.fixed for one in (theirs, ours, spark)]
            lines.append([workload.name, theirs.events, spark.events, *speeds, *ratios[-1], *fixed])
            print(workload.name, theirs, ours, spark, *map("{:,.0f}".format, streams), file=sys.stderr, flush=True)
        session.stop()
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    lines.append(["geometric mean", *[None] * 7, *means, *[None] * 3])
    head = ["", "events, FlinkCEP", "events, Spark", *(f"{side}, M events/s" for side in ("FlinkCEP", *_SIDES))]
    head += [*(f"ratio {side}" for side in _SIDES), *(f"fixed, {side}, s" for side in ("FlinkCEP", *_SIDES[:2]))]
    print_table(f"Marginal speeds, {KEYS:,} keys", head, lines)


_SIDES = ("in process", "on Spark", "on a stream", "a stream without matchers")


if __name__ == "__main__":
    main()
