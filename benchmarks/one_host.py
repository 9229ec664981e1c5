"""One host that matches the same events again and again until its input ends, for a profiler to look at.

python benchmarks/one_host.py "in process" P1 --rows 3000000

It prints a line once it has warmed up. A stream has its events in six micro-batches.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from flinkcep_workloads import KEYED, Workload
from measuring import machine
from streaming import run_to_end, stream_of

from cepheid import detect
from cepheid.hosts.spark.session import local_session

KEYS = 1_000
BATCHES = 6
FIRST = 3
"""So many runs warm up."""
HOSTS = ("in process", "Spark batch", "stream")

Work = Callable[[], object]


def in_process(workload: Workload, events: pa.Table, _: Path) -> Work:
    return lambda: detect(events, workload.pattern, key=workload.key, time="at")


def spark_batch(workload: Workload, events: pa.Table, folder: Path) -> Work:
    """Two files, one for each core."""
    half = -(-len(events) // 2)
    for number in range(2):
        pq.write_table(events.slice(number * half, half), folder / f"{number}.parquet")
    rows = local_session("one host", time_zone="UTC").read.parquet(str(folder))
    found = detect(rows, workload.pattern, key=workload.key, time="at")
    return lambda: found.write.format("noop").mode("overwrite").save()


def stream(workload: Workload, events: pa.Table, folder: Path) -> Work:
    """A query from its first micro-batch to its last one."""
    size = -(-len(events) // BATCHES)
    for number in range(BATCHES):
        pq.write_table(events.slice(number * size, size), folder / f"{number}.parquet")
    session = local_session("one host", time_zone="UTC")
    source = stream_of(session, folder)

    def work() -> None:
        found = detect(source, workload.pattern, key=workload.key, time="at", lateness="1 second")
        with tempfile.TemporaryDirectory() as checkpoint:
            run_to_end(found, Path(checkpoint))

    return work


WORKS = dict(zip(HOSTS, (in_process, spark_batch, stream), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host", choices=HOSTS)
    parser.add_argument("pattern", choices=[workload.name for workload in KEYED])
    parser.add_argument("--rows", type=int, default=3_000_000)
    given = parser.parse_args()
    machine()  # compiles the kernels
    warnings.simplefilter("ignore")
    workload = next(one for one in KEYED if one.name == given.pattern)
    with tempfile.TemporaryDirectory() as folder:
        work = WORKS[given.host](workload, workload.events(given.rows, KEYS), Path(folder))
        for _ in range(FIRST):
            work()
        print("warm", flush=True)
        with ThreadPoolExecutor(1) as thread:
            stopped = thread.submit(sys.stdin.read)
            while not stopped.done():
                work()


if __name__ == "__main__":
    main()
