"""The protocols between kernels, detectors, matchers and hosts: what each offers, in the order of calls.

From the inside out: a kernel moves partial matches over arrays. A detector feeds it batches and makes rows from what it
emits. A matcher decides when the events for a detector are in order and how far time has advanced. A host feeds a
matcher and stores its snapshots. None but the host has a clock, a thread or I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags, Int32s, Visits
from cepheid.lang.consistency import Consistency
from cepheid.matchers.counts import Found, ReadCounts
from cepheid.matchers.reported_timeouts import TimeoutLog
from cepheid.matchers.working_set import WorkingSet
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import PatternPlan


class Kernel(Protocol):
    """The open partial matches of all keys; the caller gives each key a number.

    How a kernel takes events is between it and its detector. This protocol is about keys: which ones have something
    open, when something is due for them, how to forget, copy and renumber them, and their state.
    """

    @property
    def open_keys(self) -> Int32s:
        """The numbers of the keys that have something open, ascending."""

    def is_open(self, keys: Int32s) -> Flags:
        """(k,) whether each of the keys has something open."""

    def due(self, time: int) -> Int32s:
        """The numbers of the keys that have a deadline up to `time` (microseconds)."""

    @property
    def next_due(self) -> int:
        """Microseconds: the earliest deadline of all keys; FOREVER if there is none."""

    def open_partial_matches(self, now: int) -> int:
        """The number of open partial matches once time has advanced to `now` (microseconds)."""

    @property
    def withheld(self) -> int:
        """The number of complete matches that are not emitted yet."""

    @property
    def dropped(self) -> tuple[int, int]:
        """How many partial matches and how many matches were dropped because of a limit."""

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Copies what is open for source[i] to target[i], which has nothing open."""

    def drop(self, keys: Int32s) -> None:
        """Forgets what is open for these keys, without emitting anything."""

    def renumber(self, before: Int32s) -> None:
        """Key i gets what is open for key before[i]; all other keys must have nothing open."""

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """The state beside the events, to be taken once the events that nothing holds are forgotten."""


class Detector(Protocol):
    """Patterns over the same events of many keys: a kernel, the events that it holds, and the rows that it emits.

    `step` is called repeatedly with the events of some keys, in order. Between two calls the caller may inspect, copy
    and drop keys in the kernel. After an exception from `step` the detector cannot be used.
    """

    closes_instants: bool
    """Whether events of one time are processed together, once all are there. Else each event moves partial matches."""

    @property
    def drops_deadlines_silently(self) -> bool:
        """Whether nothing is emitted at the deadlines of partial matches, so that they may be processed late."""

    @property
    def plan(self) -> PatternPlan:
        """The plan of the only pattern."""

    @property
    def relevant(self) -> int | None:
        """Bits of the mask; an event with none of them does not matter. None: every event matters."""

    @property
    def schemas(self) -> list[pa.Schema]:
        """The columns of each pattern's rows."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def working_set(self) -> WorkingSet:
        """The events that the kernel holds, and others that are not forgotten yet."""

    @property
    def reported(self) -> TimeoutLog:
        """The reported timeouts that may come again."""

    @property
    def rebinds(self) -> bool:
        """Whether a later event may change a row whose match_id stays."""

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """Visits keys one after the other: first come the key's events, then time advances for it, then it may close.
        Returns for each pattern the rows that this makes certain, in the order of emission. The events of `batch` are
        key by key, within a key in order of time and sequence; `Visits.end` has positions in `batch`.

        Raises:
            ConditionError, SkipError, LimitExceeded: the detector cannot be used afterwards.
        """

    def replaying(self, limits: Limits) -> AbstractContextManager[None]:
        """In the block, earlier events come again, under these limits in place of the plan's. Their rows were emitted
        before, so results are counted but no rows are made.
        """

    def forget(self) -> None:
        """Forgets the events that nothing holds. `step` also does so from time to time."""

    def idle_from(self, keys: Int32s) -> Ints:
        """(k,) microseconds: when all that is remembered of each key is too old to matter; FOREVER if it never is."""

    @property
    def found(self) -> Found: ...

    def only(self, keys: Int32s) -> AbstractContextManager[None]:
        """In the block there are only these keys, which are open. They may be counted and listed, not visited."""

    def partial_matches(self, now: int, most: int, keys: Int32s | None = None) -> pa.Table:
        """The open partial matches once time has advanced to `now` (microseconds), of `keys` (None: of all keys); for
        each key at most the `most` that started last.

        Raises:
            PatternError: the pattern has no partial matches that can be listed.
            SchemaError: a key column has the name of another column of these rows.
        """

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None, found: Found) -> None:
        """Continues from the kernel's `state`, with the events that it held; counts go on from `found`. Called once,
        before the first step.

        Raises:
            SnapshotError: the state and the events do not fit.
        """


class FiniteMatcher(Protocol):
    """Patterns over events that come once: `process` for each batch, then `finish`, then `counts`."""

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that the batch makes certain: a table for each pattern, or none at all.

        Raises:
            EventError: events are not in the order that the kind of pattern needs, or a time is out of range.
            ConditionError, SkipError, LimitExceeded: the matcher cannot be used afterwards.
        """

    def finish(self) -> list[pa.Table]:
        """Ends the input and returns the remaining rows; raises as `process`."""

    @property
    def counts(self) -> dict[str, int]:
        """What was found: a value for each of MATCHER_COUNTS."""


