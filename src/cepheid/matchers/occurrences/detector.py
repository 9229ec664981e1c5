"""Patterns of occurrences at work: kernels, the events that these look at, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.compile.stages.tables import Ints
from cepheid.errors import PatternError
from cepheid.events.batch import VALUE_PREFIX, Batch
from cepheid.kernel.occurrences.fork import fork_keys
from cepheid.kernel.occurrences.idle import forget_keys, idle_from
from cepheid.kernel.occurrences.kernel import TreeKernel, warm_up
from cepheid.kernel.occurrences.results import ToldOccurrences
from cepheid.kernel.occurrences.state import kernel_state, restore_kernel
from cepheid.kernel.stages.kernel import JointConditionFailed
from cepheid.kernel.stages.layout import Events, Flags, Int32s, Visits
from cepheid.matchers.stages.detector import Found
from cepheid.matchers.working_set import WorkingSet, joint_error
from cepheid.output.occurrences import occurrence_rows, occurrence_schema, positions_in
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.plan_set import Place

_FEW = 1 << 14
"""Events that nothing needs may be kept in any case."""


class TreeKernels:
    """One for each table of operators, over the same events and keys."""

    withheld = 0
    """Matches that are found and wait: none, as an occurrence is certain when it ends."""

    def __init__(self, compiled: CompiledOccurrences) -> None:
        warm_up()  # before there are events, which would wait for it
        plans = compiled.plan
        tables = plans.tables
        policies = [[plans.each[number].policy for number in table.plans] for table in tables]
        self.plans = [table.plans for table in tables]
        """The numbers of the plans whose roots each gives."""
        self.each = [
            TreeKernel(trees, roots, plans.limits) for trees, roots in zip(compiled.each, policies, strict=True)
        ]

    def run(self, events: Events, visits: Visits) -> dict[int, ToldOccurrences]:
        """What the visits make certain, by the number of the plan; raises as a kernel does."""
        told: dict[int, ToldOccurrences] = {}
        for kernel, plans in zip(self.each, self.plans, strict=True):
            told |= zip(plans, kernel.run(events, visits), strict=True)
        return told

    def hold(self, count: int) -> Int32s:
        """The positions of those of the `count` events that are still looked at, ascending. These are at 0, 1, … from
        now on.
        """
        held = np.zeros(count, np.int32)
        for kernel in self.each:
            kernel.mark(held)
        positions = np.flatnonzero(held).astype(np.int32)
        held[positions] = np.arange(len(positions), dtype=np.int32)
        for kernel in self.each:
            kernel.place(held, len(positions))
        return positions

    def open_partial_matches(self, now: int) -> int:  # noqa: ARG002 - of other patterns some may be over
        """How many occurrences, and timers, are remembered."""
        return sum(kernel.remembered for kernel in self.each)

    @property
    def dropped(self) -> tuple[int, int]:
        """What was over a limit: occurrences that were open, and matches."""
        open_ = sum(int(kernel.cursor.dropped) for kernel in self.each)
        return open_, sum(kernel.dropped_matches for kernel in self.each)

    @property
    def evaluated(self) -> int:
        """How many operators were looked at so far, each once an instant at which what it works on is there."""
        return sum(int(kernel.cursor.evaluated) for kernel in self.each)

    # Keys

    @property
    def open_keys(self) -> Int32s:
        """The numbers of the keys for which something is open, ascending."""
        return _union([kernel.open_keys for kernel in self.each])

    def due(self, time: int) -> Int32s:
        """The numbers of the keys for which there is an instant up to `time`."""
        return _union([kernel.due(time) for kernel in self.each])

    @property
    def next_due(self) -> int:
        return min(kernel.next_due for kernel in self.each)

    def idle_from(self, keys: Int32s) -> Ints:
        """(k,) as `algebra_idle.idle_from`."""
        found: Ints = np.max([idle_from(kernel, keys) for kernel in self.each], axis=0)
        return found

    def make_keys(self, keys: int) -> None:
        """Makes room for keys of numbers below `keys`."""
        for kernel in self.each:
            kernel.make_keys(keys)

    def fork(self, source: Int32s, target: Int32s) -> None:
        """As `algebra_fork.fork_keys`."""
        for kernel in self.each:
            fork_keys(kernel, source, target)

    def drop(self, keys: Int32s) -> None:
        """Nothing is open for these keys any more, and nothing is told of it."""
        for kernel in self.each:
            forget_keys(kernel, keys)

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        """In the block there are no keys but these, numbered from 0: to be counted, not visited."""
        forests = [kernel.forest for kernel in self.each]
        try:
            self.renumber(keys)
            yield
        finally:
            for kernel, forest in zip(self.each, forests, strict=True):
                kernel.forest = forest

    def limit(self, limits: Limits) -> None:
        """These are its limits from now on."""
        for kernel in self.each:
            kernel.limit(limits)

    def is_open(self, keys: Int32s) -> Flags:
        is_open: Flags = np.any([kernel.is_open(keys) for kernel in self.each], axis=0)
        return is_open

    def renumber(self, before: Int32s) -> None:
        """The i-th key is from now on what number i of `before` was; the others have nothing open."""
        for kernel in self.each:
            kernel.renumber(before)

    # Snapshots

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What is kept beside the events, once `hold` has been called."""
        dropped = {"dropped": np.array(self.dropped)}
        return dropped | {
            f"{number}.{name}": array
            for number, kernel in enumerate(self.each)
            for name, array in kernel_state(kernel).items()
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], count: int) -> None:
        """Goes on from what `state` gave, with the `count` events that were held.

        Raises:
            SnapshotError: they do not fit.
        """
        for number, kernel in enumerate(self.each):
            prefix = f"{number}."
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            restore_kernel(kernel, own, count)
        open_, matches = arrays["dropped"].tolist()
        self.each[0].cursor.dropped, self.each[0].dropped_matches = open_, matches


