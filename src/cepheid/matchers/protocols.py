"""The protocols between kernels, detectors, matchers and hosts: what each offers, in the order of calls.

From the inside out: a kernel moves partial matches over arrays. A detector feeds it batches and makes rows from what it
emits. A matcher decides when the events for a detector are in order and how far time has advanced. A host feeds a
matcher and stores its snapshots. Only the host has a clock, threads and I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Flags, Int32s, Visits
from cepheid.lang.consistency import Consistency
from cepheid.matchers.counts import Found, ReadCounts
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.reported_timeouts import TimeoutLog
from cepheid.matchers.watermark import Reached
from cepheid.matchers.working_set import WorkingSet
from cepheid.output.funnel import Funnel
from cepheid.output.ids import Ids
from cepheid.output.near_misses import NearMisses
from cepheid.output.trace import Trace
from cepheid.plan.engine import SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import LiftedFor, PatternPlan

M_co = TypeVar("M_co", bound="ShardMatcher", covariant=True)


class Kernel(Protocol):
    """The open partial matches of all keys; the caller gives each key a number.

    This protocol is about keys: which of them have something open, when they have deadlines, how they are forgotten,
    copied and renumbered, and their state. How a kernel takes events is known to its detector only.
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
        """The numbers of partial matches and of matches that were dropped because of a limit."""

    def make_keys(self, keys: int) -> None:
        """Makes room for keys with numbers below `keys`."""

    def fork(self, source: Int32s, target: Int32s) -> None:
        """Copies what is open for source[i] to target[i], which has nothing open."""

    def drop(self, keys: Int32s) -> None:
        """Forgets what is open for these keys, without emitting anything."""

    def renumber(self, before: Int32s) -> None:
        """Gives key before[i] the number i, with all that is open for it. All other keys must have nothing open."""

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """The state without the events. Events that nothing holds must have been forgotten before."""


class Stepping(Protocol):
    """What a matcher for finite input needs of a detector."""

    @property
    def schemas(self) -> list[pa.Schema]:
        """The columns of each pattern's rows."""

    @property
    def reported(self) -> TimeoutLog:
        """The log of reported timeouts, so that none is reported twice."""

    @property
    def found(self) -> Found: ...

    def step(self, batch: Batch, visits: Visits) -> list[pa.Table]:
        """Visits keys one after the other. A visit processes the key's events, then advances its time, and may close
        the key at the end. Returns a table for each pattern: the rows that this makes certain, in the order of
        emission.

        The events in `batch` are grouped by key, and within a key in order of time and sequence. `Visits.end` has
        positions in `batch`.

        Raises:
            ConditionError, SkipError, LimitExceeded: the detector cannot be used afterwards.
        """


