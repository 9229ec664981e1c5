"""The event algebra in process, compared with the same operators in plain Python.

python benchmarks/algebra.py [--rows 2000000]

The events have four types, over 1,000 keys and without a key; each pattern asks for some of the types. `detect` is
measured from table to table; the kernel alone gets lifted columns and returns arrays. Seconds are processor time: of
one thread for the kernel and plain Python, of all threads for SQL and for `detect`, which lifts in another thread. A
second table shows how much the kernel retains after few and after many events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from algebra_tree import Tree
from measuring import machine, print_table, rows_wanted, timed

from cepheid import OccurrencePattern, detect
from cepheid.compile.occurrences.compiled import CompiledTrees, compile_occurrences
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Visits
from cepheid.kernel.occurrences.kernel import OccurrenceKernel, warm_up
from cepheid.kernel.reference_events import Event
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.build import build_occurrence_plans
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.pattern_request import PatternRequest, PlanOptions

SECOND = 1_000_000
PATTERNS = {
    "(A; B) - C": "recent",
    "((A & B)_20s; C) - D": "recent",
    "A - (B + 5s)": "recent",
    "A; B; C": "chronicle",
    "(A; B)_5s - C": "unrestricted",
}
SHARES = {"all": (1 / 3, 1 / 3, 1 / 3, 0.0), "half": (0.17, 0.17, 0.16, 0.5), "few": (0.01, 0.01, 0.01, 0.97)}
IN_SQL = {
    # The last A before a B, unless a C follows it. No two events have the same time, so each row is an instant.
    "(A; B) - C": """
SELECT count(*) FROM (
    SELECT
        type,
        max("at") FILTER (WHERE type = 'A') OVER earlier AS a,
        max("at") FILTER (WHERE type = 'C') OVER earlier AS c
    FROM events WINDOW earlier AS (ORDER BY "at" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) WHERE type = 'B' AND a IS NOT NULL AND (c IS NULL OR c < a)"""
}
"""SQL that one would write without Cepheid. The other patterns cannot be written this way."""
FOR_PYTHON = 100_000
"""The number of events with which the baseline is measured."""


def made(rows: int, shares: Sequence[float]) -> pa.Table:
    """Events, one per second."""
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
    asked = (PatternRequest(pattern),)
    return build_occurrence_plans(asked, Schema(columns, (), "at"), DuckDbEngine(time_zone="UTC"), PlanOptions()).only


def lifted(plan: OccurrencePlan, events: pa.Table) -> Events:
    bits = [events["type"].to_numpy(zero_copy_only=False) == bit.sql.split("'")[1] for bit in plan.bits]
    mask = sum(bit.astype(np.int64) << number for number, bit in enumerate(bits))
    times = events["at"].cast(pa.int64()).to_numpy()
    relevant = mask != 0
    nothing = np.zeros((0, int(relevant.sum())), np.int64)
    return Events(times[relevant], mask[relevant], nothing, nothing.astype(np.bool_))


def in_kernel(trees: CompiledTrees, plan: OccurrencePlan, events: Events) -> int:
    return run(OccurrenceKernel(trees, [plan.policy], Limits()), events, FOREVER)


def run(kernel: OccurrenceKernel, events: Events, until: int) -> int:
    """The number of occurrences in the events of one key. Time then advances to `until`; with FOREVER the key ends."""
    end, closes = np.array([len(events.time)]), np.array([until == FOREVER])
    (found,) = kernel.run(events, Visits(np.zeros(1, np.int32), end, np.full(1, until), closes))
    return len(found.start)


def in_sql(text: str, table: pa.Table) -> int:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("events", table)
        return int(connection.sql(IN_SQL[text]).fetchall()[0][0])


def held(text: str, policy: str, table: pa.Table) -> tuple[int, int, float]:
    """The number of operators, the number of occurrences that they retain after all events, and the kilobytes of the
    kernel without its results.
    """
    plan = plan_of(text, policy, table.schema)
    (trees,) = compile_occurrences(OccurrencePlans.of([plan])).each
    kernel = OccurrenceKernel(trees, [plan.policy], Limits())
    run(kernel, lifted(plan, table), NO_TIME)
    arrays = {name: part for name, part in kernel.forest._asdict().items() if name not in ("found", "made")}
    return len(plan.operators), kernel.remembered, sum(part.nbytes for part in arrays.values()) / 1024


def in_python(plan: OccurrencePlan, events: Sequence[Event]) -> int:
    tree = Tree(plan.operators, [plan.root], plan.policy, by_operator=plan.by_operator)
    found = sum(len(root) for event in events for (root,) in tree.process(event))
    return found + sum(len(root) for (root,) in tree.advance_time(1 << 62))


def measured(text: str, policy: str, table: pa.Table) -> tuple[Any, ...]:
    """Million events per second, counting all events of the table, also those that the pattern does not ask for."""
    plan = plan_of(text, policy, table.schema)
    pattern = plan.pattern
    (trees,) = compile_occurrences(OccurrencePlans.of([plan])).each
    events, few = lifted(plan, table), lifted(plan, table.slice(0, FOR_PYTHON))
    kernel, found = timed(lambda: in_kernel(trees, plan, events), clock=time.thread_time)
    objects = [Event(i, *one, ()) for i, one in enumerate(zip(few.time.tolist(), few.mask.tolist(), strict=True))]
    python, expected = timed(lambda: in_python(plan, objects), clock=time.thread_time)
    assert in_kernel(trees, plan, few) == expected
    sql = None
    if text in IN_SQL:
        seconds, expected = timed(lambda: in_sql(text, table), clock=time.process_time)
        assert found == expected
        sql = len(table) / seconds / 1e6
    whole, rows = timed(lambda: detect(table, pattern, time="at", columns=["value"]).num_rows, clock=time.process_time)
    assert rows == found
    return (
        len(table) / whole / 1e6,
        len(table) / kernel / 1e6,
        FOR_PYTHON / python / 1e6,
        sql,
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
        speeds = ("detect, M events/s", "kernel alone", "plain Python alone", "SQL in DuckDB")
        head = ("pattern", "policy", *speeds, "relevant", "matches")
        print_table(f"{rows:,} events, relevant: {name}", head, lines)
    tables = [(count, made(count, SHARES["all"])) for count in (rows // 100, rows // 10, rows)]
    lines = [
        (text, policy, count, *held(text, policy, table))
        for text, policy in PATTERNS.items()
        if policy == "recent"
        for count, table in tables
    ]
    print_table("What is held", ("pattern", "policy", "events so far", "operators", "remembered", "KB"), lines)


if __name__ == "__main__":
    main()