class OccurrenceDetector:
    """Finds patterns in the events of many keys, each known by a number."""

    whole_instants, in_sets = True, False
    """As a Detector's: events of one time are taken together, and there are no partial matches."""

    def __init__(self, compiled: CompiledOccurrences) -> None:
        constants = compiled.tables.constants.copy()  # those that are strings change with every working set
        each = tuple(
            trees._replace(tables=trees.tables._replace(constants=constants, settings=trees.tables.settings.copy()))
            for trees in compiled.each
        )
        self.pattern = replace(compiled, tables=each[0].tables, each=each)
        self.kernel = TreeKernels(self.pattern)
        self.working_set = WorkingSet(self.pattern)
        self.told = None
        """Timeouts that may come twice, of which there are none."""
        self._matches = 0
        self._kept = 0
        self._replays = False

    @contextmanager
    def replaying(self, limits: Limits) -> Iterator[None]:
        """In the block come events that came before, under these limits, in place of the plans': what comes of them was
        told, so that no rows are made of it.
        """
        self._replays = True
        self.kernel.limit(limits)
        try:
            yield
        finally:
            self._replays = False
            self.kernel.limit(self.pattern.plan.limits)

    def step(self, batch: Batch, visits: Visits) -> pa.Table:
        """The rows of the only plan, as `steps`."""
        (rows,) = self.steps(batch, visits)
        return rows

    def steps(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """For each plan the rows (`occurrence_schema`) that the visits make certain, in the order of emission;
        `Visits.end` counts in `batch`.

        Raises:
            ConditionError, LimitExceeded: the detector is of no use afterwards.
        """
        visits = visits._replace(end=visits.end + len(self.working_set))
        self.working_set.add(batch)
        try:
            told = self.kernel.run(self.working_set.events, visits)
        except JointConditionFailed as failed:
            raise joint_error(failed, self.working_set, self.pattern.plan.variables) from failed
        rows = [self._rows(number, told[number]) for number in range(len(told))]
        if len(self.working_set) - self._kept > max(_FEW, self._kept):
            self.forget()
        return rows

    def forget(self) -> None:
        """Lets go of the events that nothing needs any more."""
        positions = self.kernel.hold(len(self.working_set))
        self.working_set.keep(positions)
        self._kept = len(positions)

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None, found: Found) -> None:
        """Goes on from what the kernel's `state` gave, with the events that were held; counts from `found`.

        Raises:
            SnapshotError: they do not fit; the detector is of no use.
        """
        self.kernel.restore(state, 0 if held is None else len(held))
        if held is not None:
            self.working_set.add(held)
        self._kept = len(self.working_set)
        self._matches = found.matches

    def forget_told(self, keys: Int32s, is_open: Flags, names: Sequence[bytes]) -> None:
        """There is nothing to forget."""

    def idle_from(self, keys: Int32s) -> Ints:
        return self.kernel.idle_from(keys)

    def partial_matches(self, now: int, most: int, keys: Int32s | None = None) -> pa.Table:  # noqa: ARG002
        """Raises PatternError: what is open here is not a partial match, which has a stage."""
        raise PatternError(
            "partial_matches: a pattern of occurrences has no stages, and so none. counts says how many occurrences "
            "are open (open_partial_matches)"
        )

    @property
    def found(self) -> Found:
        return Found(self._matches, 0, *self.kernel.dropped)

    def only(self, keys: Int32s) -> AbstractContextManager[None]:
        """In the block there are only these keys, which are open: to be counted, not visited."""
        return self.kernel.only(keys)

    @property
    def plan(self) -> OccurrencePlan:
        """The only one."""
        return self.pattern.plan.only

    @property
    def schemas(self) -> list[pa.Schema]:
        """The columns of each plan's rows."""
        return [occurrence_schema(plan) for plan in self.pattern.plan.each]

    @property
    def schema(self) -> pa.Schema:
        """Those of the only plan."""
        (schema,) = self.schemas
        return schema

    def _rows(self, number: int, told: ToldOccurrences) -> pa.Table:
        plan = self.pattern.plan.each[number]
        self._matches += len(told.start)
        if self._replays or not len(told.start) or "matches" not in (plan.outputs or ("matches",)):
            return occurrence_schema(plan).empty_table()
        told = told.of_variables(self.pattern.plan.numbers_of_variables(plan))
        positions = positions_in(told, len(self.working_set))
        events = self.working_set.take(positions)
        return occurrence_rows(plan, told, _with_values(events, self.pattern.plan.places[number]), positions)


def _with_values(events: Batch, place: Place) -> Batch:
    """With the lifted columns of one plan out of those of all, as its slots number them."""
    names = [name for name in events.data.schema.names if not name.startswith(VALUE_PREFIX)]
    values = {f"{VALUE_PREFIX}{i}": f"{VALUE_PREFIX}{value}" for i, value in enumerate(place.values)}
    own = events.data.select([*names, *values.values()])
    return Batch(pa.RecordBatch.from_arrays(own.columns, names=[*names, *values]))


def _union(numbers: Sequence[Int32s]) -> Int32s:
    return numbers[0] if len(numbers) == 1 else np.unique(np.concatenate(numbers))
