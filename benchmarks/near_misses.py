"""Near misses beside `detect`, in process: what it costs to try all changes of a pattern, for the patterns of the
comparison with FlinkCEP. The bound is one detection for the pattern and one for each change.

Both take turns, and the smallest processor time of the rounds counts. Patterns with very many matches get fewer events.

python benchmarks/near_misses.py --rows 200000 --only P1 P8    # a quick look
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from flinkcep_workloads import KEYED, WITHOUT_KEY, Workload
from measuring import machine, print_table
from why import KEYS, LESS, Options, least

from cepheid import detect
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.requests.request_of import request_of


def compared(workload: Workload, rows: int, rounds: int) -> list[object]:
    """A row of the table."""
    rows //= LESS.get(workload.name, 1)
    events, options = workload.events(rows, KEYS), Options(key=workload.key, time="at")
    request = request_of(workload.pattern, **options)
    found = near_misses_in_process(events, request)  # also compiles the kernels, or loads them
    detect(events, workload.pattern, **options)
    works: dict[str, Callable[[], object]] = {
        "detect": lambda: detect(events, workload.pattern, **options),
        "near": lambda: near_misses_in_process(events, request),
    }
    seconds = least(works, rounds)
    changes = len(found.changes)
    return [
        workload.name,
        workload.what,
        changes,
        found.starts,
        found.table.num_rows,
        rows / seconds["detect"] / 1e6,
        seconds["near"] / seconds["detect"],
        1 + changes,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="events to measure with")
    parser.add_argument("--rounds", type=int, default=3, help="the smallest of so many rounds counts")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="workloads, for example P1 P8")
    given = parser.parse_args()
    workloads = [one for one in (*KEYED, *WITHOUT_KEY) if not given.only or one.name in given.only]
    print(machine())
    lines = [compared(workload, given.rows, given.rounds) for workload in workloads]
    head = ["", "pattern", "changes", "near starts", "near misses", "detect, M events/s", "near / detect", "bound"]
    print_table(f"In process, {given.rows:,} events, {KEYS:,} keys", head, lines)


if __name__ == "__main__":
    main()
