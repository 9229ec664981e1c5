"""The kernel alone, on prepared arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from cepheid import Pattern
from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, VALUE_PREFIX, Batch, Schema
from cepheid.events.order import differs
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.arrays import FOREVER, Visits
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.matchers.working_set import WorkingSet
from cepheid.plan.stages.build import build_plan


def kernel_alone(events: pa.Table, pattern: Pattern, *, key: str | None) -> Callable[[], int]:
    """Prepares `events`, which must be sorted by key and time (column `at`), for the kernel. The returned function runs
    the kernel on one thread, reads its output as flat arrays, and returns the number of matches.
    """
    engine = DuckDbEngine()
    keys = () if key is None else (key,)
    compiled = compile_plan(build_plan(pattern, Schema(events.schema, keys, "at"), engine))
    lifted = engine.evaluate(events, bits=compiled.plan.bits, values=compiled.plan.values)
    key_columns = {name: events.column(name).combine_chunks() for name in keys}
    columns = {
        **{f"{KEY_PREFIX}{i}": column for i, column in enumerate(key_columns.values())},
        TIME: events.column("at").cast(TIME_TYPE).combine_chunks(),
        MASK: pa.array(lifted.masks[0]),
        **{f"{VALUE_PREFIX}{i}": values.combine_chunks() for i, values in enumerate(lifted.values)},
        **{f"{EVENT_PREFIX}{name}": column for name, column in key_columns.items()},
    }
    batch = Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))
    key_start = np.zeros(len(batch), np.bool_)
    for column in key_columns.values():
        key_start[1:] |= differs(column)
    ends = np.append(np.flatnonzero(key_start), len(batch))
    count = len(ends)
    visits = Visits(np.zeros(count, np.int32), ends, np.full(count, FOREVER), np.ones(count, np.bool_))
    working_set = WorkingSet(compiled)
    working_set.add(batch)
    arrays = working_set.events
    matcher = SetKernel if choose_representation(compiled).sets else CompiledKernel
    return lambda: len(matcher(compiled.tables).run(arrays, visits).end)