class Detector(Stepping, Protocol):
    """Patterns over the same events of many keys: a kernel, the events that it holds, and the rows that it emits.

    `step` is called repeatedly with the events of some keys, in order. Between two calls the caller may inspect, copy
    and drop keys in the kernel. After an exception from `step` the detector cannot be used.
    """

    closes_instants: bool
    """Whether all events of one time are processed together, once all of them have arrived. Otherwise each event moves
    partial matches by itself.
    """

    ids: Ids
    """How ids of rows are made."""

    @property
    def drops_deadlines_silently(self) -> bool:
        """Whether nothing is emitted at the deadlines of partial matches. Deadlines may then be processed late."""

    @property
    def plan(self) -> PatternPlan:
        """The plan of the only pattern."""

    @property
    def relevant(self) -> int | None:
        """Bits of the mask; an event with none of them does not matter. None: every event matters."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def working_set(self) -> WorkingSet:
        """The events that the kernel holds, and others that have not been forgotten yet."""

    @property
    def rebinds(self) -> bool:
        """Whether a later event may change the content of a row but not its match_id."""

    def replaying(self, limits: Limits) -> AbstractContextManager[None]:
        """Within the block, `step` gets events that were processed before, and these limits replace the plan's. Results
        are counted, but no rows are made, because they were emitted before.
        """

    def forget(self) -> None:
        """Forgets the events that nothing holds. `step` also does so from time to time."""

    def idle_from(self, keys: Int32s) -> Ints:
        """(k,) microseconds: the time from which all that is stored for the key is too old to matter; FOREVER if there
        is none.
        """

    def only(self, keys: Int32s) -> AbstractContextManager[None]:
        """Within the block the detector has only these keys, which are open. They may be counted and listed, but not
        visited.
        """

    def partial_matches(self, now: int, most: int, keys: Int32s | None = None) -> pa.Table:
        """The open partial matches of `keys` (None: all keys) once time has advanced to `now` (microseconds). For each
        key at most `most` are listed: those that started last.

        Raises:
            PatternError: the pattern has no partial matches that can be listed.
            SchemaError: a key column has the name of another column of these rows.
        """

    def restore(self, state: Mapping[str, npt.NDArray[Any]], held: Batch | None, found: Found) -> None:
        """Restores the kernel's `state` and the events that it held (`held`). Counting continues from `found`. Called
        once, before the first step.

        Raises:
            SnapshotError: the state and the events do not belong together.
        """


class FiniteMatcher(Protocol):
    """Finds patterns in finite input: call `process` for each batch, then `finish`, then read `counts`."""

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that the batch makes certain: one table for each pattern, or no tables.

        Raises:
            EventError: events are not in the order that the kind of pattern requires, or a time is out of range.
            ConditionError, SkipError, LimitExceeded: the matcher cannot be used afterwards.
        """

    def finish(self) -> list[pa.Table]:
        """Ends the input and returns the remaining rows. It raises the same errors as `process`."""

    @property
    def counts(self) -> dict[str, int]:
        """The counts of ties, results and drops: a value for each of MATCHER_COUNTS."""


class ObservedMatcher(FiniteMatcher, Protocol):
    """A FiniteMatcher that also observes what becomes of each event that starts a partial match."""

    def funnel(self, read: Mapping[str, int]) -> Funnel:
        """After `finish`: what became of the starts. `read` has the counts of the events read."""


class TracedMatcher(FiniteMatcher, Protocol):
    """A FiniteMatcher that records each of its steps, for the events of one key, which come with their numbers."""

    @property
    def looked_at(self) -> Ints:
        """After `finish`: the numbers of the events, in their order."""

    def probes(self, engine: SqlEngine) -> LiftedFor:
        """What must be lifted for these events."""

    def trace(self, probes: Any, batch: Batch, zone: str) -> Trace:
        """After `finish`: all steps. `batch` has the events of `looked_at`, lifted for the probes; local times are in
        `zone`.
        """


class NearMatcher(Protocol):
    """Finds the starts that match with one change of the pattern. Events come with their numbers, in order."""

    def process(self, batch: Batch) -> None:
        """Takes events; raises as a FiniteMatcher."""

    def finish(self) -> None:
        """Ends the input."""

    @property
    def looked_at(self) -> Ints:
        """After `finish`: the numbers of the events whose values say why a start does not match, ascending."""

    def probes(self, engine: SqlEngine) -> LiftedFor:
        """What must be lifted for these events."""

    def misses(self, probes: Any, batch: Batch, source: pa.Table, failed: Mapping[str, str]) -> NearMisses:
        """The near misses. `batch` has the events of `looked_at`, lifted for the probes; `source` has all events by
        number; `failed` says why other changes could not be tried.
        """


