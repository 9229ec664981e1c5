"""A deployed pattern that runs: from events and time to rows and the next state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import PatternError, SchemaError, in_pattern
from cepheid.events.batch import TIME, Batch
from cepheid.events.order import check_times
from cepheid.events.time import TIME_TYPE, arrow_zone
from cepheid.families import known_family_of
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.durable.next_snapshot import FEW_ENTRIES, NextSnapshot, is_written_at_once
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.alike import alike
from cepheid.hosts.durable.step.events import Reading, StepEvents
from cepheid.hosts.durable.step.screen import comparisons_of, only_comparisons
from cepheid.hosts.durable.step.wakeups import Wakeups
from cepheid.hosts.durable.store import RowTable, ShardStore
from cepheid.hosts.durable.tables import found_tables, open_table
from cepheid.hosts.in_process.detect import finished_rows, plans_in_process, with_measures
from cepheid.hosts.in_process.prepare import TimedEvents, lifted
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.hosts.shards.log import first_head, head_after, next_head, restored, snapshot_in_pieces, snapshot_of
from cepheid.hosts.shards.store import Entry, Head, ShardState
from cepheid.kernel.arrays import FOREVER
from cepheid.knowledge.question import with_answers
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.protocols import LiveMatcher
from cepheid.matchers.runners import advance
from cepheid.matchers.watermark import Reached
from cepheid.matchers.working_set import with_any
from cepheid.output.common import INSERTION, RETRACTION
from cepheid.output.ids import Ids
from cepheid.output.times import given_rows
from cepheid.plan.plan_set import PatternPlan, relevant_to_any
from cepheid.requests.request import Nulls
from cepheid.requests.request_of import request_of

MOST_OPEN_ROWS = 1000
"""For each key at most so many open partial matches are stored as rows: a set may stand for more than fit anywhere."""

_NOT_COUNTED = 0
"""In place of the number of open partial matches in a head: counting them may take longer than a step, and the host
says it when asked.
"""

_BEFORE_KEY = ("id", "series", "key_id", "version")
_AFTER_KEY = ("status", "stage", "started", "wakeup")


_NO_TEXTS = pa.array([], pa.string())


class EventTable(NamedTuple):
    """How the events of an input are read."""

    columns: pa.Schema
    time: str
    sequence: tuple[str, ...]
    time_zone: str
    nulls: Nulls


class Found(NamedTuple):
    """The rows of a step, and for each the instant of its detection: `detected_at` may be a local time."""

    rows: pa.Table
    detected: pa.ChunkedArray

    def filter(self, mask: pa.Array | pa.ChunkedArray) -> Found:
        return Found(self.rows.filter(mask), self.detected.filter(mask))


class Deployed:
    """A deployed pattern that runs. `step` changes only this object; `save` writes what has changed."""

    def __init__(self, deployment: Deployment, table: EventTable, ids: Ids) -> None:
        """`ids` are those of the store.

        Raises:
            PatternError, SchemaError: the pattern does not fit the events; the message has all problems.
        """
        self.deployment = deployment
        self.table = table
        """How its events are read."""
        self._ids = ids
        self._engine = DuckDbEngine(time_zone=table.time_zone)
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
        with _with_faults(_taken_names(deployment, lists_open=family.lists_open)):
            plans = plans_in_process(table.columns, replace(request, patterns=(asked,)), self._engine)
        self.plan: PatternPlan = plans.only
        self.problems = (*family.warnings(self.plan), *family.growth(self.plan, "start"))
        """What works, but perhaps not as intended, and what is retained for ever."""
        self._runner = family.runner(self.plan, "start")
        self._made_for = family.compatibility(self._runner, table.time_zone)
        relevant = relevant_to_any(family.compile(plans).relevant_to)
        self._relevant = None if "late" in deployment.outputs else relevant
        known = with_answers(self.plan.schema.columns, self.plan.questions)
        fails = self._engine.may_fail([*self.plan.bits, *self.plan.values], known)
        self.comparisons = None if self._relevant is None or fails else comparisons_of(self.plan, self._relevant)
        """For each condition, its comparisons. An event must pass those of one to matter. None: any may."""
        self._conditions = only_comparisons(self.plan)
        """The conditions, if they are so simple that no query is needed, which would take a millisecond."""
        self._reading = Reading(self.plan, table.time_zone, table.nulls)
        self.used_columns: Sequence[str] = self._reading.used
        """The columns of the events that it reads."""
        nothing = table.columns.empty_table().select(self.used_columns), (pa.chunked_array([], TIME_TYPE),)
        self._columns = lifted(TimedEvents(*nothing), self.plan, self._engine).data.schema
        self._nothing = self._finished(self._runner.schema.empty_table())
        stored = self._runner.stored_open_schema
        self.open_schema = None if stored is None else self._open_rows(stored.empty_table(), _NO_TEXTS).schema
        self.correlated: tuple[str, ...] = ()
        """When it is deployed: the promoted columns that are correlations of its pattern."""
        self.wakeups = Wakeups(plans.only.window if family.lists_open else None)
        """When the stored rows of its open partial matches may expire."""
        self._matcher: LiveMatcher = self._runner.matcher(ids)
        self._matcher.watch()
        self._head: Head | None = None
        self._continues_log = True
        self._next: NextSnapshot | None = None
        self._entry: Entry | None = None
        """The events of the step since `save`."""
        self._reached = Reached(self._matcher.now)
        self._due = FOREVER

    def with_correlations(self) -> Deployed:
        """The same, before it has run, with the correlations of its pattern among the promoted columns."""
        more = known_family_of(self.deployment.pattern).correlations(self.plan)
        if not more:
            return self
        promoted = {**(self.deployment.promoted or {}), **more}
        correlated = Deployed(replace(self.deployment, promoted=promoted), self.table, self._ids)
        correlated.correlated = tuple(more)
        return correlated

    def recover(self, stored: ShardState, head: Head | None) -> None:
        """Continues from what is stored."""
        if head is None:
            return
        after = self.deployment.drained_after
        # Earlier versions wrote a snapshot that does not say so when a pattern began to drain.
        drains = self.deployment.status == "draining" and after is None
        columns, made_for = self._columns, self._made_for
        ready = restored(self._runner, stored, head, made_for, columns, drains=drains, drained_after=after)
        self._matcher, self._continues_log, self._head = ready.matcher, ready.continues_log, head
        self._matcher.watch()
        self._reached, self._due = head.reached, self._matcher.due

    def start_at(self, reached: Reached) -> None:
        """Events before this time are late."""
        advance(self._matcher, reached)
        self._reached, self._due = reached, self._matcher.due
        self.wakeups.forget()

    def drain(self) -> None:
        """From now on starts nothing, and goes on with what is open. What is stored stays as it is. The family of the
        pattern must say that it can.
        """
        self._matcher.drain(waiting=True)
        after = 0 if self._head is None else self._head.entries
        self.deployment = replace(self.deployment, status="draining", drained_after=after)
        self._next = None  # it would not say that its matcher drains

    def relist(self) -> None:
        """Makes all open partial matches count as changed."""
        self._matcher.watch(all_open=True)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows of `step`."""
        return self._nothing.rows.schema

    @property
    def is_idle(self) -> bool:
        """Whether nothing is open and no event waits."""
        return self._matcher.is_idle

    @property
    def counts(self) -> dict[str, int]:
        return {**self._matcher.counts, "open": self._matcher.open}

    @property
    def no_match(self) -> Mapping[str, int]:
        """The number of partial matches that each negation has ended, by its name; empty if they are not counted."""
        return self._matcher.no_match

    def is_due(self, reached: Reached) -> bool:
        """Whether there is something to do once time has reached this, even without events."""
        return self._due <= reached.time

    def step(self, events: StepEvents | None, before: Reached, after: Reached) -> Found | None:
        """Processes events that come when time has reached `before`, then advances time to `after`. Returns the rows
        that this makes certain, in the order of `in_order`; None if there was nothing to do.

        Raises:
            ConditionError, EventError, LimitExceeded, SkipError: the object cannot be used afterwards.
        """
        with in_pattern(self.deployment.name):
            batch = None if events is None else self._batch(events)
            if (batch is None or not len(batch)) and not self.is_due(after):
                return None
            rows = [advance(self._matcher, before)]
            if batch is not None and len(batch):
                rows.append(self._matcher.process(batch))
                self._entry = Entry.of(before, to_stream(batch.data))
            rows.append(advance(self._matcher, after))
            self._reached, self._due = after, self._matcher.due
            if not any(part.num_rows for part in rows):  # as mostly
                return self._nothing
            return self._finished(in_order(self._matcher.net(pa.concat_tables(rows))))

    def _finished(self, rows: pa.Table) -> Found:
        return Found(finished_rows(self.plan, rows, self._engine), rows.column("detected_at"))

    @property
    def head(self) -> Head | None:
        """The head of the stored state; None before the first `save`."""
        return self._head

    def save(self, store: ShardStore) -> None:
        """Writes the state as it is now."""
        matcher, entry, self._entry = self._matcher, self._entry, None
        due = None if self._due == FOREVER else self._due
        before = self._head if self._continues_log else None
        following = next_head(before, entry, self._reached, _NOT_COUNTED, due, few=FEW_ENTRIES)
        if following is None and (before is None or is_written_at_once(before)):
            snapshot = snapshot_of(matcher, self._made_for)
            following = first_head(len(snapshot), self._reached, _NOT_COUNTED, due)
            store.write(following, snapshot, self._head)
            self._next = None
        elif following is not None and self._next is None:
            store.append(following, entry)
        else:
            assert before is not None
            following = self._save_beside(store, entry, head_after(before, entry, self._reached, _NOT_COUNTED, due))
        self._head, self._continues_log = following, True

    def _save_beside(self, store: ShardStore, entry: Entry | None, head: Head) -> Head:
        """Appends to the log, and goes on with the next snapshot or begins it; returns the head."""
        store.append(head, entry)
        if self._next is None:
            self._next = NextSnapshot(snapshot_in_pieces(self._matcher, self._made_for), head.entries)
            return head
        head = self._next.follow(store, entry, head)
        if self._next.is_written:
            self._next = None
        return head

    def shown(self, instant: int) -> int:
        """An instant in microseconds as the tables of the pattern have it: the local time, if the events have that."""
        type_ = self.schema.field("detected_at").type
        if type_.tz is not None:
            return instant
        at = pa.array([instant], pa.int64()).cast(pa.timestamp("us", arrow_zone(self.table.time_zone)))
        shown: int = pc.local_timestamp(at).cast(pa.int64())[0].as_py()
        return shown

    @cached_property
    def lists_with(self) -> object:
        """Equal for patterns whose open partial matches `open_changes` lists at once."""
        return alike((self._matcher.lists_with, self._engine.time_zone))

    @cached_property
    def open_table(self) -> RowTable | None:
        """The table of open partial matches; None if the pattern has none that can be listed."""
        return None if self.open_schema is None else open_table(self.deployment, self.open_schema, self.correlated)

    @cached_property
    def found_tables(self) -> Mapping[str, RowTable]:
        """The tables for what is found, by the kind of row."""
        return found_tables(self.deployment, self.schema)

    @property
    def tables(self) -> list[RowTable]:
        """All tables of the pattern."""
        return [*([] if self.open_table is None else [self.open_table]), *self.found_tables.values()]

    @property
    def matcher(self) -> LiveMatcher:
        return self._matcher

    def open_changes(self, deployed: Sequence[Deployed]) -> OpenChanges:
        """The open partial matches of the keys that each of these has visited since the last call, as rows of its
        `open_schema`. They have the same `lists_with` as this one.
        """
        changes = self._runner.open_changes([one.matcher for one in deployed], MOST_OPEN_ROWS)
        versions = np.repeat(np.array([one.deployment.version for one in deployed], object), changes.counts)
        return changes._replace(rows=self._open_rows(changes.rows, pa.array(versions, pa.string())))

    def _open_rows(self, rows: pa.Table, versions: pa.Array) -> pa.Table:
        given = with_measures(given_rows(self.plan, rows, self._engine.time_zone), self.plan.promoted, self._engine)
        for name, texts in (("version", versions), ("status", pa.array(["waiting"] * rows.num_rows, pa.string()))):
            given = given.append_column(name, texts)
        promoted = [measure.name for measure in self.plan.promoted]
        return given.select([*_BEFORE_KEY, *self.deployment.key, *_AFTER_KEY, *promoted, "stages"])

    def _batch(self, events: StepEvents) -> Batch:
        """The events that may matter, as the matcher takes them."""
        if self._conditions is None:
            given = self._reading.usable(events.events)
            batch = with_any(lifted(given, self.plan, self._engine), self._relevant)
        else:
            batch = events.meeting(self._reading, self._conditions, self._relevant)
        check_times(batch, TIME)
        return batch


