"""The event algebra in process, beside the same operators in plain Python.

python benchmarks/algebra.py [--rows 2000000]

Four types over 1,000 keys and over none; of a share of the events each pattern asks for. `detect` is from table to
table; the kernel alone has lifted columns and gives arrays. Seconds are those of the thread on the processor, but of
`detect`, which lifts in another thread, those of the clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from algebra_tree import Tree
from measuring import machine, print_table, rows_wanted, timed

from cepheid import OccurrencePattern, detect
from cepheid.compile.algebra import CompiledTrees, compile_occurrences
from cepheid.events import Schema
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.kernel.algebra_kernel import TreeKernel, warm_up
from cepheid.kernel.layout import FOREVER, Events, Visits
from cepheid.kernel.reference import Event
from cepheid.plan.algebra import OccurrencePlan
from cepheid.plan.algebra_build import build_occurrence_plan
from cepheid.plan.algebra_plans import OccurrencePlans
from cepheid.plan.limits import Limits

SECOND = 1_000_000
PATTERNS = {
    "(A; B) - C": "recent",
    "((A & B)_20s; C) - D": "recent",
    "A - (B + 5s)": "recent",
    "A; B; C": "chronicle",
    "(A; B)_5s - C": "unrestricted",
}
SHARES = {"all": (1 / 3, 1 / 3, 1 / 3, 0.0), "half": (0.17, 0.17, 0.16, 0.5), "few": (0.01, 0.01, 0.01, 0.97)}
FOR_PYTHON = 100_000
"""Events that the baseline is measured with."""


def made(rows: int, shares: Sequence[float]) -> pa.Table:
    """One event a second."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "at": pa.array(np.arange(rows) * SECOND).cast(pa.timestamp("us", "UTC")),
            "type": random.choice(np.array(list("ABCD")), rows, p=shares),
            "value": random.integers(0, 100, rows),
        }
    )


def plan_of(text: str, policy: str, columns: pa.Schema) -> OccurrencePlan:
    pattern = OccurrencePattern.of(text).policy(policy).taxonomy("type")
    return build_occurrence_plan(pattern, Schema(columns, (), "at"), DuckDbEngine(time_zone="UTC"))


def lifted(plan: OccurrencePlan, events: pa.Table) -> Events:
    bits = [events["type"].to_numpy(zero_copy_only=False) == bit.sql.split("'")[1] for bit in plan.bits]
    mask = sum(bit.astype(np.int64) << number for number, bit in enumerate(bits))
    times = events["at"].cast(pa.int64()).to_numpy()
    relevant = mask != 0
    nothing = np.zeros((0, int(relevant.sum())), np.int64)
    return Events(times[relevant], mask[relevant], nothing, nothing.astype(np.bool_))


def in_kernel(trees: CompiledTrees, plan: OccurrencePlan, events: Events) -> int:
    kernel = TreeKernel(trees, [plan.policy], Limits())
    end = np.array([len(events.time)])
    visits = Visits(np.zeros(1, np.int32), end, np.full(1, FOREVER), np.ones(1, np.bool_))
    (found,) = kernel.run(events, visits)
    return len(found.start)


def in_python(plan: OccurrencePlan, events: Sequence[Event]) -> int:
    tree = Tree(plan.operators, [plan.root], plan.policy, by_operator=plan.by_operator)
    found = sum(len(root) for event in events for (root,) in tree.process(event))
    return found + sum(len(root) for (root,) in tree.advance_time(1 << 62))


def measured(text: str, policy: str, table: pa.Table) -> tuple[Any, ...]:
    """Million events a second of the table, whichever of them the pattern asks for."""
    plan = plan_of(text, policy, table.schema)
    pattern = plan.pattern
    (trees,) = compile_occurrences(OccurrencePlans.of([plan])).each
    events, few = lifted(plan, table), lifted(plan, table.slice(0, FOR_PYTHON))
    kernel, found = timed(lambda: in_kernel(trees, plan, events), clock=time.thread_time)
    objects = [Event(i, *one, ()) for i, one in enumerate(zip(few.time.tolist(), few.mask.tolist(), strict=True))]
    python, expected = timed(lambda: in_python(plan, objects), clock=time.thread_time)
    assert in_kernel(trees, plan, few) == expected
    whole, rows = timed(lambda: detect(table, pattern, time="at", columns=["value"]).num_rows, clock=time.process_time)
    assert rows == found
    return (
        len(table) / whole / 1e6,
        len(table) / kernel / 1e6,
        FOR_PYTHON / python / 1e6,
        len(events.time) / len(table),
        rows,
    )


def main() -> None:
    rows = rows_wanted("The event algebra in process", default=2_000_000)
    print(machine())
    warm_up()
    for name, shares in SHARES.items():
        table = made(rows, shares)
        detect(table.slice(0, 1000), OccurrencePattern.of("A").taxonomy("type"), time="at")
        lines = [(text, policy, *measured(text, policy, table)) for text, policy in PATTERNS.items()]
        head = ("pattern", "policy", "detect, M events/s", "kernel alone", "plain Python alone", "relevant", "matches")
        print_table(f"{rows:,} events, relevant: {name}", head, lines)


if __name__ == "__main__":
    main()
