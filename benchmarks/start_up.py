"""Start-up: import, the command line, and the first detection with and without a compiled kernel on disk.

Processor time is that of all processes: also of Spark's JVM and its workers, which outlive the program that started
them, and of the process that goes on to compile a kernel. This process adopts such orphans and waits for their end.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from measuring import machine, print_table

EVENTS = """
import pyarrow as pa
from cepheid import Pattern, detect

pattern = Pattern.begin("a").where("x < 5").followed_by("b").where("x > a.x + 3")
"""
IN_PROCESS = f"""{EVENTS}
events = pa.table({{"at": pa.array([0, 1]).cast(pa.timestamp("s", "UTC")), "x": [1, 5]}})
assert detect(events, pattern, time="at").num_rows == 1
"""
COMPILED = """
from cepheid.kernel.stages.warm_up import KINDS, warm_up

for kind in KINDS.values():
    warm_up(kind)
"""
SESSION = """
from cepheid.hosts.spark.session import local_session

session = local_session("start-up", time_zone="UTC")
events = session.createDataFrame([("k", 0, 1), ("k", 1, 5)], "k string, at long, x long")
events = events.selectExpr("k", "timestamp_seconds(at) AS at", "x")
"""
ON_SPARK = f"""{EVENTS}
{SESSION}
assert len(detect(events, pattern, key="k", time="at").collect()) == 1
"""
SORTED_ON_SPARK = f"""
{SESSION}
ordered = events.repartition("k").sortWithinPartitions("k", "at")
assert len(ordered.mapInArrow(lambda rows: rows, events.schema).collect()) == 2
"""


SET_CHILD_SUBREAPER = 36
"""An option of Linux's prctl: processes whose parent has ended become children of this process."""


class Seconds(NamedTuple):
    """What a program takes."""

    wall: float
    """From its start to its end."""
    processor: float
    """Of all its processes, also of those that end later."""


def seconds(command: list[str], cache: Path) -> Seconds:
    """Runs the command, and waits for all its processes."""
    before, start = _processor_seconds(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
    wall = time.perf_counter() - start
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return Seconds(wall, _processor_seconds() - before)


def _processor_seconds() -> float:
    """Those of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def least(command: list[str], cache: Path, rounds: int) -> Seconds:
    each = [seconds(command, cache) for _ in range(rounds)]
    return Seconds(min(one.wall for one in each), min(one.processor for one in each))


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="taken for the sake of run.py; start-up does not depend on it")
    parser.add_argument("--rounds", type=int, default=3, help="the smallest of so many rounds counts")
    rounds = parser.parse_args().rounds
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        in_process, on_spark = Path(folder) / "in_process", Path(folder) / "on_spark"
        lines: list[list[object]] = [
            [name, None, None, *least(command, in_process, 3 * rounds)]
            for name, command in (
                ("python -c pass", python("pass")),
                ("import pyarrow", python("import pyarrow")),
                ("import cepheid", python("import cepheid")),
                ("cepheid --help", [sys.executable, "-m", "cepheid", "--help"]),
            )
        ]
        for name, program, cache in (
            ("first detection in process", IN_PROCESS, in_process),
            ("Spark: sorted mapInArrow without Cepheid", SORTED_ON_SPARK, on_spark),
            ("first detection on Spark, session included", ON_SPARK, on_spark),
        ):
            first: list[object] = [None, None]
            if program is not SORTED_ON_SPARK:  # which needs no kernel
                first = [*seconds(python(program), cache)]
                seconds(python(COMPILED), cache)
            lines.append([name, *first, *least(python(program), cache, rounds)])
    head = ["", "s, kernel not compiled yet", "processor s", "s, kernel on disk", "processor s"]
    print_table("Start-up, whole processes", head, lines)


if __name__ == "__main__":
    main()
