"""A deployed pattern that runs: from events and time to rows and the next state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import PatternError, in_pattern
from cepheid.events.batch import TIME, Batch
from cepheid.events.order import check_times
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.in_process.detect import finished_rows, plans_in_process, with_measures
from cepheid.hosts.in_process.prepare import TimedEvents, lifted, usable
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.hosts.shards.log import first_head, next_head, restored, snapshot_of
from cepheid.hosts.shards.store import Entry, Head, ShardState, Store
from cepheid.kernel.arrays import FOREVER
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.protocols import LiveMatcher
from cepheid.matchers.runners import advance
from cepheid.matchers.watermark import Reached
from cepheid.matchers.working_set import with_any
from cepheid.output.ids import Ids
from cepheid.output.times import given_rows
from cepheid.plan.plan_set import PatternPlan, relevant_to_any
from cepheid.plan.used_columns import used_columns
from cepheid.requests.request import Nulls
from cepheid.requests.request_of import request_of

MOST_OPEN_ROWS = 1000
"""For each key at most so many open partial matches are stored as rows: a set may stand for more than fit anywhere."""

_BEFORE_KEY = ("id", "series", "key_id", "version")
_AFTER_KEY = ("status", "stage", "started", "wakeup")


class EventTable(NamedTuple):
    """How the events of an input are read."""

    columns: pa.Schema
    time: str
    sequence: tuple[str, ...]
    time_zone: str
    nulls: Nulls


class Deployed:
    """A deployed pattern that runs. `step` changes only this object; `save` writes what has changed."""

    def __init__(self, deployment: Deployment, table: EventTable, ids: Ids) -> None:
        """`ids` are those of the store.

        Raises:
            PatternError, SchemaError: the pattern does not fit the events; the message has all problems.
        """
        self.deployment = deployment
        self._table = table
        self._ids = ids
        self._engine = DuckDbEngine(time_zone=table.time_zone)
        self._nulls = table.nulls
        request = request_of(
            deployment.pattern,
            time=table.time,
            key=deployment.key,
            sequence=table.sequence,
            columns=deployment.columns,
            measures=without_keys(deployment.measures, deployment.key),
            outputs=deployment.outputs,
            limits=deployment.limits,
            time_zone=table.time_zone,
        )
        family = request.family
        if deployment.promoted is not None and not family.lists_open:
            raise PatternError(f"promote: {family.noun} has no open partial matches that can be listed")
        asked = request.only._replace(pattern=family.endless(request.only.pattern), promoted=deployment.promoted)
        plans = plans_in_process(table.columns, replace(request, patterns=(asked,)), self._engine)
        self.plan: PatternPlan = plans.only
        runner = family.runner(self.plan, "start")
        self._made_for = family.compatibility(runner, table.time_zone)
        self._runner = runner if deployment.status == "running" else family.draining(runner)
        relevant = relevant_to_any(family.compile(plans).relevant_to)
        self._relevant = None if "late" in deployment.outputs else relevant
        self._used = used_columns(self.plan)
        nothing = TimedEvents(table.columns.empty_table().select(self._used), (pa.chunked_array([], TIME_TYPE),))
        self._columns = lifted(nothing, self.plan, self._engine).data.schema
        self.schema = finished_rows(self.plan, self._runner.schema.empty_table(), self._engine).schema
        stored = self._runner.stored_open_schema
        self.open_schema = None if stored is None else self._open_rows(stored.empty_table()).schema
        self._matcher: LiveMatcher = self._runner.matcher(ids)
        self._matcher.watch()
        self._head: Head | None = None
        self._continues_log = True
        self._entry: Entry | None = None
        """The events of the step since `save`."""
        self._reached = Reached(self._matcher.now)

    def recover(self, stored: ShardState, head: Head | None) -> pa.Table | None:
        """Continues from what is stored; returns the rows that result from changed arguments."""
        if head is None:
            return None
        ready = restored(self._runner, stored, head, self._made_for, self._columns)
        self._matcher, self._continues_log, self._head = ready.matcher, ready.continues_log, head
        self._matcher.watch()
        self._reached = head.reached
        return self._finished(pa.concat_tables(ready.rows)) if ready.rows else None

    def start_at(self, reached: Reached) -> None:
        """Events before this time are late."""
        advance(self._matcher, reached)
        self._reached = reached

    def draining(self, deployment: Deployment) -> Deployed:
        """The same, continued by a matcher that starts nothing more."""
        after = Deployed(deployment, self._table, self._ids)
        snapshot = snapshot_of(self._matcher, self._made_for)
        after._matcher, _ = after._runner.restored(snapshot, after._made_for, after._columns)
        after._matcher.watch()
        after._head, after._reached = self._head, self._reached
        after._continues_log = False
        return after

    def relist(self) -> None:
        """Makes all open partial matches count as changed."""
        self._matcher.watch(all_open=True)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is open and no event waits."""
        return self._matcher.is_idle

    @property
    def counts(self) -> dict[str, int]:
        return {**self._matcher.counts, "open": self._matcher.open}

    def step(self, events: TimedEvents | None, before: Reached, after: Reached) -> pa.Table | None:
        """Processes events that come when time has reached `before`, then advances time to `after`. Returns the rows
        that this makes certain; None if there was nothing to do.

        Raises:
            ConditionError, EventError, LimitExceeded, SkipError: the object cannot be used afterwards.
        """
        with in_pattern(self.deployment.name):
            batch = None if events is None else self._batch(events)
            if (batch is None or not len(batch)) and not self._is_due(after):
                return None
            rows = [advance(self._matcher, before)]
            if batch is not None and len(batch):
                rows.append(self._matcher.process(batch))
                self._entry = Entry.of(before, to_stream(batch.data))
            rows.append(advance(self._matcher, after))
            self._reached = after
            return self._finished(self._matcher.net(pa.concat_tables(rows)))

    def save(self, store: Store) -> None:
        """Writes the state as it is now."""
        matcher, entry, self._entry = self._matcher, self._entry, None
        due = None if matcher.due == FOREVER else matcher.due
        before = self._head if self._continues_log else None
        following = next_head(before, entry, self._reached, matcher.open, due)
        if following is not None:
            store.append(following, entry)
        else:
            snapshot = snapshot_of(matcher, self._made_for)
            following = first_head(snapshot, self._reached, matcher.open, due)
            store.write(following, snapshot, self._head)
        self._head, self._continues_log = following, True

    def open_changes(self) -> OpenChanges | None:
        """The open partial matches of the keys visited since the last call, as rows of `open_schema`."""
        changes = self._matcher.open_changes(MOST_OPEN_ROWS)
        return None if changes is None else OpenChanges(changes.keys, self._open_rows(changes.rows))

    def _open_rows(self, rows: pa.Table) -> pa.Table:
        given = with_measures(given_rows(self.plan, rows, self._engine.time_zone), self.plan.promoted, self._engine)
        for name, text in (("version", self.deployment.version), ("status", "waiting")):
            given = given.append_column(name, pa.array([text] * given.num_rows, pa.string()))
        promoted = [measure.name for measure in self.plan.promoted]
        return given.select([*_BEFORE_KEY, *self.deployment.key, *_AFTER_KEY, *promoted, "stages"])

    def _is_due(self, reached: Reached) -> bool:
        return self._matcher.due <= reached.time

    def _batch(self, events: TimedEvents) -> Batch:
        """The events that may matter, as the matcher takes them."""
        given, _ = usable(TimedEvents(events.events.select(self._used), events.times), self.plan.schema, self._nulls)
        batch = with_any(lifted(given, self.plan, self._engine), self._relevant)
        check_times(batch, TIME)
        return batch

    def _finished(self, rows: pa.Table) -> pa.Table:
        return finished_rows(self.plan, rows, self._engine)


def without_keys(measures: Mapping[str, str] | None, key: Sequence[str]) -> dict[str, str] | None:
    """The measures without those that only repeat a column of the key, which each row has anyway."""
    if measures is None:
        return None
    return {name: text for name, text in measures.items() if name not in key or not _is_column(text, name)}


def _is_column(text: str, name: str) -> bool:
    """Whether the SQL text is just the column of this name of one stage."""
    return re.fullmatch(rf"(`[^`]+`|\w+)\.(`{re.escape(name)}`|{re.escape(name)})", text.strip()) is not None
