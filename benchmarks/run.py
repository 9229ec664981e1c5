"""Runs all benchmarks, one after the other; `make bench` calls this.

python benchmarks/run.py --rows 1000000    # a quick look
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = (
    "in_process.py",
    "many_partial_matches.py",
    "memory.py",
    "sets.py",
    "functions.py",
    "algebra.py",
    "intervals.py",
    "out_of_order.py",
    "real_time.py",
    "spark_batch.py",
    "spark_keyless.py",
    "heat.py",
    "spark_stream.py",
    "stream_state.py",
    "stream_latency.py",
    "where_time_goes.py",
    "start_up.py",
    "durable.py",
)


def main() -> None:
    folder = Path(__file__).parent
    for benchmark in BENCHMARKS:  # each in a separate process, so that none benefits from what another has loaded
        print(f"\n## {benchmark}\n", flush=True)
        subprocess.run([sys.executable, str(folder / benchmark), *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
