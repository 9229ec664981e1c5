"""`why` beside `detect`, in process: what the funnel costs.

python benchmarks/why.py --rows 200000 --only P1 P8    # a quick look
"""

from __future__ import annotations

from beside_detect import KEYS, Options, compare, least
from flinkcep_workloads import Workload

from cepheid import detect, why


def compared(workload: Workload, rows: int, rounds: int) -> list[object]:
    """A row of the table."""
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


if __name__ == "__main__":
    head = ["", "pattern", "matches", "starts", "detect, M events/s", "why, M events/s", "why / detect"]
    compare(__doc__, compared, head, rows=2_000_000)