class ShardMatcher(Protocol):
    """Finds the patterns of a shard in unbounded events of many keys: one, or several that share the events they hold.
    The host says how far time has advanced.

    A host calls `advance_time` and `process` in turns. Events up to the watermark are late. `replay` repeats the calls
    that an earlier matcher received; then the host calls `renewed` once. Rows of several patterns come in one table.
    """

    @property
    def pattern(self) -> ShardRunner[ShardMatcher]:
        """The patterns, as workers get them."""

    @property
    def each(self) -> Sequence[LiveMatcher]:
        """The matcher of each pattern, in the order of the patterns."""

    def of_each(self, rows: pa.Table) -> Sequence[pa.Table]:
        """The rows of each pattern, among these."""

    def advance_time(self, time: int) -> pa.Table:
        """Advances the watermark past `time` (microseconds); returns the rows that this makes certain."""

    def settle(self, time: int) -> pa.Table:
        """Advances the watermark to within `time` (microseconds): the events at `time` count, and others of that time
        may still come. Returns the rows that this makes certain.
        """

    def process(self, events: Batch) -> pa.Table:
        """The rows that these events produce. The order of the events in the batch does not matter."""

    def replay(self, log: Iterable[tuple[Reached, Batch]], reached: Reached, limits: Limits) -> None:
        """Repeats earlier input. Before each batch in `log` stands the watermark at which it arrived. At the end the
        watermark advances to `reached`. The rows are discarded: they were emitted before. `limits` apply during the
        replay, the pattern's limits afterwards.
        """

    def renewed(self) -> pa.Table | None:
        """Changes the consistency of the stored state to the pattern's, and returns the resulting rows; None if they
        are the same.
        """

    drains: bool
    """Whether events start nothing more."""

    def drain(self, *, waiting: bool) -> None:
        """From now on events start nothing, and what is open goes on. `waiting`: whether the events that wait for the
        watermark now still start partial matches. Only if the pattern's family says that it can.
        """

    @property
    def now(self) -> int:
        """The watermark, in microseconds."""

    @property
    def due(self) -> int:
        """Microseconds: there is something to do once the watermark is past this time; FOREVER if there is nothing."""

    @property
    def open(self) -> int:
        """The number of open partial matches, of occurrences, or of matches that are not final."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is open and no event waits. The state then need not be stored."""

    @property
    def open_keys(self) -> Collection[bytes]:
        """The names (canonical bytes) of the keys for which something is open or remembered."""

    def keep_only(self, names: Collection[bytes]) -> None:
        """Forgets all keys but those with these names, with all that is open or waits for them."""

    def snapshot(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> bytes:
        """All open partial matches and waiting events, as bytes. `made_for` describes in JSON values what the matcher
        was made for; `restored` compares it. `kept` is state of the host; `restored` returns it.
        """


class LiveMatcher(ShardMatcher, Protocol):
    """Finds one pattern."""

    @property
    def pattern(self) -> PatternRunner: ...

    def net(self, rows: pa.Table) -> pa.Table:
        """The rows of a micro-batch, without the matches that are both inserted and retracted in it."""

    def watch(self, *, all_open: bool = False) -> None:
        """From now on, remembers which keys it visits, for `open_changes`. With `all_open` those that have something
        open count as visited.
        """

    @property
    def lists_with(self) -> Hashable:
        """Matchers with an equal value list their open partial matches together, by `PatternRunner.open_changes`; None
        if these cannot be listed.
        """

    @property
    def counts(self) -> dict[str, int]:
        """The counts so far: a value for each of LIVE_COUNTS."""

    @property
    def no_match(self) -> Mapping[str, int]:
        """The number of partial matches that ended without a match although they had time left, by the cause: the name
        of the negated stage whose event came. Empty if they are not counted.
        """

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, as from a detector."""

    def snapshot_in_pieces(self, made_for: Mapping[str, Any], kept: Mapping[str, Any]) -> Iterator[bytes]:
        """The bytes of `snapshot` as the state is now, in pieces of which some are empty. Each takes little time to
        make, and the matcher may be used between two of them.
        """


class RowsReader(Protocol):
    """Reads rows that open and close events, for the ServiceMatchers of all patterns. Each call here comes before the
    call of the same name of the matchers; before their `process` it is `read`.
    """

    def read(self, rows: pa.Table, times: tuple[pa.ChunkedArray, ...]) -> tuple[pa.Table, tuple[pa.ChunkedArray, ...]]:
        """Reads the rows of one call, with their starts and ends. Returns the events to lift, with their times.

        Raises:
            EventError: a row cannot be used, or an event is open for too long.
        """

    def advance_time(self, time: int) -> None:
        """Advances time to `time` (microseconds).

        Raises:
            EventError: an event is open for too long.
        """

    def finish(self) -> None:
        """Ends the input."""

    @property
    def counts(self) -> dict[str, int]:
        """How many rows and events were dropped, by the cause."""


class RowsMatcher(Protocol):
    """What a ServiceMatcher has besides if rows open and close events."""

    def holds(self, name: bytes) -> bool:
        """Whether the event with this id is needed."""


class ServiceMatcher(Protocol):
    """Finds one pattern in tables of events that the user's own service passes. Only the caller has a clock.

    `restore` discards the effect of all earlier calls. After an exception from a call that changes the matcher, only
    `restore` may be called.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is retained forever: one sentence per cause."""

    def process(self, batch: Batch) -> pa.Table:
        """The rows that these events produce. If time follows the events, it advances afterwards."""

    def advance_time(self, time: int) -> pa.Table:
        """Advances time to `time` (microseconds); returns the rows that this makes certain."""

    def finish(self) -> pa.Table:
        """Ends the input and returns the remaining rows."""

    def switch(self, consistency: Consistency) -> pa.Table:
        """Changes the consistency; returns the rows of the matches that the new one lets be emitted at once.

        Raises:
            SchemaError: the matcher was made without one.
            PatternError: no match would be certain.
        """

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, as from a detector."""

    def counts(self, read: Mapping[str, int]) -> ReadCounts:
        """The matcher's counts, together with the host's counts of events read."""

    def snapshot(self, read: Mapping[str, int]) -> bytes:
        """All open partial matches and waiting events, and the host's counts of events read, as bytes."""

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        """Continues where the writer of the snapshot stopped; returns its host's counts of events read. `columns` are
        the events' columns.

        Raises:
            SnapshotError: the snapshot is damaged, or was made for another pattern or other columns; the matcher is
                unchanged.
        """


class ShardRunner(Protocol[M_co]):
    """What a stream's shards find, in the form that is sent to workers: these make the shards' matchers with it."""

    @property
    def plans(self) -> Sequence[PatternPlan]:
        """The plans of its patterns."""

    @property
    def limits(self) -> Limits:
        """The limits of each of the patterns."""

    def joined(self, snapshots: Sequence[bytes]) -> bytes:
        """One snapshot for all that the snapshots have, which are of different keys and at the same time.

        Raises:
            SnapshotError: the matchers make ids in different ways.
        """

    def matcher(self, ids: Ids = Ids.SIPHASH) -> M_co:
        """A new matcher that makes such ids."""

    def restored(self, snapshot: bytes, made_for: Mapping[str, Any], columns: pa.Schema) -> tuple[M_co, dict[str, Any]]:
        """A matcher that continues where the writer of the snapshot stopped, and the host's state (`kept`); `columns`
        are the events' columns.

        Raises:
            SnapshotError: the snapshot is damaged, or was made for another pattern or other columns.
        """


class PatternRunner(ShardRunner[LiveMatcher], Protocol):
    """One pattern."""

    @property
    def plan(self) -> PatternPlan: ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""

    @property
    def open_schema(self) -> pa.Schema:
        """The columns of its open partial matches; PatternError if these cannot be listed."""

    @property
    def stored_open_schema(self) -> pa.Schema | None:
        """The columns of `open_changes`; None if open partial matches cannot be listed."""

    def open_changes(self, matchers: Sequence[LiveMatcher], most: int) -> OpenChanges:
        """The open partial matches of the keys that each of the matchers has visited since the last call. Their
        `lists_with` equals that of this pattern's matchers. For each key at most `most` are listed: those that started
        last.
        """
