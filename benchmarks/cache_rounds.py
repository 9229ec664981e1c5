"""Is the kernel's disk cache safe? Several processes fill it at once, from nothing, again and again."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter

from start_up import IN_PROCESS

DETECTION = ["-W", "error", "-c", IN_PROCESS]


def one_round(processes: int) -> Counter[str]:
    """Starts the processes with an empty cache, and returns how they ended."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        running = [
            subprocess.Popen([sys.executable, *DETECTION], env=environment, stderr=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        ends: Counter[str] = Counter()
        for process in running:
            _, errors = process.communicate()
            last = errors.strip().splitlines()[-1:] or [""]
            ends["right" if process.returncode == 0 else f"ended with {process.returncode}: {last[0]}"] += 1
        return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=4)
    arguments = parser.parse_args()
    ends: Counter[str] = Counter()
    for number in range(arguments.rounds):
        ends += one_round(arguments.processes)
        print(f"round {number + 1}: {dict(ends)}", flush=True)
    sys.exit(ends.keys() != {"right"})


if __name__ == "__main__":
    main()