class LiveMatcher(Protocol):
    """One pattern over unbounded events of many keys, in a host that says how far time has advanced.

    A host calls `advance_time` and `process` in turns. Events up to the watermark are late. `replay` repeats the calls
    that an earlier matcher had; `renewed` is called once after it.
    """

    @property
    def pattern(self) -> PatternRunner: ...

    def advance_time(self, time: int) -> pa.Table:
        """Advances the watermark past `time` (microseconds); returns the rows that this makes certain."""

    def process(self, events: Batch) -> pa.Table:
        """The rows that these events make; they do not depend on the order of the batch."""

    def net(self, rows: pa.Table) -> pa.Table:
        """The rows of a micro-batch without those that are inserted and retracted in it."""

    def replay(self, log: Iterable[tuple[int, Batch]], passed: int, limits: Limits) -> None:
        """Repeats earlier input: each batch comes with the watermark (microseconds) at which it came; at the end the
        watermark advances to `passed`. Resulting rows were emitted then, and are discarded. `limits` apply during the
        replay, afterwards those of the pattern.
        """

    def renewed(self) -> pa.Table | None:
        """The rows that result from a consistency other than that of the stored state; None if it is the same."""

    @property
    def now(self) -> int:
        """The watermark, in microseconds."""

    @property
    def due(self) -> int:
        """Microseconds: once the watermark is past it, there is something to do; FOREVER if there is nothing."""

    @property
    def open(self) -> int:
        """The number of open partial matches, of occurrences, or of matches that are not final."""

    @property
    def is_idle(self) -> bool:
        """Whether its state need not be stored: nothing is open and nothing waits."""

    @property
    def counts(self) -> dict[str, int]:
        """What was found so far: a value for each of LIVE_COUNTS."""

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, as from a detector."""

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All open partial matches and waiting events. `made_for` describes in JSON values what the matcher was made
        for; `restored` compares it. `kept` is state of the host, which `restored` returns.
        """


class ServiceMatcher(Protocol):
    """One pattern in the user's own service, which passes tables of events; only the caller has a clock.

    `restore` replaces the effect of all calls before. After an exception from a call that changes the matcher, only
    `restore` may be called.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is retained forever: one sentence per cause."""

    def process(self, batch: Batch) -> pa.Table:
        """The rows that these events make. If time follows the events, it advances afterwards."""

    def advance_time(self, time: int) -> pa.Table:
        """Advances time to `time` (microseconds); returns the rows that this makes certain."""

    def finish(self) -> pa.Table:
        """Ends the input and returns the remaining rows."""

    def switch(self, consistency: Consistency) -> pa.Table:
        """Changes the consistency; returns the rows that result.

        Raises:
            SchemaError: the matcher was made without one.
            PatternError: no match would be certain.
        """

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, as from a detector."""

    def counts(self, read: Mapping[str, int]) -> ReadCounts:
        """The matcher's counts, together with the host's counts of events read."""

    def snapshot(self, read: Mapping[str, int]) -> bytes:
        """All open partial matches and waiting events, and the host's counts of events read."""

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        """Continues where the writer of the snapshot stopped; returns its host's counts of events read. `columns` are
        the events' columns.

        Raises:
            SnapshotError: the snapshot is damaged, or was made for another pattern or other columns; the matcher is
                unchanged.
        """


class PatternRunner(Protocol):
    """A pattern of a stream in the form that is sent to the workers, which make its matchers."""

    @property
    def plan(self) -> PatternPlan: ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""

    @property
    def open_schema(self) -> pa.Schema:
        """The columns of its open partial matches; PatternError if these cannot be listed."""

    def matcher(self) -> LiveMatcher:
        """A new matcher."""

    def restored(
        self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema
    ) -> tuple[LiveMatcher, dict[str, Any]]:
        """A matcher that continues where the writer of the snapshot stopped, and the host's state (`kept`); `columns`
        are the events' columns.

        Raises:
            SnapshotError: the snapshot is damaged, or was made for another pattern or other columns.
        """
