"""The detector of patterns of occurrences: kernels, the events that they read, and the rows that they emit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.errors import PatternError
from cepheid.events.batch import VALUE_PREFIX, Batch
from cepheid.kernel import siphash
from cepheid.kernel.arrays import FOREVER, Events, Flags, Int32s, Visits
from cepheid.kernel.failures import JointConditionFailed
from cepheid.kernel.occurrences.fork import fork_keys
from cepheid.kernel.occurrences.idle import forget_keys, idle_from
from cepheid.kernel.occurrences.kernel import OccurrenceKernel, warm_up
from cepheid.kernel.occurrences.results import EmittedOccurrences
from cepheid.kernel.occurrences.state import kernel_state, restore_kernel
from cepheid.matchers.counts import Found
from cepheid.matchers.occurrences.division import DROPPED, SESSIONS, with_prefix
from cepheid.matchers.occurrences.sessions import Sessions, in_parts
from cepheid.matchers.replays import Replays
from cepheid.matchers.reported_timeouts import NoTimeouts
from cepheid.matchers.working_set import WorkingSet, joint_error
from cepheid.output.common import INCONSISTENT
from cepheid.output.ids import Ids
from cepheid.output.occurrences import inconsistent_rows, positions_in, row_schema, rows_of
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.plan_set import ColumnMap

_FEW = 1 << 14
"""Up to this many events that nothing needs are retained in any case."""
WHY_UNLISTED = (
    "partial_matches: a pattern of occurrences has no stages, and so none. counts says how many occurrences are open "
    "(open_partial_matches)"
)


class OccurrenceKernels:
    """One kernel for each table of operators, over the same events and keys."""

    withheld = 0
    """Complete matches that are not emitted yet; always 0, as an occurrence is certain when it ends."""

    def __init__(self, compiled: CompiledOccurrences) -> None:
        siphash.warm_up()  # now, as later events would have to wait for it
        warm_up()
        plans = compiled.plan
        tables = plans.tables
        policies = [[plans.each[number].policy for number in table.plans] for table in tables]
        self.plans = [table.plans for table in tables]
        """For each kernel, the numbers of the plans whose roots it has."""
        self.sessions = None if plans.semantics is None else Sessions(plans)
        """None: no pattern has knowledge."""
        self.each = [
            OccurrenceKernel(trees, roots, plans.limits) for trees, roots in zip(compiled.each, policies, strict=True)
        ]

    def run(self, events: Events, visits: Visits) -> dict[int, EmittedOccurrences]:
        """What the visits make certain, by the plan's number; raises as a kernel does."""
        emitted: dict[int, EmittedOccurrences] = {}
        answering = None if self.sessions is None else self.sessions.answering
        for kernel, plans in zip(self.each, self.plans, strict=True):
            emitted |= zip(plans, kernel.run(events, visits, answering), strict=True)
        return emitted

    def hold(self, count: int) -> Int32s:
        """The positions, ascending, of the events that are still needed, among `count` events. From now on these events
        have the positions from 0.
        """
        held = np.zeros(count, np.int32)
        for kernel in self.each:
            kernel.mark(held)
        positions = np.flatnonzero(held).astype(np.int32)
        held[positions] = np.arange(len(positions), dtype=np.int32)
        for kernel in self.each:
            kernel.place(held, len(positions))
        if self.sessions is not None:
            self.sessions.hold(positions)
        return positions

    def open_partial_matches(self, now: int) -> int:  # noqa: ARG002 - for patterns of stages, some may be over
        """The number of occurrences and timers that are remembered."""
        return sum(kernel.remembered for kernel in self.each)

    @property
    def dropped(self) -> tuple[int, int]:
        """The numbers of open occurrences and of matches that were dropped because of a limit."""
        open_ = sum(int(kernel.cursor.dropped) for kernel in self.each)
        return open_, sum(kernel.dropped_matches for kernel in self.each)

    @property
    def evaluated(self) -> int:
        """The number of operator evaluations so far: one per operator and instant at which it has an operand."""
        return sum(int(kernel.cursor.evaluated) for kernel in self.each)

    # Keys

    @property
    def open_keys(self) -> Int32s:
        """The numbers of the keys that have something open, ascending."""
        known = [] if self.sessions is None else [self.sessions.keys]
        return _union([*known, *(kernel.open_keys for kernel in self.each)])

    def due(self, time: int) -> Int32s:
        """The numbers of the keys that have an instant up to `time` (microseconds)."""
        return _union([kernel.due(time) for kernel in self.each])

    @property
    def next_due(self) -> int:
        return min(kernel.next_due for kernel in self.each)

    def idle_from(self, keys: Int32s) -> Ints:
        """(k,) as `kernel.occurrences.idle.idle_from`; the latest over all kernels."""
        found: Ints = np.max([idle_from(kernel, keys) for kernel in self.each], axis=0)
        if self.sessions is not None:
            found[np.isin(keys, self.sessions.keys)] = FOREVER  # facts are never taken back
        return found

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""
        for kernel in self.each:
            kernel.make_keys(keys)

    def fork(self, source: Int32s, target: Int32s) -> None:
        """As `kernel.occurrences.fork.fork_keys`."""
        for kernel in self.each:
            fork_keys(kernel, source, target)
        if self.sessions is not None:
            self.sessions.fork(source, target)

    def drop(self, keys: Int32s) -> None:
        """Forgets what is open for these keys, without emitting anything."""
        for kernel in self.each:
            forget_keys(kernel, keys)
        if self.sessions is not None:
            self.sessions.drop(keys)

    @contextmanager
    def only(self, keys: Int32s) -> Iterator[None]:
        """Within the block there are only these keys, numbered from 0. They may be counted, but not visited."""
        forests = [kernel.forest for kernel in self.each]
        try:
            self.renumber(keys)
            yield
        finally:
            for kernel, forest in zip(self.each, forests, strict=True):
                kernel.forest = forest

    def limit(self, limits: Limits) -> None:
        """Sets the limits from now on."""
        for kernel in self.each:
            kernel.limit(limits)
        if self.sessions is not None:
            self.sessions.limit(limits)

    def is_open(self, keys: Int32s) -> Flags:
        is_open: Flags = np.any([kernel.is_open(keys) for kernel in self.each], axis=0)
        return is_open if self.sessions is None else is_open | np.isin(keys, self.sessions.keys)

    def renumber(self, before: Int32s) -> None:
        """Gives key before[i] the number i, with all that is open for it. All other keys must have nothing open."""
        for kernel in self.each:
            kernel.renumber(before)
        if self.sessions is not None:
            self.sessions.renumber(before)

    # Snapshots

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state without the events. `hold` must have been called before."""
        dropped = {DROPPED: np.array(self.dropped)}
        sessions = {} if self.sessions is None else self.sessions.state()
        known = {f"{SESSIONS}.{name}": array for name, array in sessions.items()}
        return (
            dropped
            | known
            | {
                f"{number}.{name}": array
                for number, kernel in enumerate(self.each)
                for name, array in kernel_state(kernel).items()
            }
        )

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], held: Batch | None) -> None:
        """Continues from what `state` returned, with the events that were held.

        Raises:
            SnapshotError: the state and the events do not belong together.
        """
        for number, kernel in enumerate(self.each):
            own = with_prefix(arrays, str(number))
            restore_kernel(kernel, own, 0 if held is None else len(held))
        if self.sessions is not None:
            self.sessions.restore(with_prefix(arrays, SESSIONS), held)
            self.make_keys(int(self.sessions.keys.max(initial=-1)) + 1)  # kernels may know fewer keys
        open_, matches = arrays[DROPPED].tolist()
        self.each[0].cursor.dropped, self.each[0].dropped_matches = open_, matches


class OccurrenceDetector(Replays):
    """Finds patterns in the events of many keys, which are numbers."""

    closes_instants = True
    drops_deadlines_silently = False
    kernel: OccurrenceKernels

    def __init__(self, compiled: CompiledOccurrences) -> None:
        super().__init__(compiled.plan.limits)
        constants = compiled.tables.constants.copy()  # the codes of strings change with every working set
        each = tuple(
            trees._replace(tables=trees.tables._replace(constants=constants, settings=trees.tables.settings.copy()))
            for trees in compiled.each
        )
        self.pattern = replace(compiled, tables=each[0].tables, each=each)
        self.kernel = OccurrenceKernels(self.pattern)
        self.working_set = WorkingSet(self.pattern)
        self.ids = Ids.SIPHASH
        self.reported = NoTimeouts()
        self._matches = 0
        self._kept = 0

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """For each plan the rows (`row_schema`) that the visits make certain, in the order of emission; `Visits.end`
        has positions in `batch`.

        Raises:
            ConditionError, LimitExceeded: the detector cannot be used afterwards.
        """
        first = len(self.working_set)
        visits = visits._replace(end=visits.end + first)
        self.working_set.add(batch)
        if self.kernel.sessions is None:
            rows = self._run(visits)
        else:
            rows = self._run_with_sessions(self.kernel.sessions, batch, visits, first)
        if len(self.working_set) - self._kept > max(_FEW, self._kept):
            self.forget()
        return rows

    def _run(self, visits: Visits) -> list[pa.Table]:
        """The rows that visits make certain, for each plan."""
        try:
            emitted = self.kernel.run(self.working_set.events, visits)
        except JointConditionFailed as failed:
            raise joint_error(failed, self.working_set, self.pattern.plan.variables) from failed
        return [self._rows(number, emitted[number]) for number in range(len(emitted))]

    def _run_with_sessions(self, sessions: Sessions, batch: Batch, visits: Visits, first: int) -> list[pa.Table]:
        """The same, with what the events of the batch say, which begin at position `first` of the working set."""
        found = list[list[pa.Table]]()
        before = first
        for part in in_parts(visits, first):
            end = int(part.end.max(initial=before))
            sessions.add(batch.slice(before - first, end - first), part)
            sessions.write(self.working_set.events.mask)
            rows = self._run(part)
            if sessions.contradictions and not self._replays:
                rows = [self._with_contradictions(number, one) for number, one in enumerate(rows)]
            found.append(rows)
            before = end
        return found[0] if len(found) == 1 else [pa.concat_tables(rows) for rows in zip(*found, strict=True)]

    def forget(self) -> None:
        """Forgets the events that nothing needs."""
        positions = self.kernel.hold(len(self.working_set))
        self.working_set.keep(positions)
        self._kept = len(positions)

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None, found: Found) -> None:
        """Restores the kernel's `state` and the events that it held (`held`). Counting continues from `found`.

        Raises:
            SnapshotError: the state and the events do not belong together; the detector cannot be used afterwards.
        """
        self.kernel.restore(state, held)
        if held is not None:
            self.working_set.add(held)
            if self.kernel.sessions is not None:
                self.kernel.sessions.write(self.working_set.events.mask)
        self._kept = len(self.working_set)
        self._matches = found.matches

    def idle_from(self, keys: Int32s) -> Ints:
        return self.kernel.idle_from(keys)

    def partial_matches(self, now: int, most: int, keys: Int32s | None = None) -> pa.Table:  # noqa: ARG002
        """Raises PatternError: a partial match has a stage, and open occurrences have none."""
        raise PatternError(WHY_UNLISTED)

    @property
    def relevant(self) -> int | None:
        """Bits of the mask; an event with none of them does not matter. None: every event matters."""
        return self.pattern.relevant

    @property
    def found(self) -> Found:
        sessions = self.kernel.sessions
        of_sessions = (0, 0) if sessions is None else (sessions.inconsistent, sessions.dropped)
        return Found(self._matches, 0, *self.kernel.dropped, *of_sessions)

    def only(self, keys: Int32s) -> AbstractContextManager[None]:
        """Within the block there are only these keys, which are open. They may be counted, but not visited."""
        return self.kernel.only(keys)

    @property
    def rebinds(self) -> bool:
        """Whether a later event may bind the variables of an occurrence to others of its events."""
        return self.plan.binds_anew

    @property
    def plan(self) -> OccurrencePlan:
        """The only plan."""
        return self.pattern.plan.only

    @property
    def schemas(self) -> list[pa.Schema]:
        """The columns of each plan's rows."""
        return [row_schema(plan) for plan in self.pattern.plan.each]

    def _rows(self, number: int, emitted: EmittedOccurrences) -> pa.Table:
        plan = self.pattern.plan.each[number]
        self._matches += len(emitted.start)
        if self._replays or not len(emitted.start) or "matches" not in (plan.outputs or ("matches",)):
            return row_schema(plan).empty_table()
        emitted = emitted.of_variables(self.pattern.plan.numbers_of_variables(plan))
        positions = positions_in(emitted, len(self.working_set))
        events = self.working_set.take(positions)
        return rows_of(plan, emitted, _with_values(events, self.pattern.plan.places[number]), positions, self.ids)

    def _with_contradictions(self, number: int, rows: pa.Table) -> pa.Table:
        """The rows of a plan, with those of contradictions where it asks for them."""
        plan, sessions = self.pattern.plan.each[number], self.kernel.sessions
        if sessions is None or INCONSISTENT not in (plan.outputs or ()):
            return rows
        found = sorted(sessions.contradictions, key=lambda one: one[0])
        events = self.working_set.take(np.array([position for position, _ in found], np.int32))
        causes = [str(contradiction) for _, contradiction in found]
        return pa.concat_tables([rows, inconsistent_rows(plan, events, causes, self.ids)])


def _with_values(events: Batch, place: ColumnMap) -> Batch:
    """The events with the lifted columns of one plan only, numbered as in that plan."""
    names = [name for name in events.data.schema.names if not name.startswith(VALUE_PREFIX)]
    values = {f"{VALUE_PREFIX}{i}": f"{VALUE_PREFIX}{value}" for i, value in enumerate(place.values)}
    own = events.data.select([*names, *values.values()])
    return events.with_data(pa.RecordBatch.from_arrays(own.columns, names=[*names, *values]))


def _union(numbers: Sequence[Int32s]) -> Int32s:
    return numbers[0] if len(numbers) == 1 else np.unique(np.concatenate(numbers))
