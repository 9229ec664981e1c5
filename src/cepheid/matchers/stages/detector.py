"""The detector of one pattern of stages: its kernel, the events that partial matches hold, and the rows emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.representation import choose_representation
from cepheid.compile.stages.tables import start_only_with
from cepheid.errors import ConditionError, LimitExceeded, SkipError
from cepheid.events.batch import TIME, Batch, python_values
from cepheid.kernel import siphash
from cepheid.kernel.arrays import FOREVER, Int32s, Visits
from cepheid.kernel.failures import ConditionFailed, PassedLimit
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.stages.before.looking_back import LookingBackKernel
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.kernel.stages.layout import MATCHED, TIMED_OUT
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.kernel.stages.warm_up import Kind, warm_up
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.counts import Found
from cepheid.matchers.parts import Chosen
from cepheid.matchers.replays import Replays
from cepheid.matchers.reported_timeouts import NoTimeouts, ReportedTimeouts, TimeoutLog
from cepheid.matchers.working_set import WorkingSet
from cepheid.output.common import MOST_BYTES, TIMEOUT
from cepheid.output.ids import Ids
from cepheid.output.stages.open_rows import Listed, open_rows, open_schema
from cepheid.output.stages.rows import parts_of, row_schema, rows_of
from cepheid.output.values import columns_text, event_text
from cepheid.plan.stages.plan import Plan

KernelOf: TypeAlias = Callable[[CompiledPattern], CompiledKernel | SetKernel | PythonKernel]
"""Makes the kernel of a detector, whose tables no other detector has."""

_FEW = 4096
"""Up to this many events that nothing holds are retained in any case."""

_MOST = 0.9
"""Copying events takes longer than computing the identities of a tenth more."""


class Detector(Replays):
    """Finds one pattern in the events of many keys, which are numbers."""

    closes_instants = False
    rebinds = False
    kernel: CompiledKernel | SetKernel | PythonKernel

    def __init__(
        self, pattern: CompiledPattern, *, reports: Chosen | None = None, kernel_of: KernelOf | None = None
    ) -> None:
        """With `reports`, only results whose first event is chosen are reported. Without `kernel_of` the kernel is
        chosen.
        """
        super().__init__(pattern.plan.limits)
        self._reports = reports
        tables = pattern.tables
        own = tables._replace(
            constants=tables.constants.copy(),  # the codes of strings change with every working set
            settings=tables.settings.copy(),
            states=tables.states.copy(),
        )
        self.pattern = replace(pattern, tables=own)
        self.kernel = (kernel_of or _kernel)(self.pattern)
        self.working_set = WorkingSet(self.pattern)
        self.ids = Ids.SIPHASH
        self.reported = _timeout_log(self)
        self._kept = 0
        self._matches = 0
        self._timeouts = 0

    @property
    def plan(self) -> Plan:
        return self.pattern.plan

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        """The columns of the rows; one schema."""
        return [row_schema(self.pattern.plan)]

    @property
    def relevant(self) -> int | None:
        """Bits of the mask; an event with none of them does not matter. None: every event matters."""
        return self.pattern.relevant

    @property
    def found(self) -> Found:
        return Found(self._matches, self._timeouts, *self.kernel.dropped)

    @property
    def no_match(self) -> dict[str, int]:
        """The number of partial matches that events of negated stages have ended without a match, by the name of the
        stage; empty if they are in sets, where they are not counted.
        """
        negated = self.kernel.negated
        if negated is None:
            return {}
        leaves = zip(self.plan.pattern.leaves, negated.tolist(), strict=False)  # conditions of `until` come after them
        return {leaf.name: count for leaf, count in leaves if leaf.contiguity.negated}

    def start_only_marked(self) -> None:
        """From now on only events with the bit `may_start` in their mask start partial matches."""
        if isinstance(self.kernel, PythonKernel):
            self.kernel.bounds.may_start = self.pattern.may_start
        start_only_with(self.pattern.tables, self.pattern.may_start)

    def open_starts(self) -> Batch:
        """The first events of the open partial matches and of the matches that wait, of the key with the number 0, in
        their order. At least one event must have come. Only for patterns with a skip strategy.
        """
        assert not isinstance(self.kernel, SetKernel), "skip strategies drop partial matches one by one"
        return self.working_set.take(self.kernel.open_starts())

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None, found: Found) -> None:
        """Continues from the kernel's `state`, with the events that it held; counts go on from `found`.

        Raises:
            SnapshotError: the state and the events do not fit; the detector is unchanged.
        """
        self.kernel.restore(state, held)
        self.working_set = WorkingSet(self.pattern)
        if held is not None:
            self.working_set.add(held)
        self._kept = len(self.working_set)
        self._matches, self._timeouts = found.matches, found.timeouts  # the kernel stores its own drop counts

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """The rows (`row_schema`) that the visits make certain, in the order of emission; `Visits.end` has positions in
        `batch`.

        Raises:
            ConditionError, SkipError, LimitExceeded: the detector cannot be used afterwards.
        """
        held = len(self.working_set)
        visits = visits._replace(end=visits.end + held)
        self.working_set.add(batch)
        # The reference step takes the events themselves, as functions see them.
        given: Any = batch if isinstance(self.kernel, PythonKernel) else self.working_set.events
        try:
            emitted = self.kernel.run(given, visits)
        except ConditionFailed as failure:
            raise self._failed(failure) from failure.__cause__ or failure
        except PassedLimit as passed:
            raise self._passed(passed) from passed
        except SkipError as error:
            skip = self.pattern.plan.pattern.skip_strategy
            raise SkipError(f"{error}: the strategy is {skip.to.value} {skip.stage!r} with error_on_miss") from error
        rows = [self._rows(part) for part in self._parts(self._own(emitted)) if not self._was_reported(part)]
        if len(self.working_set) - self._kept > max(_FEW, self._kept, self.kernel.size // 8):
            self.forget()
        return [pa.Table.from_batches(rows, self.schemas[0])]

    def idle_from(self, keys: Int32s) -> Ints:
        """FOREVER for each key: only deadlines end partial matches, if anything does."""
        return np.full(len(keys), FOREVER)

    @property
    def drops_deadlines_silently(self) -> bool:
        """Whether partial matches are in sets. Nothing is emitted at the deadlines of sets."""
        return self.kernel.drops_deadlines_silently

    def partial_matches(self, now: int, most: int, keys: Int32s | None = None) -> pa.Table:
        """The open partial matches (rows of `open_schema`) of `keys`, which are open (None: all keys), once time has
        advanced to `now` (microseconds) for all keys. For each key at most `most` are listed: those that started last.

        Raises:
            SchemaError: a key column has the name of another column of these rows.
        """
        schema = open_schema(self.pattern.plan)
        return pa.Table.from_batches([open_rows(schema, part) for part in self.listed(now, most, keys)], schema)

    def listed(self, now: int, most: int, keys: Int32s | None = None) -> Iterator[Listed]:
        """The same before they are made into rows, in parts."""
        with nullcontext() if keys is None else self.only(keys):
            listed = self.kernel.listed(self.working_set.events, now, most)
        for part in self._parts(listed):
            used, position = places(part.event, len(self.working_set))
            yield Listed(self.pattern.plan, part, self.working_set.take(used), position, self.ids)

    def only(self, keys: Int32s) -> AbstractContextManager[None]:
        """Within the block the detector has only these keys, which are open. They may be counted and listed, but not
        visited.
        """
        return self.kernel.only(keys)

    def forget(self) -> None:
        """Forgets the events that no partial match holds. `step` does so once there are enough that the cost for each
        is small.
        """
        self.working_set.keep(self.kernel.hold())
        self._kept = len(self.working_set)

    def _own(self, emitted: Emitted) -> Emitted:
        """The results that this detector reports."""
        if self._reports is None or not len(emitted.end):
            return emitted
        used, position = places(emitted.event[np.append(0, emitted.end[:-1])], len(self.working_set))
        return emitted.only(self._reports(self.working_set.take(used))[position])[0]

    def _parts(self, emitted: Emitted) -> Iterator[Emitted]:
        """What was emitted, in parts whose rows fit columns of texts."""
        for part in self._held_apart(emitted):
            may_be_long = len(part.event) * self.working_set.bytes > MOST_BYTES
            yield from parts_of(part, width=self.working_set.widest if may_be_long else 1)

    def _held_apart(self, emitted: Emitted) -> list[Emitted]:
        """What was emitted. If few matches have events of earlier batches and come first, they are apart: the events of
        all others are of one batch, and need not be copied. Timeouts stay together, as equal ones are found there.
        """
        begin = self.working_set.last_batch
        if not begin or len(emitted.end) < _FEW or self.plan.outputs is not None:
            return [emitted]
        firsts = emitted.event[np.append(0, emitted.end[:-1])]
        held = np.flatnonzero(firsts < begin)
        if not len(held) or 2 * held[-1] > len(firsts):
            return [emitted]
        border = int(held[-1]) + 1
        return [emitted.part(0, border), emitted.part(border, len(firsts))]

    def _was_reported(self, emitted: Emitted) -> bool:
        """Whether these results were emitted before, in a replay; counts them if so. False if rows are needed all the
        same, for timeouts that may repeat.
        """
        timeouts = emitted.count(TIMED_OUT)
        if not self._replays or (timeouts and self.reported.may_repeat):
            return False
        self._matches += emitted.count(MATCHED)
        self._timeouts += timeouts
        return True

    def _rows(self, emitted: Emitted) -> pa.RecordBatch:
        plan, timeouts = self.pattern.plan, emitted.count(TIMED_OUT)
        used, position = places(emitted.event, len(self.working_set))
        rows = rows_of(plan, emitted, self.working_set.take(used), position, self.ids)
        if timeouts:
            rows = self.reported.new(rows)
        self._matches += emitted.count(MATCHED)
        if timeouts:  # some of them may have been reported already
            self._timeouts += rows.column("kind").to_pylist().count(TIMEOUT)
        return rows

    def _failed(self, failure: ConditionFailed) -> ConditionError:
        """The error that says which condition failed on which event."""
        scripted = [i for i, condition in enumerate(self.pattern.plan.conditions) if condition.script is not None]
        where = _condition(self.pattern.plan.pattern, scripted[failure.script])
        return ConditionError(f"{failure.reason} in {where}, at {self._text_of(failure.event)}")

    def _passed(self, passed: PassedLimit) -> LimitExceeded:
        limits = self.pattern.plan.limits
        what = "partial matches are open" if passed.limit == "max_partial_matches" else "matches are completed at once"
        advice = "Give the pattern a shorter within, raise the limit, or let it drop the oldest with on_limit='drop'"
        most = limits.most_partial_matches if passed.limit == "max_partial_matches" else limits.max_matches_per_event
        return LimitExceeded(
            f"more than {most} {what} for one key ({passed.limit}), that of {self._text_of(passed.event)}. {advice}"
        )

    def _text_of(self, event: int) -> str:
        """The event at this position with its key, its time and the chosen columns. A time that was not chosen is shown
        in UTC, as the zone of its column is not known here.
        """
        batch, schema = self.working_set.take(np.array([event], np.int32)), self.pattern.plan.schema
        shown = batch.shown(0)
        keys = zip(schema.key, batch.keys, strict=False)
        first = {name: python_values(column)[0] for name, column in keys if name not in shown}
        time = ""
        if schema.time is not None and schema.time not in shown:
            time = f"{columns_text({schema.time: python_values(batch.column(TIME))[0]})} UTC"
        return event_text(columns_text(first), time, columns_text(shown))


def kernel_kind(pattern: CompiledPattern) -> Kind | None:
    """The compiled kernel that runs the pattern; None if the plain step does."""
    if pattern.plan.runs_in_python:
        return None
    if choose_representation(pattern).sets:
        return SetKernel
    return CompiledKernel if pattern.plan.pattern.without is None else LookingBackKernel


def plain_kernel(pattern: CompiledPattern) -> PythonKernel:
    """The plain step, which runs every pattern and is not compiled."""
    return PythonKernel(pattern)


def _kernel(pattern: CompiledPattern) -> CompiledKernel | SetKernel | PythonKernel:
    siphash.warm_up()  # now, as later events would have to wait for it
    kind = kernel_kind(pattern)
    if kind is None:
        return plain_kernel(pattern)
    warm_up(kind)  # type: ignore[arg-type]  # now, as later events would have to wait; classes can be hashed
    return kind(pattern.tables)


def _timeout_log(detector: Detector) -> TimeoutLog:
    plan = detector.plan
    if "timeouts" not in (plan.outputs or ()) or not detector.pattern.tables.settings["windows"][0]:
        return NoTimeouts()  # at the end of the whole window all branches with the same events time out at once
    kernel = detector.kernel
    assert not isinstance(kernel, SetKernel), "windows between events are kept one by one"
    return ReportedTimeouts(
        plan.schema.key, plan.window, lambda keys: kernel.first_starts(keys, detector.working_set.events.time)
    )


def places(events: Int32s, length: int) -> tuple[Int32s, Int32s]:
    """`events` has positions in a working set of this length. Returns these positions, or all from the first to the
    last one if they are most of these, as events side by side need not be copied; ascending. Also returns, for each
    event, the index of its position among them.
    """
    if len(events) < length // 8:  # few of many, as in a call of a live matcher
        distinct, place = np.unique(events, return_inverse=True)
        return distinct, place.astype(np.int32)
    first, last = events.min(initial=length), events.max(initial=-1)
    offsets = events - first
    taken = np.zeros(max(0, last + 1 - first), np.bool_)
    taken[offsets] = True
    if np.count_nonzero(taken) >= _MOST * len(taken):
        return np.arange(first, last + 1, dtype=np.int32), offsets
    used = np.flatnonzero(taken).astype(np.int32)
    places = np.empty(len(taken), np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return used + first, places[offsets]


def _condition(pattern: Pattern, number: int) -> str:
    """The plan's condition with this number, described with its text for a message."""
    leaves, without = pattern.leaves, pattern.without
    if without is not None and number == len(leaves) + len(pattern.loops_until):
        assert without.condition is not None
        return f"the condition of {without.label} ({without.condition.text})"
    if number >= len(leaves):
        loop = pattern.loops_until[number - len(leaves)]
        assert loop.until is not None
        return f"the until of {loop.label} ({loop.until.text})"
    text = " / ".join(condition.text for condition in leaves[number].conditions)
    return f"the condition of {leaves[number].label} ({text})"
