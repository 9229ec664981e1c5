"""Throughput in process: three-stage patterns over few and many keys, beside what one would write without Cepheid."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from baselines import SECOND, across_in_a_loop, relaxed_in_a_loop, strict_in_duckdb, strict_in_polars
from events import make_events
from measuring import alternating, machine, print_table, rows_wanted, timed
from patterns import PATTERNS

from cepheid import Pattern, detect
from cepheid.compile.compiled import CompiledPattern, compile_plan
from cepheid.events import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, TIME_TYPE, VALUE_PREFIX, Batch, Schema
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.kernel.compiled import CompiledMatcher
from cepheid.kernel.layout import FOREVER, Events
from cepheid.order import differs
from cepheid.plan.build import build_plan
from cepheid.working_set import WorkingSet

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
    """End to end from Arrow to Arrow, all columns in the output."""
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
    """`kernel.step.run` over arrays that are ready, its output taken out."""
    events = make_events(rows, keys)
    lines = []
    for name, pattern in PATTERNS.items():
        compiled, working_set = ready_arrays(events, pattern)
        seconds = alternating({"kernel": partial(run_kernel, compiled, working_set)})["kernel"]
        lines.append([name, rows / seconds / 1e6, run_kernel(compiled, working_set)])
    print_table(f"Kernel alone, {rows:,} events, {keys:,} keys", ["pattern", "M events/s", "matches"], lines)


def ready_arrays(events: pa.Table, pattern: Pattern) -> tuple[CompiledPattern, Events]:
    """All events as the kernel takes them."""
    engine = DuckDbEngine()
    compiled = compile_plan(build_plan(pattern, Schema(events.schema, ("device",), "at"), engine))
    lifted = engine.evaluate(events, bits=compiled.plan.bits, values=compiled.plan.values)
    device = events.column("device").combine_chunks()
    columns = {
        f"{KEY_PREFIX}0": device,
        TIME: events.column("at").cast(TIME_TYPE).combine_chunks(),
        MASK: pa.array(lifted.mask),
        **{f"{VALUE_PREFIX}{i}": values.combine_chunks() for i, values in enumerate(lifted.values)},
        f"{EVENT_PREFIX}device": device,
    }
    batch = Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))
    key_start = np.zeros(len(batch), np.bool_)
    key_start[1:] = differs(device)
    return compiled, WorkingSet(None, batch, key_start).events(compiled)


def run_kernel(pattern: CompiledPattern, events: Events) -> int:
    return len(CompiledMatcher(pattern.tables, FOREVER).run(events, finish=True).end)


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
