"""Near misses beside `detect`, in process: what it costs to try all changes of a pattern.

The bound is one detection for the pattern and one for each change. Detection with a change may itself take longer than
without: where a condition is left out, more events matter. So the last column compares with the detections of all these
patterns, one after the other.

python benchmarks/near_misses.py --rows 200000 --only P1 P8    # a quick look
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from beside_detect import KEYS, Options, compare, least
from flinkcep_workloads import Workload

from cepheid import detect
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.plan.stages.near.changes import changes_of
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
        **{change.text: partial(detect, events, change.pattern, **options) for change in changes_of(workload.pattern)},
    }
    seconds = least(works, rounds)
    one_by_one = sum(took for work, took in seconds.items() if work != "near")
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
        seconds["near"] / one_by_one,
    ]


if __name__ == "__main__":
    head = [
        "",
        "pattern",
        "changes",
        "near starts",
        "near misses",
        "detect, M events/s",
        "near / detect",
        "bound",
        "near / one by one",
    ]
    compare(__doc__, compared, head, rows=500_000)
