"""The matcher for events that rows open and close: it emits matches whose open ends do not matter any more.

The kernel joins events as if each open one ended after all times. That finds all matches that are certain at some time
before the ends are known, and others. From when on a match is certain is then computed by `Certainty`, from its times
and from the events that may forbid it. When an event is closed, it is joined anew, with its end.

Unlike the kernel's own matches, those here are Python objects: some microseconds each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.compile.intervals.compiled import CompiledIntervals, compile_intervals
from cepheid.errors import LimitExceeded, SnapshotError
from cepheid.events.batch import EVENT_ID, MASK, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.kernel.arrays import FOREVER, NO_TIME, Int32s
from cepheid.kernel.failures import JointConditionFailed
from cepheid.kernel.intervals.layout import (
    BEGINNING,
    COMPLETION,
    INSERTION,
    LATE,
    OPEN_END,
    RETRACTION,
    EmittedIntervals,
)
from cepheid.kernel.intervals.reference import Interval
from cepheid.kernel.scripts.python_functions import Value
from cepheid.kernel.scripts.python_values import script_values
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.values import Window
from cepheid.matchers.intervals.certain import Certainty, Times, times_of
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.intervals.open_matches import Names, UncertainMatch, UncertainMatches
from cepheid.matchers.intervals.rows import RowKind, Step
from cepheid.matchers.snapshot import Snapshot, ids_of, to_bytes, with_columns
from cepheid.matchers.working_set import joint_error, mask_of
from cepheid.output.intervals import row_schema
from cepheid.plan.intervals.ends import reads_end
from cepheid.plan.intervals.growth import Purge, purge_of
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.limits import MOST


class _Event(NamedTuple):
    """A held event, with what is known of it."""

    name: bytes
    position: int
    key: int
    times: Times
    mask: int
    values: tuple[Value, ...]
    """Its lifted columns, where conditions of negations read them."""


class _Change(NamedTuple):
    """A row of the output."""

    event: int
    """The position of a late event; otherwise 0."""
    sign: int
    clock: int
    start: int
    end: int
    match: tuple[int, ...]


class LiveOpenMatcher(LiveIntervalMatcher):
    """Finds one interval pattern in events that rows open and close."""

    def __init__(
        self,
        plan: IntervalPlan,
        *,
        delay: int | None,
        lateness: End,
        revises: bool = False,
        frequencies: Mapping[str, float] | None,
    ) -> None:
        """With `revises`, a row may give an event another end as long as both ends are in time, or withdraw it."""
        super().__init__(_joins(plan, lateness, frequencies))
        self.plan = plan
        self._delay, self._lateness, self._revises = delay, lateness, revises
        self._certainty = Certainty(plan, lateness)
        self._end_bits = reads_end(plan).bits
        self._negated_bits = plan.variable_bits[plan.positives :]
        self._reads_values = any(plan.negated)
        self._clock = BEGINNING
        self.late_rows = 0
        self._names: list[bytes] = []
        """The id of the event at each position."""
        self._live: dict[bytes, _Event] = {}
        self._negated: dict[tuple[int, int], dict[bytes, _Event]] = defaultdict(dict)
        """By key and negation."""
        self.matches = UncertainMatches(plan.pattern.consistency, revises=revises)
        self._changes: list[_Change] = []

    # The calls

    def process_steps(self, batch: Batch, steps: Sequence[Step]) -> pa.Table:
        """The rows that these steps make. `batch` has a row for each step but DROPS, in their order; an opening row's
        end is its start.

        Raises:
            ConditionError, LimitExceeded: the matcher cannot be used afterwards.
        """
        position = len(self.working_set)
        found = self._joined(batch, steps) if len(batch) else {}
        for step in steps:
            self._clock = max(self._clock, step.clock)
            if step.kind is RowKind.DROPS:
                self._drop(step.name)
            elif step.kind is RowKind.LATE:
                self.late_rows += 1
                self._changes.append(_Change(position, LATE, self._clock, 0, 0, (0,) * self.plan.positives))
            else:
                self._arrive(step, position, found.get(position, []))
            position += step.row >= 0
            if step.is_last and step.kind is not RowKind.LATE:
                self._emit_ready()
        rows = self._taken()
        if len(self.working_set) > self._most_held:
            self.forget()
        return rows

    def move_clock(self, time: int, steps: Sequence[Step]) -> pa.Table:
        """Moves the clock to `time`; `steps` are the events that are then open for too long."""
        for step in steps:
            self._drop(step.name)
        self._clock = max(self._clock, time)
        self._emit_ready()
        return self._taken()

    def end(self, steps: Sequence[Step]) -> pa.Table:
        """Ends the input; `steps` are the events that are still open, which are dropped."""
        for step in steps:
            self._drop(step.name)
        left = [match for match in self.matches.all.values() if not match.is_out and match.certain_from < FOREVER]
        self._insert(sorted(left, key=lambda match: (match.end, match.start, match.names)))
        for match in [*self.matches.all.values()]:
            self.matches.remove(match)
        rows = self._taken()
        self._clock = FOREVER
        return rows

    def change(self, consistency: Consistency) -> pa.Table:
        """Changes the consistency; in real time, emits at once what holds."""
        self.matches.consistency = consistency
        if consistency is Consistency.REALTIME:
            self._emit_ready()
        return self._taken()

    @property
    def consistency(self) -> Consistency:
        return self.matches.consistency

    @property
    def clock(self) -> int:
        return self._clock

    @property
    def late(self) -> int:
        return self.late_rows

    @property
    def open_matches(self) -> int:
        each = self.matches.all.values()
        return sum(not (self._is_final(match) or self._is_impossible(match)) for match in each)

    def holds(self, name: bytes) -> bool:
        """Whether the event with this id is in memory: a match may contain it, or it may forbid one."""
        return name in self._live

    @property
    def opened(self) -> dict[bytes, int]:
        """The start of each open event."""
        return {event.name: event.times.start for event in self._live.values() if event.times.is_open}

    @property
    def _horizon(self) -> int:
        return BEGINNING if self._delay is None or self._clock == BEGINNING else self._clock - self._delay

    # What a row changes

    def _joined(self, batch: Batch, steps: Sequence[Step]) -> dict[int, list[tuple[int, ...]]]:
        """Adds the rows and finds the matches that each completes if open events end after all times: their events'
        positions, by the position of the row.
        """
        kinds = np.array([step.kind for step in steps if step.row >= 0])
        mask = mask_of(batch).copy()
        mask[kinds == RowKind.LATE] = 0
        mask[kinds == RowKind.OPENS] &= ~self._end_bits
        place = batch.data.schema.get_field_index(MASK)
        first = len(self.working_set)
        self._add(
            Batch(
                batch.data.set_column(
                    place, batch.data.schema.field(place), pa.array(mask).cast(batch.column(MASK).type)
                )
            )
        )
        self._end[first:][kinds == RowKind.OPENS] = OPEN_END
        self._names += canonical_bytes([batch.column(EVENT_ID)], len(batch)).to_pylist()
        try:
            emitted = self.kernel.run(self._events, len(self.working_set))
        except JointConditionFailed as failed:
            raise joint_error(failed, self.working_set, self.plan.pattern.variables) from failed
        self._read(batch, first)
        late = first + np.flatnonzero(kinds == RowKind.LATE).astype(np.int32)
        if len(late):
            self._ordinal[late] = self._late.of(self._identities(late.astype(np.int32)))
        each = zip(emitted.event.tolist(), map(tuple, emitted.match.tolist()), strict=True)
        return {event: [match for _, match in group] for event, group in groupby(each, key=lambda one: one[0])}

    def _read(self, batch: Batch, first: int) -> None:
        """Notes what negations read of the added events."""
        columns = [script_values(column) for column in batch.values] if self._reads_values else []
        values = [*zip(*columns, strict=True)] if columns else [()] * len(batch)
        starts, masks = self._events.start, self._events.mask
        self._added = [
            _Event(
                self._names[position],
                position,
                int(self._key[position]),
                times_of(int(starts[position]), int(self._end[position])),
                int(masks[position]),
                values[position - first],
            )
            for position in range(first, len(self.working_set))
        ]

    def _arrive(self, step: Step, position: int, candidates: Sequence[tuple[int, ...]]) -> None:
        event = self._added[position - len(self.working_set)]  # the last ones
        self._live[event.name] = event
        numbers = [number for number, bit in enumerate(self._negated_bits) if event.mask >> bit & 1]
        for number in numbers:
            self._negated[event.key, number][event.name] = event
        changes = step.kind in {RowKind.CLOSES, RowKind.REVISES}
        former = self.matches.with_event(event.name) if changes else []
        found = self._found(candidates)
        for match in former:
            self.matches.remove(match)
            now = found.get(match.names)
            if match.is_out and (now is None or self._is_wrong(now)):
                self._emit(RETRACTION, match)
            elif match.is_out and now is not None:
                now.is_out = True
                self._emit(COMPLETION, now)
        for match in found.values():
            self.matches.add(match)
        if numbers:
            self._forbid(event, numbers)

    def _found(self, candidates: Sequence[tuple[int, ...]]) -> dict[Names, UncertainMatch]:
        """The candidates that are matches at some time, if the events do not change."""
        most = self.plan.limits.max_matches_per_event
        found: dict[Names, UncertainMatch] = {}
        for positions in candidates:
            if all(map(self._is_live, positions)) and (match := self._match(positions)) is not None:
                found[match.names] = match
            if len(found) > most:
                what = f"an event completes more than {most:,} matches (max_matches_per_event)"
                raise LimitExceeded(f"{what}. Give the pattern a shorter within, or raise the limit")
        return found

    def _is_live(self, position: int) -> bool:
        event = self._live.get(self._names[position])
        return event is not None and event.position == position

    def _match(self, positions: tuple[int, ...]) -> UncertainMatch | None:
        """The match of these events; None if it is not certain before an event is closed."""
        events = [self._live[self._names[position]] for position in positions]
        times = [event.times for event in events]
        holds_from = self._certainty.holds_from(times)
        if holds_from == FOREVER:
            return None
        match = UncertainMatch(
            names=tuple(event.name for event in events),
            positions=positions,
            key=events[0].key,
            start=min(one.start for one in times),
            end=max(one.end for one in times),
            is_open=any(one.is_open for one in times),
            holds_from=holds_from,
            until=self._certainty.forbidden_until(times),
        )
        for number in range(len(self._negated_bits)):
            for event in self._negated.get((match.key, number), {}).values():
                if not self._note(match, number, event):
                    return None
        return match

    def _note(self, match: UncertainMatch, number: int, event: _Event) -> bool:
        """Notes from when on the event does not forbid the match. False if it does forever."""
        if event.name in match.names:
            return True
        bound = [self._live[name] for name in match.names]
        allowed = self._certainty.allowed_from(number, [one.times for one in bound], event.times)
        if allowed > NO_TIME and not self._satisfies(number, bound, event):
            allowed = NO_TIME
        if allowed == NO_TIME:
            match.forbidding.pop((number, event.name), None)
            return True
        match.forbidding[number, event.name] = allowed
        return allowed < FOREVER or self._may_change(event)

    def _satisfies(self, number: int, bound: Sequence[_Event], event: _Event) -> bool:
        """Whether the event satisfies the SQL of the negation."""
        taken = [*enumerate(_seen(one) for one in bound), (self.plan.positives + number, _seen(event))]
        return all(evaluate(one.script, taken, ()) is True for one in self.plan.negated[number])

    def _forbid(self, event: _Event, numbers: Sequence[int]) -> None:
        """Notes for the matches of its key what a negated event, which has arrived or is closed, forbids."""
        for match in self.matches.with_key(event.key):
            known = [number for number in numbers if (number, event.name) in match.forbidding]
            if event.times.start > match.until and not known:
                continue
            possible = all(self._note(match, number, event) for number in numbers)
            self._reconsider(match, possible=possible)

    def _reconsider(self, match: UncertainMatch, *, possible: bool) -> None:
        """Retracts the match if it is wrong now, or lets it wait anew."""
        if match.is_out and (not possible or self._is_wrong(match)):
            self._emit(RETRACTION, match)
            match.is_out = False
        if possible:
            self.matches.wait(match)
        else:
            self.matches.remove(match)

    def _is_wrong(self, match: UncertainMatch) -> bool:
        """Whether it does not hold for all ends after the clock."""
        return match.certain_from > self._clock + 1

    def _drop(self, name: bytes) -> None:
        """Drops an event that is open for too long, or is withdrawn."""
        event = self._live.pop(name)
        for match in self.matches.with_event(name):
            self.matches.remove(match)
            if match.is_out:
                self._emit(RETRACTION, match)
        numbers = [number for number, bit in enumerate(self._negated_bits) if event.mask >> bit & 1]
        for number in numbers:
            del self._negated[event.key, number][name]
        for match in self.matches.with_key(event.key) if numbers else ():
            for number in numbers:
                match.forbidding.pop((number, name), None)
            self.matches.wait(match)

    # What is emitted

    def _emit_ready(self) -> None:
        self._insert(self.matches.ready(self._clock, self._horizon))

    def _insert(self, matches: Sequence[UncertainMatch]) -> None:
        for match in matches:
            match.is_out = True
            self._emit(INSERTION, match)

    def _emit(self, sign: int, match: UncertainMatch) -> None:
        self._changes.append(_Change(0, sign, self._clock, match.start, match.end, match.positions))

    def _taken(self) -> pa.Table:
        """The rows of what was emitted since the last call."""
        if not self._changes:
            return row_schema(self.plan).empty_table()
        event, sign, clock, start, end, match = (np.array(part) for part in zip(*self._changes, strict=True))
        self._changes = []
        return self._placed_rows(EmittedIntervals(event, sign, clock, start, end, match.astype(np.int32)))

    # Memory

    def forget(self) -> None:
        """Forgets the events and matches that no row in time can change or need."""
        if self.working_set.all is None:
            return
        for match in [*self.matches.all.values()]:
            if (match.is_out and self._is_final(match)) or self._is_impossible(match):
                self.matches.remove(match)
        self._keep(self._needed())

    def _needed(self) -> Int32s:
        used = {position for match in self.matches.all.values() for position in match.positions}
        opened = [event.times.start for event in self._live.values() if self._may_change(event)]
        base = self._horizon
        if self.plan.pattern.window_of is Window.STARTS:
            base = FOREVER if self._lateness is End.END else min([base, *opened])
        found = [
            event.position
            for event in self._live.values()
            if self._may_change(event) or event.position in used or self._may_be_needed(event, base)
        ]
        return np.array(sorted(found), np.int32)

    def _may_change(self, event: _Event) -> bool:
        """Whether a row in time may give the event an end, or another one."""
        return event.times.is_open or (self._revises and event.times.end >= self._horizon)

    def _is_final(self, match: UncertainMatch) -> bool:
        """Whether no row in time can change the match."""
        if not self._revises:
            return match.is_final(self._horizon)
        names = {*match.names, *(name for _, name in match.forbidding)}
        return match.is_final(self._horizon) and not any(map(self._name_may_change, names))

    def _is_impossible(self, match: UncertainMatch) -> bool:
        """Whether an event that no row in time can change forbids the match."""
        forbidding = [name for (_, name), until in match.forbidding.items() if until == FOREVER]
        return self._revises and not all(map(self._name_may_change, forbidding))

    def _name_may_change(self, name: bytes) -> bool:
        event = self._live.get(name)
        return event is not None and self._may_change(event)

    def _may_be_needed(self, event: _Event, base: int) -> bool:
        """Whether a later match may contain the event, or the event may forbid it. Its starts are at most a window
        before `base`; FOREVER: nothing bounds them.
        """
        window = self.plan.window
        pattern = self.plan.pattern
        bits = self.plan.variable_bits
        purges = [purge_of(pattern, negation) for negation in pattern.negations]
        kinds = [Purge.START] * self.plan.positives if self.plan.positives > 1 else [None]
        for bit, purge in zip(bits, [*kinds, *purges], strict=True):
            if purge is None or not event.mask >> bit & 1:
                continue
            if window is None or base == FOREVER or purge is Purge.KEEP:
                return True
            if (event.times.end if purge is Purge.END else event.times.start) >= base - window:
                return True
        return False

    def _keep(self, positions: Int32s) -> None:
        super()._keep(positions)
        place = {former: now for now, former in enumerate(positions.tolist())}
        self._names = [self._names[position] for position in positions.tolist()]
        self._live = {
            name: event._replace(position=place[event.position], key=int(self._key[place[event.position]]))
            for name, event in self._live.items()
            if event.position in place
        }
        self._index_negated()
        former = self.matches
        self.matches = UncertainMatches(former.consistency, revises=self._revises)
        for match in former.all.values():
            now = tuple(place[position] for position in match.positions)
            match.positions, match.key = now, int(self._key[now[0]])
            self.matches.add(match)

    def _index_negated(self) -> None:
        self._negated.clear()
        for event in self._live.values():
            for number, bit in enumerate(self._negated_bits):
                if event.mask >> bit & 1:
                    self._negated[event.key, number][event.name] = event

    # Snapshots

    def stored(
        self, header: Mapping[str, Any], arrays: Mapping[str, Any], batches: Mapping[str, pa.RecordBatch]
    ) -> bytes:
        """A snapshot with the matcher's state and with these parts."""
        self.forget()
        known = [*self.matches.all.values()]
        own = {
            "opened": (self._end == OPEN_END).astype(np.int64),
            "matches": np.array([match.positions for match in known], np.int32).reshape(
                len(known), self.plan.positives
            ),
            "out": np.array([match.is_out for match in known], np.int64),
            "clock": np.array([self._clock, self.late_rows]),
        }
        held = self.working_set.all
        more = {} if held is None else {"held": held.data}
        if self.late_rows:
            more["late"] = self._late.listed
        state = {**header, "ids": self.ids, "consistency": self.consistency.value}
        return to_bytes(Snapshot(state, {**own, **arrays}, {**more, **batches}))

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        self.ids = ids_of(snapshot.header)
        arrays = snapshot.arrays
        self._clock, self.late_rows = arrays["clock"].tolist()
        if (held := snapshot.batches.get("held")) is not None:
            batch = Batch(with_columns(held, columns, "the snapshot's events"))
            self._add(batch)
            self._end[arrays["opened"] == 1] = OPEN_END
            self._names = canonical_bytes([batch.column(EVENT_ID)], len(batch)).to_pylist()
            none = np.zeros((0, self.plan.positives), np.int32)
            self.kernel.restore_open(none, {}, self._events, len(batch))
            self._read(batch, 0)
            self._live = {event.name: event for event in self._added}
            self._index_negated()
        consistency = Consistency(snapshot.header["consistency"])
        self.matches = UncertainMatches(consistency, revises=self._revises)
        for positions, is_out in zip(arrays["matches"].tolist(), arrays["out"].tolist(), strict=True):
            if (match := self._match(tuple(positions))) is None:
                raise SnapshotError("the snapshot has a match that its events do not make")
            match.is_out = bool(is_out)
            self.matches.add(match)
        self._late = type(self._late).restored(self.late_rows, snapshot.batches.get("late"))


def _joins(plan: IntervalPlan, lateness: End, frequencies: Mapping[str, float] | None) -> CompiledIntervals:
    """What the kernel runs: the pattern without negations, which emits at once, on events of which none is late."""
    pattern = replace(plan.pattern, negations=(), consistency=Consistency.REALTIME)
    limits = replace(plan.limits, max_matches_per_event=MOST)  # some that it finds contain an event's open form, too
    joined = replace(
        plan, pattern=pattern, variable_bits=plan.variable_bits[: plan.positives], negated=(), limits=limits
    )
    return compile_intervals(joined, delay=0, lateness=lateness, frequencies=frequencies, external_clock=True)


def _seen(event: _Event) -> Interval:
    return Interval(event.times.start, event.times.end, event.mask, event.values)
