"""Patterns of occurrences at work: kernels, the events that these look at, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.algebra_output import occurrence_rows, occurrence_schema, positions_in
from cepheid.compile.algebra import CompiledOccurrences
from cepheid.events import Batch
from cepheid.kernel.algebra_kernel import TreeKernel, warm_up
from cepheid.kernel.algebra_told import Told
from cepheid.kernel.layout import Flags, Int32s, Visits
from cepheid.working_set import WorkingSet

_FEW = 1 << 14
"""Events that nothing needs may be kept in any case."""


class OccurrenceDetector:
    """Finds patterns in the events of many keys, each known by a number."""

    def __init__(self, compiled: CompiledOccurrences) -> None:
        warm_up()  # before there are events, which would wait for it
        self.compiled = compiled
        plans = compiled.plan
        self._tables = plans.tables
        policies = [[plans.each[number].policy for number in table.plans] for table in self._tables]
        self.kernels = [
            TreeKernel(trees, roots, plans.limits) for trees, roots in zip(compiled.each, policies, strict=True)
        ]
        self.working_set = WorkingSet(compiled)
        self._matches = 0
        self._kept = 0

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """For each plan the rows (`occurrence_schema`) that the visits make certain, in the order of emission;
        `Visits.end` counts in `batch`.

        Raises:
            ConditionError, LimitExceeded: the detector is of no use afterwards.
        """
        visits = visits._replace(end=visits.end + len(self.working_set))
        self.working_set.add(batch)
        told: dict[int, Told] = {}
        for kernel, table in zip(self.kernels, self._tables, strict=True):
            told |= zip(table.plans, kernel.run(self.working_set.events, visits), strict=True)
        rows = [self._rows(number, told[number]) for number in range(len(told))]
        if len(self.working_set) - self._kept > max(_FEW, self._kept):
            self.forget()
        return rows

    def forget(self) -> None:
        """Lets go of the events that nothing needs any more."""
        held = np.zeros(len(self.working_set), np.int32)
        for kernel in self.kernels:
            kernel.mark(held)
        positions = np.flatnonzero(held).astype(np.int32)
        held[positions] = np.arange(len(positions), dtype=np.int32)
        for kernel in self.kernels:
            kernel.place(held, len(positions))
        self.working_set.keep(positions)
        self._kept = len(positions)

    @property
    def found(self) -> dict[str, int]:
        """How many matches there were, and what was over a limit (`Limits.on_limit` "drop"), as EventCounts has it."""
        return {
            "matches": self._matches,
            "dropped_partial_matches": sum(int(kernel.cursor.dropped) for kernel in self.kernels),
            "dropped_matches": sum(kernel.dropped_matches for kernel in self.kernels),
        }

    @property
    def schemas(self) -> list[pa.Schema]:
        """The columns of each plan's rows."""
        return [occurrence_schema(plan) for plan in self.compiled.plan.each]

    # Keys

    @property
    def remembered(self) -> int:
        """How many occurrences, and timers, are open."""
        return sum(kernel.remembered for kernel in self.kernels)

    @property
    def open_keys(self) -> Int32s:
        """The numbers of the keys for which something is open, ascending."""
        return _union([kernel.open_keys for kernel in self.kernels])

    def due(self, time: int) -> Int32s:
        """The numbers of the keys for which there is an instant up to `time`."""
        return _union([kernel.due(time) for kernel in self.kernels])

    @property
    def next_due(self) -> int:
        return min(kernel.next_due for kernel in self.kernels)

    def is_open(self, keys: Int32s) -> Flags:
        is_open: Flags = np.any([kernel.is_open(keys) for kernel in self.kernels], axis=0)
        return is_open

    def renumber(self, before: Int32s) -> None:
        """The i-th key is from now on what number i of `before` was; the others have nothing open."""
        for kernel in self.kernels:
            kernel.renumber(before)

    def _rows(self, number: int, told: Told) -> pa.Table:
        plan = self.compiled.plan.each[number]
        if not len(told.start):
            return occurrence_schema(plan).empty_table()
        self._matches += len(told.start)
        told = told.of_variables(self.compiled.plan.numbers_of_variables(plan))
        positions = positions_in(told)
        return occurrence_rows(plan, told, self.working_set.take(positions.astype(np.int32)), positions)


def _union(numbers: Sequence[Int32s]) -> Int32s:
    return numbers[0] if len(numbers) == 1 else np.unique(np.concatenate(numbers))
