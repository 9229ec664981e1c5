"""Throughput in process: three-stage patterns over few and many keys, compared with code that one would write without
Cepheid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from baselines import SECOND, across_in_a_loop, relaxed_in_a_loop, strict_in_duckdb, strict_in_polars
from events import make_events
from kernel_alone import kernel_alone
from measuring import alternating, machine, print_table, rows_wanted, timed
from patterns import PATTERNS

from cepheid import Pattern, detect

KEYS = (1_000, 100_000)

BASELINES: dict[str, dict[str, Callable[[pa.Table], int]]] = {
    "strict": {"DuckDB windows": strict_in_duckdb, "polars shifts": strict_in_polars},
    "relaxed, 3 % of events relevant": {
        "Python loop": partial(relaxed_in_a_loop, column="kind", codes=(1, 2, 3), window=300 * SECOND)
    },
    "relaxed, all events relevant": {
        "Python loop": partial(relaxed_in_a_loop, column="phase", codes=(0, 1, 2), window=60 * SECOND)
    },
    "across events": {"Python loop": partial(across_in_a_loop, window=60 * SECOND)},
}


def matches_of(events: pa.Table, pattern: Pattern) -> int:
    return int(detect(events, pattern, key="device", time="at").num_rows)


def measure_throughput(rows: int, keys: int) -> None:
    """Measures from Arrow to Arrow, with all columns in the output."""
    ordered, unordered = make_events(rows, keys), make_events(rows, keys, ordered=False)
    lines = []
    for name, pattern in PATTERNS.items():
        found = matches_of(ordered, pattern)
        seconds = alternating(
            {
                "sorted": partial(matches_of, ordered, pattern),
                "unsorted": partial(matches_of, unordered, pattern),
            }
        )
        lines.append([name, "Cepheid", rows / seconds["sorted"] / 1e6, rows / seconds["unsorted"] / 1e6, found])
        for baseline, count in BASELINES[name].items():
            taken, expected = timed(partial(count, ordered))
            lines.append([name, baseline, rows / taken / 1e6, None, expected])
            assert found == expected, f"{name}: Cepheid found {found}, {baseline} {expected}"
    head = ["pattern", "by", "M events/s, sorted", "M events/s, unsorted", "matches"]
    print_table(f"In process, {rows:,} events, {keys:,} keys", head, lines)


def measure_kernel(rows: int, keys: int) -> None:
    events = make_events(rows, keys)
    lines = []
    for name, pattern in PATTERNS.items():
        kernel = kernel_alone(events, pattern, key="device")
        lines.append([name, rows / alternating({"kernel": kernel})["kernel"] / 1e6, kernel()])
    print_table(f"Kernel alone, {rows:,} events, {keys:,} keys", ["pattern", "M events/s", "matches"], lines)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=10_000_000)
    print(machine())
    warm = make_events(1_000, 10)
    for pattern in PATTERNS.values():  # compile the kernel, or load it
        matches_of(warm, pattern)
    for keys in KEYS:
        measure_kernel(rows, keys)
        measure_throughput(rows, keys)


if __name__ == "__main__":
    main()
