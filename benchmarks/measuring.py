"""What every benchmark needs: measured times, a description of the machine, the size of a run, and printed tables."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from cepheid.kernel.stages.warm_up import KINDS, warm_up

Result = TypeVar("Result")


def rows_wanted(description: str, *, default: int) -> int:
    """The number of events that the command line requests."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=default, help=f"events to measure with (default {default:,})")
    wanted: int = parser.parse_args().rows
    return wanted


def timed(work: Callable[[], Result], *, clock: Callable[[], float] = time.perf_counter) -> tuple[float, Result]:
    """The seconds that `work` took, and its result. With `time.thread_time` they are processor time of this thread."""
    start = clock()
    result = work()
    return clock() - start, result


def alternating(works: Mapping[str, Callable[[], object]], *, rounds: int = 3) -> dict[str, float]:
    """The median seconds of each work. They take turns, so that other load on the machine affects all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name].append(timed(work)[0])
    return {name: statistics.median(times) for name, times in seconds.items()}


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a Markdown table, which can be pasted into a page. Numbers are right-aligned."""
    cells = [list(head), *([_shown(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(head))]
    print(f"\n### {title}\n")
    for number, row in enumerate(cells):
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        print(f"| {' | '.join(aligned)} |")
        if number == 0:
            rules = ("-" * (w - 1) + ":" if right else "-" * w for w, right in zip(widths, numeric, strict=True))
            print(f"| {' | '.join(rules)} |", flush=True)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine() -> str:
    """One line: processor, cores, memory, load and versions. Before it, compiles the kernels that are not: what is
    measured after it is never the plain step.
    """
    for kind in KINDS.values():
        warm_up(kind)  # type: ignore[arg-type]  # classes can be hashed
    processor = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB, load {os.getloadavg()[0]:.1f}; "
        f"Python {platform.python_version()}, {platform.system()}"
    )