def in_order(rows: pa.Table) -> pa.Table:
    """The rows in the order of `detected_at`, then of `match_id`. Rows in real time stay as they are, as a retraction
    follows its insertion.
    """
    if pc.any(pc.is_in(rows.column("kind"), value_set=pa.array([INSERTION, RETRACTION]))).as_py():
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[("detected_at", "ascending"), ("match_id", "ascending")]))


def _taken_names(deployment: Deployment, *, lists_open: bool) -> list[str]:
    """Faults in names that the tables have for other columns. Databases do not distinguish cases."""
    open_columns = {*_BEFORE_KEY, *_AFTER_KEY, "stages"} if lists_open else {"version"}
    faults = [
        f"key: the tables of a pattern have a column {name.lower()!r} of their own. Rename the column of the events"
        for name in deployment.key
        if name.lower() in open_columns
    ]
    return faults + [
        f"measure {name!r} has the name of another column of the table of matches. Choose another name"
        for name in deployment.measures or ()
        if name.lower() == "version"
    ]


@contextmanager
def _with_faults(faults: Sequence[str]) -> Iterator[None]:
    """Raises SchemaError if there are faults, together with those that the block finds."""
    try:
        yield
    except (PatternError, SchemaError) as error:
        if faults:
            raise SchemaError("\n".join([*faults, str(error)])) from error
        raise
    if faults:
        raise SchemaError("\n".join(faults))


def without_keys(measures: Mapping[str, str] | None, key: Sequence[str]) -> dict[str, str] | None:
    """The measures without those that only repeat a column of the key, which each row has anyway."""
    if measures is None:
        return None
    return {name: text for name, text in measures.items() if name not in key or not _is_column(text, name)}


def _is_column(text: str, name: str) -> bool:
    """Whether the SQL text is just the column of this name of one stage."""
    return re.fullmatch(rf"(`[^`]+`|\w+)\.(`{re.escape(name)}`|{re.escape(name)})", text.strip()) is not None
