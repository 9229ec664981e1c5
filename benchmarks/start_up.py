"""Start-up: import, the command line, and the first detection with and without a compiled kernel on disk."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def seconds(command: list[str], cache: Path) -> float:
    """The seconds from the start of a process to its end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
    return time.perf_counter() - start


def warm(command: list[str], cache: Path) -> float:
    return statistics.median(seconds(command, cache) for _ in range(3))


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="taken for the sake of run.py; start-up does not depend on it")
    parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        in_process, on_spark = Path(folder) / "in_process", Path(folder) / "on_spark"
        lines: list[list[object]] = [
            ["python -c pass", None, warm(python("pass"), in_process)],
            ["import cepheid", None, warm(python("import cepheid"), in_process)],
            ["cepheid --help", None, warm([sys.executable, "-m", "cepheid", "--help"], in_process)],
        ]
        for name, program, cache in (
            ("first detection in process", IN_PROCESS, in_process),
            ("Spark: sorted mapInArrow without Cepheid", SORTED_ON_SPARK, on_spark),
            ("first detection on Spark, session included", ON_SPARK, on_spark),
        ):
            first = seconds(python(program), cache)
            seconds(python(COMPILED), cache)  # also waits for the process that compiles after the first detection
            lines.append([name, first, warm(python(program), cache)])
    head = ["", "s, kernel not compiled yet", "s, kernel on disk"]
    print_table("Start-up, whole processes", head, lines)


if __name__ == "__main__":
    main()
