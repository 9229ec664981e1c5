"""What matches cost in process, beside what their events cost: three events of ten million are a match, by 1,000 keys.

The same events are detected with a pattern that has no match: what is left of the time is for matches, their ids and
their rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from measuring import alternating, machine, print_table, rows_wanted

from cepheid import Pattern, detect

KEYS = 1_000
TEXTS = pa.array([f"code-{number:03d}" for number in range(1_000)])
"""Eight bytes each."""
OUTPUTS: dict[str, dict[str, Any]] = {
    "all columns": {},
    "two measures": {"columns": [], "measures": {"n": "count(b)", "p": "avg(b.price)"}},
    "ids alone": {"columns": []},
}
NOTHING = "no match"


def events(rows: int) -> pa.Table:
    """Events of six columns in the order of time, a key in turn: of each key, phases 0, 1 and 2 follow one another."""
    random = np.random.default_rng(rows)
    number = np.arange(rows)
    return pa.table(
        {
            "device": number % KEYS,
            "at": pa.array(1_767_225_600_000_000 + 1_000 * number).cast(pa.timestamp("us", "UTC")),
            "phase": number // KEYS % 3,
            "kind": random.integers(0, 100, rows).astype(np.int32),
            "price": random.uniform(50, 150, rows),
            "code": TEXTS.take(pa.array(random.integers(0, len(TEXTS), rows))),
        }
    )


def pattern(last: int) -> Pattern:
    """Three events in a row, the last of which is of this phase."""
    return (
        Pattern.begin("a").where("phase = 0").next("b").where("phase = 1").next("c").where(f"phase = {last}")
    ).within("30 seconds")


def count_of(table: pa.Table, workers: int, last: int = 2, **given: Any) -> int:
    return int(detect(table, pattern(last), key="device", time="at", workers=workers, **given).num_rows)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=10_000_000)
    print(machine())
    table = events(rows)
    for workers in (1, 2):
        calls = {name: partial(count_of, table, workers, **given) for name, given in OUTPUTS.items()}
        calls[NOTHING] = partial(count_of, table, workers, last=3)
        for call in calls.values():  # compiles what these calls need, and starts threads
            call()
        seconds = alternating(calls, rounds=7)
        matches = calls["ids alone"]()
        lines = [
            [
                name,
                taken,
                None if name == NOTHING else matches / taken / 1e6,
                None if name == NOTHING else matches / (taken - seconds[NOTHING]) / 1e6,
            ]
            for name, taken in seconds.items()
        ]
        head = ["output", "s", "M matches/s", "M matches/s without the events' time"]
        print_table(f"{rows:,} events, {matches:,} matches, workers={workers}", head, lines)


if __name__ == "__main__":
    main()
