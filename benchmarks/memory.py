"""Peak memory in process: how far the peak during `detect` is above the memory before, relative to the events' size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from events import make_events
from measuring import machine, print_table, rows_wanted
from patterns import PATTERNS

from cepheid import detect

KEYS = 1_000


def peak_kilobytes() -> int:
    """The peak memory of this process.

    Not `resource.ru_maxrss`, which a child process inherits from its parent.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(rows: int, name: str, order: str) -> None:
    """Runs in a separate process; prints the bytes of the events, of the matches, and of the additional memory at the
    peak.
    """
    detect(make_events(1_000, 10), PATTERNS[name], key="device", time="at")  # loads the kernel
    events = make_events(rows, KEYS, ordered=order == "sorted")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = peak_kilobytes()
    matches = detect(events, PATTERNS[name], key="device", time="at")
    print(json.dumps([events.nbytes, matches.nbytes, (peak_kilobytes() - before) * 1024]))


def measured(rows: int, name: str, order: str) -> list[int]:
    command = [sys.executable, __file__, str(rows), name, order]
    sizes: list[int] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return sizes


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=10_000_000)
    print(machine())
    lines = []
    for name in PATTERNS:
        for order in ("sorted", "unsorted"):
            events, matches, more = measured(rows, name, order)
            lines.append([name, order, events / 1e6, matches / 1e6, more / 1e6, more / events])
    head = ["pattern", "events", "events MB", "matches MB", "peak over before MB", "times the events"]
    print_table(f"Memory in process, {rows:,} events, {KEYS:,} keys", head, lines)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(int(sys.argv[1]), sys.argv[2], sys.argv[3])
    else:
        main()
