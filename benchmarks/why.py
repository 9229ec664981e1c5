"""`why` beside `detect`, in process: what the funnel costs, for the patterns of the comparison with FlinkCEP.

Both take turns, and the smallest processor time of the rounds counts. With --definition, the step that defines the
funnel runs as well, over fewer events.

python benchmarks/why.py --rows 200000 --only P1 P8    # a quick look
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import pyarrow as pa
from flinkcep_workloads import KEYED, WITHOUT_KEY, Workload
from measuring import machine, print_table, timed

from cepheid import detect, why
from cepheid.matchers.stages import observed

KEYS = 1_000
FEWER = 50_000
"""Events for the step that defines the funnel."""


def least(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of processor time of each work."""
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name] = min(seconds[name], timed(work, clock=time.process_time)[0])
    return seconds


def compared(workload: Workload, rows: int, rounds: int) -> list[object]:
    """A row of the table."""
    events, options = workload.events(rows, KEYS), {"key": workload.key, "time": "at"}
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


def defined(workload: Workload, events: pa.Table) -> list[object]:
    """A row for the step that defines the funnel."""
    options = {"key": workload.key, "time": "at"}
    observed._counting = lambda pattern, *, few: observed._StepByStep(pattern, few=True)  # noqa: ARG005, SLF001
    works = {
        "detect": lambda: detect(events, workload.pattern, **options),
        "why": lambda: why(events, workload.pattern, **options),
    }
    seconds = least(works, 2)
    return [workload.name, len(events) / seconds["why"] / 1e6, seconds["why"] / seconds["detect"]]


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
