"""Near misses beside `detect`, in process: what it costs to try all changes of a pattern.

The bound is one detection for the pattern and one for each change.

python benchmarks/near_misses.py --rows 200000 --only P1 P8    # a quick look
"""

from __future__ import annotations

from collections.abc import Callable

from beside_detect import KEYS, Options, compare, least
from flinkcep_workloads import Workload

from cepheid import detect
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.requests.request_of import request_of


def compared(workload: Workload, rows: int, rounds: int) -> list[object]:
    """A row of the table."""
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


if __name__ == "__main__":
    head = ["", "pattern", "changes", "near starts", "near misses", "detect, M events/s", "near / detect", "bound"]
    compare(__doc__, compared, head, rows=500_000)
