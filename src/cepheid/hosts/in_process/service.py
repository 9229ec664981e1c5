"""The matcher for services without Spark: tables of events in, rows out, its state in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import cast

import pyarrow as pa

from cepheid.errors import ConditionError, PatternError, SchemaError, in_pattern, warn
from cepheid.events.batch import END, TIME, Batch
from cepheid.events.order import check_times
from cepheid.events.time import microseconds
from cepheid.families.family import ServiceOptions
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import in_one_table, plans_in_process, warn_of_repeated_hours
from cepheid.hosts.in_process.failure_guard import FailureGuard
from cepheid.hosts.in_process.given_types import in_types_of, sources
from cepheid.hosts.in_process.prepare import (
    Read,
    TimedEvents,
    in_order_of_arrival,
    lifted,
    timed,
    usable,
    with_sequence,
)
from cepheid.hosts.in_process.tables import fitted
from cepheid.kernel.arrays import NO_TIME
from cepheid.lang.consistency import Consistency
from cepheid.matchers.counts import READ_COUNTS, IntervalMatcherCounts, ReadCounts, sum_of
from cepheid.matchers.pattern_events import events_of_each, projections
from cepheid.matchers.protocols import RowsMatcher, RowsReader, ServiceMatcher
from cepheid.matchers.service import ARRIVES
from cepheid.matchers.shared.events import Share, SharedEvents
from cepheid.matchers.shared.order_of_ends import in_order_of_ends
from cepheid.matchers.snapshot import Apart, apart, restoring, together
from cepheid.output.times import given_rows
from cepheid.plan.plan_set import PatternPlan, PlanSet
from cepheid.plan.sequence import columns_of
from cepheid.plan.used_columns import used_columns
from cepheid.requests.arrival import NUMBER_OF_ARRIVAL, advanced_time, arrival_time, check_names, with_arrival
from cepheid.requests.request import Request, instant_of
from cepheid.requests.warnings import of_growth, with_names

_NOTHING_READ = {"events": 0, "null_keys": 0, "null_times": 0, "reversed": 0}


class TableMatcher(FailureGuard):
    """Finds patterns in tables of events that arrive one after the other. Events are read and lifted once for all
    patterns; each has a matcher of its own. Several patterns here are always interval patterns, and
    their matchers share the events that they hold.
    """

    def __init__(self, request: Request, columns: pa.Schema, options: ServiceOptions) -> None:
        self._read: Read = dict(_NOTHING_READ)
        """Counts of events read. They include the events of a call that has failed half-way."""
        self._arrives = request.arrival
        self._least = NO_TIME
        """With times of arrival, the earliest time at which events can arrive."""
        self._in_sequence = bool(request.sequence)
        self._changes = () if options.changes is None else (options.changes,)
        if request.arrival:
            check_names(columns.names)
            request = replace(request, arrival=False, sequence=(NUMBER_OF_ARRIVAL, *request.sequence))
            columns = self._arrived(columns.empty_table(), 0).schema
        self._asked = request
        numbered, self._request = in_order_of_arrival(pa.Table.from_batches([], columns), request)
        self._zone = request.time_zone or "UTC"
        self._engine = DuckDbEngine(time_zone=self._zone)
        self._given = numbered.schema
        self._columns = with_sequence(numbered, request.sequence, self._engine).schema
        self.plans: PlanSet[PatternPlan] = plans_in_process(columns, request, self._engine)
        self._sources = sources(self.plans)
        self._ordered_by = columns_of(request.sequence, columns)
        self._options = replace(options, columns=self._columns)
        self._own = events_of_each(self.plans, [None] * len(self.plans.each))
        self._rows, self._shared, self.matchers = self._new_parts()
        grows = {plan.pattern.name: one.warnings for plan, one in zip(self.plans.each, self.matchers, strict=True)}
        growth = with_names(self.plans, lambda plan: of_growth("a matcher", grows[plan.pattern.name]))
        for warning in (*with_names(self.plans, request.family.warnings), *growth):
            warn(warning)
        self._batch_columns = [batch.data.schema for batch in self._empty_batches()]

    def _empty_batches(self) -> list[Batch]:
        """What each matcher gets, without events."""
        return [own.of(self._nothing) for own in self._own]

    @property
    def _nothing(self) -> Batch:
        """What all matchers get, without events."""
        nothing = pa.Table.from_batches([], self._columns)
        if self._request.event_id is None:
            return self._batch(nothing)[0]
        return self._lifted(timed(fitted(nothing, self._used), self._request))

    @property
    def plan(self) -> PatternPlan:
        """The plan of the only pattern."""
        return self.plans.only

    @property
    def matcher(self) -> ServiceMatcher:
        """The matcher of the only pattern."""
        (matcher,) = self.matchers
        return matcher

    def _new_parts(self) -> tuple[RowsReader | None, SharedEvents | None, tuple[ServiceMatcher, ...]]:
        """New matchers; what reads their rows, if rows open events; and the events that they share, if there are
        several.
        """
        family, found = self._request.family, list[ServiceMatcher]()
        by_rows, several = self._request.event_id is not None, len(self.plans.each) > 1
        rows = family.rows_reader(self.plans.schema, self._options, self._is_held) if by_rows else None
        shared = SharedEvents(self._nothing.data.schema) if several else None
        for plan, own in zip(self.plans.each, projections(self.plans, [None] * len(self.plans.each)), strict=True):
            share = None if shared is None else Share(shared, own, len(found))
            with in_pattern(plan.pattern.name, named=self.plans.named):
                found.append(family.service(plan, replace(self._options, rows=rows, share=share), self._zone))
        return rows, shared, tuple(found)

    def process(self, events: pa.Table, at: datetime | None = None) -> pa.Table:
        """Processes the events and returns the rows that become certain. `at` is their time of arrival; None: now."""
        if self._rows is not None:
            return self._process_rows(events, self._rows)
        arrived = self._least
        if self._arrives:
            check_names(events.schema.names)
            arrived = arrival_time(None if at is None else self._instant(at, "at"), self._least)
            events = self._arrived(events, arrived)
        elif at is not None:
            raise SchemaError("at: it is the time of arrival of the events: make the matcher with time=cepheid.ARRIVAL")
        events, _ = in_order_of_arrival(events, self._asked, self._read["events"])
        batch, read = self._batch(events)
        with self._changing():
            self._read, self._least = _sum(self._read, read), arrived
            rows = self._processed(batch if self._shared is None else in_order_of_ends(batch))
        return self._warned(rows)

    def _process_rows(self, events: pa.Table, reader: RowsReader) -> pa.Table:
        """Processes rows that open and close events."""
        given = timed(fitted(events, self._used), self._request)
        with self._changing():
            self._read["events"] += len(given)
            batch = self._lifted(TimedEvents(*reader.read(given.events, given.times)))
            check_times(batch, TIME, END)
            rows = self._processed(batch)
        return self._warned(rows)

    def _processed(self, batch: Batch) -> pa.Table:
        """The rows that the events make, in each pattern."""
        given = batch if self._shared is None else self._shared.add(batch)
        rows = self._from_each(lambda number: self.matchers[number].process(self._own[number].of(given)))
        if self._shared is not None:
            self._shared.forget_if_many()
        return rows

    def _is_held(self, name: bytes) -> bool:
        return any(cast("RowsMatcher", matcher).holds(name) for matcher in self.matchers)

    def advance_time(self, time: datetime | None) -> pa.Table:
        """Advances time and returns the rows that become certain. Events up to `time` that come afterwards are late.
        None: to now, with times of arrival.

        Raises:
            EventError: with times of arrival, time has passed `time`.
        """
        if self._request.time is None:
            raise SchemaError("time: in processing order (time=None) no time passes; finish() ends the input")
        if time is None and not self._arrives:
            raise SchemaError("time: say to which time; only a matcher made with time=cepheid.ARRIVAL has a clock")
        reached = None if time is None else self._instant(time, "time")
        if self._arrives or reached is None:
            reached = advanced_time(reached, self._least)
        with self._changing():
            self._least = max(self._least, reached + 1)
            if self._rows is not None:
                self._rows.advance_time(reached)
            rows = self._from_each(lambda number: self.matchers[number].advance_time(reached))
        return self._warned(rows)

    def _instant(self, time: datetime, argument: str) -> int:
        return microseconds(instant_of(time, self._zone, argument=argument))

    def _arrived(self, events: pa.Table, time: int) -> pa.Table:
        """The events with the time and the order of arrival."""
        return with_arrival(events, time, self._read["events"], in_sequence=self._in_sequence)

    def finish(self) -> pa.Table:
        """Ends the input and returns the remaining rows. Later events are late."""
        with self._changing():
            if self._rows is not None:
                self._rows.finish()
            rows = self._from_each(lambda number: self.matchers[number].finish())
        return self._warned(rows)

    def switch(self, consistency: Consistency, pattern: str | None = None) -> pa.Table:
        """Changes the consistency of the pattern, which is named if there are several, and returns the rows that this
        emits.
        """
        chosen = self.number_of(pattern)
        with self._changing():
            with in_pattern(self._names[chosen], named=self.plans.named):
                made = self.matchers[chosen].switch(consistency)
            rows = self._from_each(lambda number: made if number == chosen else self._no_rows(number))
        return self._warned(rows)

    def number_of(self, pattern: str | None) -> int:
        """The number of the pattern with this name; None: of the only pattern."""
        names = self._names
        if pattern is None and len(names) == 1:
            return 0
        if pattern not in names:
            raise PatternError(f"pattern: one of {', '.join(map(repr, names))} is expected, got {pattern!r}")
        return names.index(pattern)

    def _no_rows(self, number: int) -> pa.Table:
        runner = self._request.family.runner(self.plans.each[number], self._options.late_by)
        return runner.schema.empty_table()

    def partial_matches(self, most: int) -> pa.Table:
        """The open partial matches, at most `most` for each key."""
        self._check()
        rows = given_rows(self.plan, self.matcher.partial_matches(most), self._zone)
        return in_types_of(self._columns, rows, self._sources)

    def explain(self) -> str:
        """The plan as text."""
        return self._request.family.explain(self._request.only.pattern, self.plan).text.rstrip("\n")

    def snapshot(self) -> bytes:
        """The complete state: what is open and what waits."""
        self._check()
        read = self._counted | ({ARRIVES: self._least} if self._arrives else {})
        if self._shared is not None:
            self._shared.forget()
        each = [matcher.snapshot(read) for matcher in self.matchers]
        held = None if self._shared is None else self._shared.stored
        return each[0] if len(each) == 1 else together(dict(zip(self._names, each, strict=True)), held)

    def restore(self, data: bytes) -> None:
        """Replaces the state by that of the snapshot."""
        # That of a single pattern changes nothing if it refuses the snapshot.
        several = len(self.matchers) > 1
        rows, shared, matchers = self._new_parts() if several else (self._rows, None, self.matchers)
        with restoring():
            each, held = apart(data, self._names) if several else Apart([data], None)
            if shared is not None and held is not None:
                shared.restore(held)
            reads = [
                matcher.restore(own, columns)
                for matcher, own, columns in zip(matchers, each, self._batch_columns, strict=True)
            ]
        read = reads[0]
        self._rows, self._shared, self.matchers = rows, shared, matchers
        self._read = {name: read.get(name, 0) for name in _NOTHING_READ}
        self._least = read.get(ARRIVES, NO_TIME)
        self._failure = None

    @property
    def counts(self) -> ReadCounts:
        total = sum_of([matcher.counts(self._counted) for matcher in self.matchers], once=READ_COUNTS)
        return total if self._shared is None else replace(cast("IntervalMatcherCounts", total), held=len(self._shared))

    @property
    def _counted(self) -> Read:
        """The counts of events read, also of those that the reader of rows has dropped."""
        return self._read if self._rows is None else self._read | self._rows.counts

    def _batch(self, events: pa.Table) -> tuple[Batch, Read]:
        """The usable events as a matcher takes them, and the counts of all events."""
        needed = {*used_columns(self.plans), *self._ordered_by}
        used = [field for field in self._given if field.name in needed]
        in_sequence = with_sequence(fitted(events, pa.schema(used)), self._asked.sequence, self._engine)
        given, read = usable(timed(in_sequence, self._request), self.plans.schema, self._request.nulls)
        batch = self._lifted(given)
        check_times(batch, *(TIME, END)[: max(1, len(self.plans.schema.times))])
        return batch, read

    def _lifted(self, events: TimedEvents) -> Batch:
        """The events as the matchers of all patterns take them. If a condition fails, those of each pattern are
        evaluated once more, so that the error names a pattern.
        """
        try:
            return lifted(events, self.plans, self._engine)
        except ConditionError:
            for plan in self.plans.each:
                with in_pattern(plan.pattern.name, named=self.plans.named):
                    lifted(events, plan, self._engine)
            raise

    @property
    def _used(self) -> pa.Schema:
        """The columns that are needed."""
        names = dict.fromkeys([*used_columns(self.plans), *self._changes])
        return pa.schema([self._columns.field(name) for name in names])

    def _warned(self, rows: pa.Table) -> pa.Table:
        """Warns about the rows. Called after the state has changed completely, because a warning may be an error."""
        warn_of_repeated_hours(rows, self._zone)
        return rows

    def _from_each(self, rows_of: Callable[[int], pa.Table]) -> pa.Table:
        """The rows of all patterns in one table; `rows_of` gives those of the pattern with a number. Errors name their
        pattern.
        """
        each = []
        for number, name in enumerate(self._names):
            with in_pattern(name, named=self.plans.named):
                each.append(rows_of(number))
        rows = in_one_table(self.plans, self._request.family, each, self._engine)
        return in_types_of(self._columns, rows, self._sources)

    @property
    def _names(self) -> list[str]:
        return [plan.pattern.name for plan in self.plans.each]


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Read:
    return {name: count + other[name] for name, count in one.items()}
