"""`why` beside `detect`, in process: what the funnel costs, for the patterns of the comparison with FlinkCEP.

Both take turns, and the smallest processor time of the rounds counts. Patterns with very many matches get fewer events.

python benchmarks/why.py --rows 200000 --only P1 P8    # a quick look
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypedDict

from flinkcep_workloads import KEYED, WITHOUT_KEY, Workload
from measuring import machine, print_table, timed

from cepheid import detect, why

KEYS = 1_000
LESS = {"P5": 200, "W1": 10, "W2": 100, "W4": 10}
"""The workloads with very many matches, and by how much less events they get."""


class Options(TypedDict):
    """The arguments of both."""

    key: str | None
    time: str


def least(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of processor time of each work."""
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name] = min(seconds[name], timed(work, clock=time.process_time)[0])
    return seconds


def compared(workload: Workload, rows: int, rounds: int) -> list[object]:
    """A row of the table."""
    rows //= LESS.get(workload.name, 1)
    events, options = workload.events(rows, KEYS), Options(key=workload.key, time="at")
    found = why(events, workload.pattern, **options).funnel  # also compiles the kernels, or loads them
    matches = detect(events, workload.pattern, **options).num_rows
    works = {
        "detect": lambda: detect(events, workload.pattern, **options),
        "why": lambda: why(events, workload.pattern, **options),
    }
    seconds = least(works, rounds)
    return [
        workload.name,
        workload.what,
        matches,
        found.starts,
        rows / seconds["detect"] / 1e6,
        rows / seconds["why"] / 1e6,
        seconds["why"] / seconds["detect"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="events to measure with")
    parser.add_argument("--rounds", type=int, default=3, help="the smallest of so many rounds counts")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="workloads, for example P1 P8")
    given = parser.parse_args()
    workloads = [one for one in (*KEYED, *WITHOUT_KEY) if not given.only or one.name in given.only]
    print(machine())
    lines = [compared(workload, given.rows, given.rounds) for workload in workloads]
    head = ["", "pattern", "matches", "starts", "detect, M events/s", "why, M events/s", "why / detect"]
    print_table(f"In process, {given.rows:,} events, {KEYS:,} keys", head, lines)


if __name__ == "__main__":
    main()
