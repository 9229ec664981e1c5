"""Runs interval matchers over tables, and writes what they emit as log entries of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.intervals.compiled import CompiledIntervals
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, VALUE_PREFIX, Batch
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.consistency_reference import LogEntry
from cepheid.kernel.intervals.reference import Interval
from cepheid.kernel.scripts.python_values import script_values
from cepheid.lang.consistency import Consistency
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.snapshot import restored
from cepheid.output.intervals.rows import END
from cepheid.plan.intervals.plan import IntervalPlan

ENGINE = DuckDbEngine()
DELAYS = (0, 3, 6, 12, 40, None)
"""Seconds by which an event may be earlier than the clock."""
SIGNS = {"insertion": "+", "retraction": "-", "late": "late"}


def batch_of(plan: IntervalPlan, events: pa.Table) -> Batch:
    """The events with their lifted columns; the column `id` is included."""
    found = ENGINE.evaluate(events, bits=plan.bits, values=plan.values)
    columns = {
        **{f"{KEY_PREFIX}{i}": events.column(name).combine_chunks() for i, name in enumerate(plan.schema.key)},
        TIME: events.column(plan.schema.time).combine_chunks(),
        END: events.column(plan.schema.end).combine_chunks(),
        MASK: pa.array(found.masks[0]),
        **{f"{VALUE_PREFIX}{i}": column.combine_chunks() for i, column in enumerate(found.values)},
        **{f"{EVENT_PREFIX}{name}": events.column(name).combine_chunks() for name in plan.columns},
    }
    return Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def as_intervals(plan: IntervalPlan, events: pa.Table) -> list[Interval]:
    """The events as input of the reference."""
    batch = batch_of(plan, events)
    times = [batch.column(name).cast("int64").to_pylist() for name in (TIME, END)]
    columns = [script_values(column) for column in batch.values]
    values = list(zip(*columns, strict=True)) or [()] * len(batch)
    return [Interval(*row) for row in zip(*times, batch.column(MASK).to_pylist(), values, strict=True)]


def log_of(
    compiled: CompiledIntervals,
    batch: Batch,
    *,
    consistency: Consistency,
    switches: Mapping[int, Consistency] | None = None,
    cuts: Sequence[int] = (),
    restoring: bool = False,
) -> list[LogEntry]:
    """What the matcher emits for the events; the last entries are those of `finish`.

    `cuts` are positions at which a new batch begins; with `restoring` the matcher is restored from a snapshot there.
    """
    matcher = LiveIntervalMatcher(compiled)
    matcher.kernel.consistency = consistency
    variables = [p.variable for p in compiled.plan.pattern.positives]
    ids = batch.column(f"{EVENT_PREFIX}id").to_pylist()
    log: list[LogEntry] = []
    for position in range(len(batch)):
        if switches and position in switches:
            log += _entries(matcher.switch(switches[position]), "switch", position, variables, ids)
        if position in cuts and restoring:
            data = matcher.snapshot({"of": "test"}, {})
            matcher, _ = restored(LiveIntervalMatcher(compiled), data, {"of": "test"}, batch.data.schema)
        elif position in cuts:
            matcher.forget()
        log += _entries(matcher.process(batch.slice(position, position + 1)), "arrive", position, variables, ids)
    return log + _entries(matcher.finish(), "eos", len(batch), variables, ids)


def _entries(rows: pa.Table, when: str, position: int, variables: Sequence[str], ids: Sequence[str]) -> list[LogEntry]:
    place = {id_: number for number, id_ in enumerate(ids)}
    found = []
    for row in rows.to_pylist():
        sign = SIGNS[row["kind"]]
        match = place[row["event"]["id"]] if sign == "late" else tuple(place[row[v]["id"]] for v in variables)
        found.append(LogEntry(when, position, sign, match))
    return found


def same_steps(one: Sequence[LogEntry], other: Sequence[LogEntry]) -> bool:
    """Whether both logs have the same entries in each step, in any order within a step."""
    key = [sorted((t.when, t.position, t.sign, str(t.match)) for t in log) for log in (one, other)]
    return bool(np.array_equal(key[0], key[1])) if len(key[0]) == len(key[1]) else False
