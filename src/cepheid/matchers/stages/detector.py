"""A pattern at work: the kernel, the events that its partial matches hold, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern, limit_settings
from cepheid.compile.stages.representation import choose_form
from cepheid.compile.stages.tables import Ints
from cepheid.errors import ConditionError, LimitExceeded, SkipError
from cepheid.events.batch import Batch
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.stages.kernel import CompiledKernel, ConditionFailed, Emitted, PassedLimit
from cepheid.kernel.stages.layout import FOREVER, Flags, Int32s, Visits
from cepheid.kernel.stages.listing import Kernel, only, open_partial_matches
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.kernel.stages.warm_up import warm_up
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.reported_timeouts import ToldTimeouts
from cepheid.matchers.working_set import WorkingSet
from cepheid.output.stages import TIMEOUT, open_rows, open_schema, parts_of, row_schema, rows_of
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan

_FEW = 4096
"""Events that nothing holds may be kept in any case."""


@dataclass(frozen=True)
class Found:
    """What came of the events, and what was over a limit (`Limits.on_limit` "drop")."""

    matches: int = 0
    timeouts: int = 0
    dropped_partial_matches: int = 0
    dropped_matches: int = 0


class Detector:
    """Finds one pattern in the events of many keys, each known by a number."""

    whole_instants = False
    """Whether events of one time are taken together, once all are there; else what is open is looked at with each."""

    def __init__(self, pattern: CompiledPattern) -> None:
        tables = pattern.tables
        constants = tables.constants.copy()  # those that are strings change with every working set
        self.pattern = replace(pattern, tables=tables._replace(constants=constants, settings=tables.settings.copy()))
        self.kernel = _kernel(self.pattern)
        self.working_set = WorkingSet(self.pattern)
        self.told = _told(self.pattern)
        """The timeouts that may come twice; None where none can."""
        self._kept = 0
        self._matches = 0
        self._timeouts = 0
        self._replays = False

    @property
    def plan(self) -> Plan:
        return self.pattern.plan

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return row_schema(self.pattern.plan)

    @property
    def found(self) -> Found:
        return Found(self._matches, self._timeouts, *self.kernel.dropped)

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None, found: Found) -> None:
        """Goes on from what the kernel's `state` gave, with the events that were held; counts from `found`.

        Raises:
            SnapshotError: they do not fit; the detector is as it was.
        """
        if isinstance(self.kernel, PythonKernel):
            self.kernel.restore(state, held)
        else:
            self.kernel.restore(state, 0 if held is None else len(held))
        self.working_set = WorkingSet(self.pattern)
        if held is not None:
            self.working_set.add(held)
        self._kept = len(self.working_set)
        self._matches, self._timeouts = found.matches, found.timeouts  # the kernel keeps what it dropped itself

    @contextmanager
    def replaying(self, limits: Limits) -> Iterator[None]:
        """In the block come events that came before, under these limits, in place of the plan's: what comes of them was
        told, so that no rows are made of it. The limits do not decide whether sets serve.
        """
        self._replays = True
        self._limit(limits)
        try:
            yield
        finally:
            self._replays = False
            self._limit(self.pattern.plan.limits)

    def step(self, batch: Batch, visits: Visits) -> pa.Table:
        """The rows (`row_schema`) that the visits make certain, in the order of emission; `Visits.end` counts in
        `batch`.

        Raises:
            ConditionError, SkipError, LimitExceeded: the detector is of no use afterwards.
        """
        visits = visits._replace(end=visits.end + len(self.working_set))
        self.working_set.add(batch)
        try:
            emitted = self._run(batch, visits)
        except ConditionFailed as failure:
            raise self._failed(failure) from failure.__cause__ or failure
        except PassedLimit as passed:
            raise self._passed(passed) from passed
        except SkipError as error:
            skip = self.pattern.plan.pattern.skip_strategy
            raise SkipError(f"{error}: the strategy is {skip.to.value} {skip.stage!r} with error_on_miss") from error
        rows = [self._rows(part) for part in parts_of(emitted) if not self._is_told(part)]
        if len(self.working_set) - self._kept > max(_FEW, self._kept, self.kernel.size // 8):
            self.forget()
        return pa.Table.from_batches(rows, row_schema(self.pattern.plan))

    def first_starts(self, keys: Int32s) -> list[int]:
        """(k,) microseconds: when the first partial match of each of the keys began, which have some open. They are not
        in sets.
        """
        if isinstance(self.kernel, PythonKernel):
            return self.kernel.first_starts(keys)
        assert isinstance(self.kernel, CompiledKernel)
        return self.kernel.first_starts(keys, self.working_set.events.time)

    def forget_told(self, keys: Int32s, is_open: Flags, names: Sequence[bytes]) -> None:
        """Forgets the timeouts told of keys that have nothing open any more and, of the others, those that began before
        what is open; `names` has the names of keys by their numbers.
        """
        if self.told is None:
            return
        self.told.forget(names[number] for number in keys[~is_open].tolist())
        busy = keys[is_open]
        for number, start in zip(busy.tolist(), self.first_starts(busy), strict=True):
            self.told.keep_from(names[number], start)

    def idle_from(self, keys: Int32s) -> Ints:
        """(k,) as `algebra_idle.idle_from`: here deadlines end what is open, or nothing does."""
        return np.full(len(keys), FOREVER)

    @property
    def in_sets(self) -> bool:
        """Whether partial matches are kept in sets: of their deadlines nothing comes."""
        return isinstance(self.kernel, SetKernel)

    def partial_matches(self, now: int, most: int, keys: Int32s | None = None) -> pa.Table:
        """The open partial matches (`open_schema`) when time has passed to `now` for all keys; of each key, or of each
        of these, which are open, the `most` that started last.

        Raises:
            SchemaError: a column of the key has the name of one of theirs.
        """
        plan, schema, rows = self.pattern.plan, open_schema(self.pattern.plan), []
        with nullcontext() if keys is None else self.only(keys):
            listed = open_partial_matches(self.kernel, self.working_set.events.time, now, most)
        for part in parts_of(listed):
            used, position = _places(part.event, len(self.working_set))
            rows.append(open_rows(plan, part, self.working_set.take(used), position))
        return pa.Table.from_batches(rows, schema)

    def only(self, keys: Int32s) -> AbstractContextManager[None]:
        """In the block there are only these keys, which are open: to be counted and listed, not visited."""
        return only(self.kernel, keys)

    def forget(self) -> None:
        """Lets go of the events that no partial match holds. A step does it when there are so many that what this
        costs is little for each.
        """
        self.working_set.keep(self.kernel.hold())
        self._kept = len(self.working_set)

    def _limit(self, limits: Limits) -> None:
        for name, value in limit_settings(limits).items():
            self.pattern.tables.settings[name] = value
        if isinstance(self.kernel, PythonKernel):
            self.kernel.bounds.limits = limits

    def _run(self, batch: Batch, visits: Visits) -> Emitted:
        if isinstance(self.kernel, PythonKernel):
            return self.kernel.run(batch, visits)
        return self.kernel.run(self.working_set.events, visits)

    def _is_told(self, emitted: Emitted) -> bool:
        """Counts what was told before, unless its rows must be known, as those of timeouts that may come twice."""
        timeouts = int(emitted.timeout.sum())
        if not self._replays or (timeouts and self.told is not None):
            return False
        self._matches += len(emitted.end) - timeouts
        self._timeouts += timeouts
        return True

    def _rows(self, emitted: Emitted) -> pa.RecordBatch:
        plan, timeouts = self.pattern.plan, int(emitted.timeout.sum())
        used, position = _places(emitted.event, len(self.working_set))
        rows = rows_of(plan, emitted, self.working_set.take(used), position)
        if timeouts and self.told is not None:
            rows = self.told.not_told(rows)
        self._matches += len(emitted.end) - timeouts
        if timeouts:  # of which some may have been told already
            self._timeouts += rows.column("kind").to_pylist().count(TIMEOUT)
        return rows

    def _failed(self, failure: ConditionFailed) -> ConditionError:
        """Which condition failed on which event."""
        scripted = [i for i, condition in enumerate(self.pattern.plan.conditions) if condition.script is not None]
        where = _condition(self.pattern.plan.pattern, scripted[failure.script])
        return ConditionError(f"{failure.reason} in {where}, at the event {self.working_set.shown(failure.event)}")

    def _passed(self, passed: PassedLimit) -> LimitExceeded:
        limits = self.pattern.plan.limits
        what = "partial matches are open" if passed.limit == "max_partial_matches" else "matches are completed at once"
        at = self.working_set.shown(passed.event)
        advice = "Give the pattern a shorter within, raise the limit, or let it drop the oldest with on_limit='drop'"
        most = limits.most_partial_matches if passed.limit == "max_partial_matches" else limits.max_matches_per_event
        return LimitExceeded(f"more than {most} {what} for one key ({passed.limit}), that of the event {at}. {advice}")


def _kernel(pattern: CompiledPattern) -> Kernel:
    if pattern.plan.functions:
        return PythonKernel(pattern.plan, pattern.automaton, pattern.script_columns)
    in_sets = choose_form(pattern).sets
    warm_up(sets=in_sets)  # before there are events, which would wait for it
    return SetKernel(pattern.tables) if in_sets else CompiledKernel(pattern.tables)


def _told(pattern: CompiledPattern) -> ToldTimeouts | None:
    plan = pattern.plan
    if "timeouts" not in (plan.outputs or ()) or not pattern.tables.settings["windows"][0]:
        return None  # at the end of the whole window all branches with the same events time out at once
    return ToldTimeouts(plan.schema.key, plan.window)


def _places(events: Int32s, length: int) -> tuple[Int32s, Int32s]:
    """The distinct ones of these positions in a working set, ascending, and the place of each among them."""
    if len(events) < length // 8:  # few of many, as in a call of a live matcher
        distinct, place = np.unique(events, return_inverse=True)
        return distinct, place.astype(np.int32)
    taken = np.zeros(length, np.bool_)
    taken[events] = True
    used = np.flatnonzero(taken).astype(np.int32)
    places = np.empty(length, np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return used, places[events]


def _condition(pattern: Pattern, number: int) -> str:
    """Which of the plan's conditions it is, and how it was written."""
    leaves = pattern.leaves
    if number >= len(leaves):
        loop = pattern.loops_until[number - len(leaves)]
        assert loop.until is not None
        return f"the until of {loop.label} ({loop.until.text})"
    text = " / ".join(condition.text for condition in leaves[number].conditions)
    return f"the condition of {leaves[number].label} ({text})"
