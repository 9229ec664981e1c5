"""Runs the interval kernel and owns its arrays: grows them when the kernel asks for room, and returns emitted rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.intervals.compiled import CompiledIntervals, join_limits
from cepheid.errors import LimitExceeded
from cepheid.kernel.arrays import FOREVER, Flags, Int32s, distinct, grown, new_stack
from cepheid.kernel.failures import JointConditionFailed
from cepheid.kernel.intervals.layout import (
    BEGINNING,
    EMITTED,
    INSERTION,
    EmittedIntervals,
    IntervalEvents,
    Scratch,
    new_emitted,
    new_join_cursor,
    new_open_matches,
    new_stores,
)
from cepheid.kernel.intervals.lists import LIST, PLACES_PER_ENTRY, entries_of, lay_out
from cepheid.kernel.intervals.negation import set_all_scopes
from cepheid.kernel.intervals.sorting import columns_of, order_of
from cepheid.kernel.intervals.step import JoinStatus, arrive, keep_alive, rebuild_heap, release_until
from cepheid.kernel.intervals.values import fill_buckets, store_all_values
from cepheid.kernel.scripts.reasons import FAILURES
from cepheid.kernel.stopping import stop_if_asked
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.values import Window
from cepheid.plan.intervals.constants import FREE
from cepheid.plan.intervals.growth import Purge
from cepheid.plan.limits import Limits

_ROOM = 1 << 10
_AT_ONCE = 1 << 14
"""The most events of one call of the compiled function, during which nothing can be interrupted."""
_FEW = 2
"""Up to so many times the first room, finished matches are not removed."""
_Rows: TypeAlias = tuple[Ints, Int32s]
"""Emitted rows: the fields of EMITTED, and the events of the matches."""


class IntervalKernel:
    """Runs the kernel over the working set, and stores the accepted events and the open matches."""

    def __init__(self, pattern: CompiledIntervals, consistency: Consistency, *, in_order: bool = True) -> None:
        """`in_order`: whether what is emitted of one arrival is in the order of EmittedIntervals, or in any."""
        self._in_order = in_order
        tables = pattern.tables
        self.pattern = pattern
        self.cursor = new_join_cursor()
        variables, positives = len(tables.bits), len(tables.order)
        self.stores = new_stores(variables, _ROOM, int(tables.settings["buffer"][0]))
        self._most_stored = self._most_valued = 0
        self.open = new_open_matches(_ROOM, positives, len(tables.negations), keys=1)
        self._rows = new_emitted(8 * _ROOM, positives)
        levels = np.zeros((max(positives, 1), 7), np.int64)
        self._scratch = Scratch(np.zeros((1, variables), np.int64), new_stack(tables.scripts), levels)
        self._taken = list[_Rows]()
        self.consistency = consistency

    @property
    def consistency(self) -> Consistency:
        return self._consistency

    @consistency.setter
    def consistency(self, consistency: Consistency) -> None:
        self._consistency = consistency
        self.cursor.realtime = consistency is Consistency.REALTIME
        self.cursor.k_slack = consistency is Consistency.CONSERVATIVE
        rebuild_heap(self.open, self.cursor)

    def run(self, events: IntervalEvents, stop: int) -> EmittedIntervals:
        """Processes the events before position `stop`.

        Raises:
            JointConditionFailed, LimitExceeded: the kernel cannot be used afterwards.
        """
        self._make_room_for_events(events, stop)
        while True:
            stop_if_asked()
            before = min(stop, int(self.cursor.event) + _AT_ONCE)
            arguments = self.stores, self.open, self._rows, self._scratch, self.cursor
            match JoinStatus(arrive(self.pattern.tables, events, *arguments, before)):
                case JoinStatus.DONE:
                    if before == stop:
                        return self._all_emitted()
                case JoinStatus.MORE_MATCHES:
                    self._make_room_for_matches(events)
                case JoinStatus.MORE_EMITTED:
                    self._take_rows()
                    if len(self._rows.rows) < 4 * len(self.open.rows):
                        self._make_rows()
                case JoinStatus.TOO_MANY:
                    most = int(self.pattern.tables.settings["most_matches"][0])
                    what = f"an event completes more than {most:,} matches (max_matches_per_event)"
                    advice = "Give the pattern a shorter within, raise the limit, or let it drop the oldest with"
                    raise LimitExceeded(f"{what}. {advice} on_limit='drop'")
                case JoinStatus.FAILED:
                    raise self._failure()

    def switch(self, consistency: Consistency) -> EmittedIntervals:
        """Changes the consistency and returns what this makes certain: for real time, every open match that is not yet
        emitted.
        """
        self.consistency = consistency
        if consistency is Consistency.REALTIME:
            return self._emit_open()
        self._make_room_to_emit()
        release_until(self.open, self._rows, self.cursor, self.horizon)
        return self._all_emitted()

    def advance(self, clock: int) -> EmittedIntervals:
        """Sets the clock to `clock`, as if an event had ended then, and returns what this makes certain: with a buffer,
        nothing.
        """
        if clock > self.cursor.clock:
            self.cursor.clock = clock
            self._make_room_to_emit()
            release_until(self.open, self._rows, self.cursor, self.horizon)
        return self._all_emitted()

    def finish(self) -> EmittedIntervals:
        """Ends the input and returns the remaining matches. Later events are late."""
        emitted = self._emit_open()
        self.open.rows["alive"][: self.cursor.matches] = 0
        self.cursor.clock = self.cursor.horizon = FOREVER
        return emitted

    def limit(self, limits: Limits) -> None:
        """Applies these limits from now on. No other kernel shares the settings of these tables."""
        for name, value in join_limits(limits).items():
            self.pattern.tables.settings[name] = value

    @property
    def horizon(self) -> int:
        """Events with a lateness time before this one are late."""
        settings = self.pattern.tables.settings[0]
        return int(self.cursor.horizon if settings["buffer"] >= 0 else self.cursor.clock - settings["delay"])

    @property
    def next_due(self) -> int:
        """The next match becomes certain once the clock is after this time; FOREVER if no match waits for the clock."""
        rows = self.open.rows[: self.cursor.matches]
        rows = rows[(rows["alive"] == 1) & (rows["out"] == 0)]
        return self._clock_after(int(self._final_from(rows).min(initial=FREE)))

    def over(self, events: IntervalEvents) -> int:
        """Once the clock is after this time, and if no event comes before, no match is open and no event is needed any
        more. FOREVER if that never happens.
        """
        found = [self._final_from(self.open.rows[: self.cursor.matches][self._alive])]
        found += [self._needed_until(variable, self._stored(variable), events) for variable in self._variables]
        return self._clock_after(int(np.concatenate(found).max(initial=BEGINNING)))

    def _final_from(self, rows: Records) -> Ints:
        """For each of these matches, the greatest lateness time of an event that keeps it from being final."""
        final: Ints = np.maximum(rows["end"], rows["until"]) if self.cursor.k_slack else rows["until"]
        return final

    def _clock_after(self, lateness_time: int) -> int:
        """Once the clock is after this time, every event up to the lateness time is late. FOREVER if that never
        happens.
        """
        return FOREVER if lateness_time >= FREE else lateness_time + int(self.pattern.tables.settings["delay"][0])

    @property
    def open_matches(self) -> int:
        return int(self.open.rows["alive"][: self.cursor.matches].sum())

    def _failure(self) -> JointConditionFailed:
        plan = self.pattern.plan
        each = [(f"the condition ({plan.pattern.condition})", script) for script in plan.scripts]
        for negation, scripts in zip(plan.pattern.negations, plan.negated, strict=True):
            where = f"the condition of the negation of {negation.variable!r} ({negation.condition})"
            each += [(where, script) for script in scripts]
        condition, script = each[self.cursor.failed_script]
        positions = self._scratch.slots[0].tolist()
        bound = {number: (positions[number], positions[number]) for number in sorted(script.variables)}
        return JointConditionFailed(condition, FAILURES[int(self.cursor.failure)], bound)

    # What is emitted

    def _emit_open(self) -> EmittedIntervals:
        rows = self.open.rows[: self.cursor.matches]
        chosen = np.flatnonzero((rows["alive"] == 1) & (rows["out"] == 0))
        rows["out"][chosen] = 1
        fields = self.cursor.event, INSERTION, rows["end"][chosen], rows["start"][chosen], self.cursor.clock
        return self._in_columns(np.stack(np.broadcast_arrays(*fields), axis=1), self.open.events[chosen])

    def _make_room_to_emit(self) -> None:
        if len(self._rows.rows) < int(self.cursor.emitted) + int(self.cursor.matches):
            self._take_rows()
            self._make_rows()

    def _make_rows(self) -> None:
        self._rows = new_emitted(8 * len(self.open.rows), len(self.pattern.tables.order))

    @property
    def _emitted(self) -> _Rows:
        """What is not taken yet, in the kernel's own arrays."""
        count = int(self.cursor.emitted)
        words = self._rows.rows[:count].view(np.int64).reshape(count, len(EMITTED.names or ()))
        return words, self._rows.match[:count]

    def _take_rows(self) -> None:
        words, match = self._emitted
        self._taken.append((words.copy(), match.copy()))
        self.cursor.emitted = 0

    def _all_emitted(self) -> EmittedIntervals:
        parts, self._taken = [*self._taken, self._emitted], []
        words, match = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        self.cursor.emitted = 0
        return self._in_columns(words, match)

    def _in_columns(self, words: Ints, match: Int32s) -> EmittedIntervals:
        order = order_of(words, match) if self._in_order else np.arange(len(words), dtype=np.int32)
        (event, sign, end, start, clock), ordered = columns_of(words, match, order)
        return EmittedIntervals(event, sign, clock, start, end, ordered)

    # Memory

    @property
    def _variables(self) -> range:
        return range(len(self.pattern.tables.bits))

    def _make_room_for_events(self, events: IntervalEvents, stop: int) -> None:
        """Makes room to store the events from Cursor.event up to `stop`, and for the lists of their keys."""
        tables, more = self.pattern.tables, slice(int(self.cursor.event), stop)
        counts = [int((events.mask[more] >> bit & 1).sum()) for bit in tables.bits.tolist()]
        self._most_stored += sum(counts)
        by_start, by_end, lists = self.stores.by_start, self.stores.by_end, self.stores.lists
        if (needed := PLACES_PER_ENTRY * self._most_stored) > len(by_start):
            by_start, by_end = grown(by_start, 2 * needed), grown(by_end, 2 * needed)
        if (keys := int(events.key[more].max(initial=0)) + 1) > len(lists):
            lists = grown(lists, 2 * keys)
            self.open = self.open._replace(lists=grown(self.open.lists, 2 * keys))
        self.stores = self.stores._replace(by_start=by_start, by_end=by_end, lists=lists)
        self._make_room_for_values(sum(counts[variable] for variable in tables.indexes["variable"].tolist()))

    def _make_room_for_values(self, more: int) -> None:
        """Makes room for `more` entries in lists by value."""
        self._most_valued += more
        if self._most_valued <= len(self.stores.value_lists):
            return
        room = 2 * self._most_valued
        self.stores = self.stores._replace(
            by_value=grown(self.stores.by_value, PLACES_PER_ENTRY * room),
            value_lists=grown(self.stores.value_lists, room),
            values=grown(self.stores.values, room),
            buckets=np.zeros(1 << (2 * room - 1).bit_length(), np.int32),
        )
        fill_buckets(self.stores, self.cursor.value_lists)

    def _make_room_for_matches(self, events: IntervalEvents) -> None:
        """Removes finished matches if they are many and more than half of all, so that the work on the others is
        amortized. Otherwise doubles the room.
        """
        count = int(self.cursor.matches)
        if len(self.open.rows) >= _FEW * _ROOM and 2 * int(self._alive.sum()) < count:
            # Only the keys of these matches have lists. Clearing all lists would take time for every key.
            self.open.lists[events.key[self.open.events[:count, 0]]] = 0
            keep_alive(self.open, self.cursor)
            self._order_scopes(events)
            return
        parts = {name: part for name, part in self.open._asdict().items() if name != "lists"}
        self.open = self.open._replace(**{name: grown(part, 2 * len(part)) for name, part in parts.items()})

    def needed(self, events: IntervalEvents) -> Int32s:
        """The positions of the events that an open or later match may contain, or that may forbid such a match."""
        horizon = self.horizon
        found = [self.open.events[: self.cursor.matches][self._alive].ravel()]
        for variable in self._variables:
            positions = self._stored(variable)
            until = self._needed_until(variable, positions, events)
            found.append(positions[(until >= FREE) | (until >= horizon)])
        return distinct(np.concatenate(found), len(events.end))

    def drop(self, keys: Int32s, events: IntervalEvents) -> None:
        """Ends the open matches of these keys, without emitting anything. `keep` must follow."""
        count = int(self.cursor.matches)
        dropped = np.isin(events.key[self.open.events[:count, 0]], keys)
        self.open.rows["alive"][:count][dropped] = 0

    @property
    def _alive(self) -> Flags:
        alive: Flags = self.open.rows["alive"][: self.cursor.matches] == 1
        return alive

    def _stored(self, variable: int) -> Int32s:
        return entries_of(self.stores.by_start, self.stores.lists[:, variable])

    def _needed_until(self, variable: int, positions: Int32s, events: IntervalEvents) -> Ints:
        """For each of these stored events of a variable, the greatest lateness time of a later event that makes it
        needed: the two may be in one match, or it may forbid a match of the later event. FREE if any later event may.
        """
        positives = len(self.pattern.tables.order)
        if variable == 0 and positives == 1:  # it is in no later match, but an equal event must be recognized
            return (events.end if self.pattern.lateness is End.END else events.start)[positions]
        window = self.pattern.plan.window
        purge = Purge.START if variable < positives else self.pattern.purges[variable - positives]
        of_starts = self.pattern.plan.pattern.window_of is Window.STARTS
        unbounded = of_starts and self.pattern.lateness is End.END
        if window is None or window >= FREE or purge is Purge.KEEP or unbounded:
            return np.full(len(positions), FREE)
        return (events.end if purge is Purge.END else events.start)[positions] + window

    def keep(self, positions: Int32s, events: IntervalEvents) -> None:
        """Forgets all events except those at `positions`, which `needed` returned; those of dropped keys are left out.
        `events` has only the events at these positions.
        """
        place = np.full(int(self.cursor.event), -1, np.int32)
        place[positions] = np.arange(len(positions), dtype=np.int32)
        keep_alive(self.open, self.cursor)
        count = int(self.cursor.matches)
        self.open.events[:count] = place[self.open.events[:count]]
        self._store_all(events, len(positions))
        self._order_scopes(events)

    def restore_open(
        self, matches: Int32s, rows: Mapping[str, npt.NDArray[Any]], events: IntervalEvents, count: int
    ) -> None:
        """Replaces the state by these open matches and the first `count` events, all of which were processed. `matches`
        has the positions of each match's events, and `rows` its fields of OPEN. No match is finished.
        """
        found, positives = matches.shape
        self.open = new_open_matches(max(_ROOM, 2 * found), positives, len(self.pattern.tables.negations), keys=1)
        self.open.events[:found] = matches
        for name, values in {**rows, "alive": 1}.items():
            self.open.rows[name][:found] = values
        self.cursor.matches = found
        self._store_all(events, count)
        rebuild_heap(self.open, self.cursor)
        set_all_scopes(self.pattern.tables, events, self.open, self._scratch, found)
        self._order_scopes(events)

    def _store_all(self, events: IntervalEvents, count: int) -> None:
        """Replaces the stored events by the first `count` events, all of which were processed."""
        tables = self.pattern.tables
        self.stores = self.stores._replace(lists=np.zeros((1, len(tables.bits)), LIST))
        self.stores.buckets[:] = 0
        self.open = self.open._replace(lists=np.zeros((1, len(tables.negations)), LIST))
        self.cursor.event = self.cursor.stored = self._most_stored = 0
        self.cursor.valued = self.cursor.value_lists = self._most_valued = 0
        self._make_room_for_events(events, count)
        self.cursor.event = count
        for variable, bit in enumerate(tables.bits.tolist()):
            positions = np.flatnonzero(events.mask[:count] >> bit & 1)
            by_start, by_end = (
                positions[np.lexsort((times[positions], events.key[positions]))] for times in (events.start, events.end)
            )
            lists, keys = self.stores.lists[:, variable], events.key[by_start]
            places, self.cursor.stored = lay_out(lists, keys, int(self.cursor.stored))
            self.stores.by_start[places], self.stores.by_end[places] = by_start, by_end
            if len(tables.indexes):
                store_all_values(tables, events, self.stores, self.cursor, variable, by_start)

    def _order_scopes(self, events: IntervalEvents) -> None:
        """Rebuilds the lists of open matches, which are ordered by the scopes of negations. All matches must be alive,
        their scopes set, and the lists empty.
        """
        count = int(self.cursor.matches)
        keys = events.key[self.open.events[:count, 0]]
        self.cursor.scoped = 0
        for number in range(self.open.lists.shape[1]):
            least, greatest = self.open.scopes[:count, number, 0], self.open.scopes[:count, number, 1]
            rows = np.flatnonzero(least <= greatest)
            rows = rows[np.lexsort((greatest[rows], keys[rows]))]
            places, self.cursor.scoped = lay_out(self.open.lists[:, number], keys[rows], int(self.cursor.scoped))
            self.open.by_scope[places] = rows
