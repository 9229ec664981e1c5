"""What `why.py` and `near_misses.py` share: they measure another work beside `detect`, in process, for the patterns of
the comparison with FlinkCEP.

Both works take turns, and the smallest processor time of the rounds counts. Patterns with very many matches get fewer
events.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TypedDict

from flinkcep_workloads import KEYED, WITHOUT_KEY, Workload
from measuring import machine, print_table, timed

KEYS = 1_000
_FEWER = {"P5": 200, "W1": 10, "W2": 100, "W4": 10}
"""The workloads with very many matches, and the number by which their events are divided."""


class Options(TypedDict):
    """The arguments of both works."""

    key: str | None
    time: str


def compare(
    description: str | None, compared: Callable[[Workload, int, int], list[object]], head: Sequence[str], *, rows: int
) -> None:
    """Prints a table with a row for each workload of the command line: `compared` makes it from the workload, the
    number of events and the number of rounds. `rows` is the usual number of events.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=rows, help="events to measure with")
    parser.add_argument("--rounds", type=int, default=3, help="the smallest of so many rounds counts")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="workloads, for example P1 P8")
    given = parser.parse_args()
    workloads = [one for one in (*KEYED, *WITHOUT_KEY) if not given.only or one.name in given.only]
    print(machine())
    lines = [compared(one, given.rows // _FEWER.get(one.name, 1), given.rounds) for one in workloads]
    print_table(f"In process, {given.rows:,} events, {KEYS:,} keys", head, lines)


def least(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of processor time of each work."""
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name] = min(seconds[name], timed(work, clock=time.process_time)[0])
    return seconds
