"""A deployed pattern whose matcher is in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from cepheid.errors import in_pattern
from cepheid.events.batch import TIME, Batch
from cepheid.events.order import check_times
from cepheid.hosts.durable.deployed import MOST_OPEN_ROWS, Deployed, EventTable, Found, in_order
from cepheid.hosts.durable.next_snapshot import FEW_ENTRIES, NextSnapshot, is_written_at_once
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.alike import alike
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.store import ShardWriter
from cepheid.hosts.in_process.prepare import lifted
from cepheid.hosts.shards.arrow_stream import to_stream
from cepheid.hosts.shards.log import first_head, head_after, next_head, restored, snapshot_in_pieces, snapshot_of
from cepheid.hosts.shards.store import Entry, Head, ShardState
from cepheid.kernel.arrays import FOREVER
from cepheid.matchers.open_changes import OpenChanges
from cepheid.matchers.protocols import LiveMatcher
from cepheid.matchers.runners import advance
from cepheid.matchers.watermark import Reached
from cepheid.matchers.working_set import with_any
from cepheid.output.ids import Ids

_NOT_COUNTED = 0
"""In place of the number of open partial matches in a head: counting them may take longer than a step, and the host
says it when asked.
"""


class DeployedHere(Deployed):
    """A deployed pattern whose matcher is in this process."""

    def __init__(self, deployment: Deployment, table: EventTable, ids: Ids) -> None:
        super().__init__(deployment, table, ids)
        self._matcher: LiveMatcher = self._runner.matcher(ids)
        self._matcher.watch()
        self._head: Head | None = None
        self._continues_log = True
        self._next: NextSnapshot | None = None
        self._entry: Entry | None = None
        """The events of the step since `save`."""
        self._reached = Reached(self._matcher.now)
        self._due = FOREVER

    def recover(self, stored: ShardState, head: Head | None) -> None:
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

    def recovered(self) -> None:
        pass

    def start_at(self, reached: Reached) -> None:
        advance(self._matcher, reached)
        self._reached, self._due = reached, self._matcher.due
        self.wakeups.forget()

    def drain(self) -> None:
        self._matcher.drain(waiting=True)
        super().drain()
        self._next = None  # it would not say that its matcher drains

    def relist(self) -> None:
        self._matcher.watch(all_open=True)

    @property
    def is_idle(self) -> bool:
        return self._matcher.is_idle

    @property
    def counts(self) -> dict[str, int]:
        return {**self._matcher.counts, "open": self._matcher.open}

    @property
    def no_match(self) -> dict[str, int]:
        return {**self._matcher.no_match}

    @property
    def due(self) -> int:
        """Microseconds: there is something to do once time has reached this; FOREVER if there is nothing."""
        return self._due

    def is_due(self, reached: Reached) -> bool:
        return self._due <= reached.time

    def begin(self, events: StepEvents | None, before: Reached, after: Reached) -> None:
        pass

    def step(self, events: StepEvents | None, before: Reached, after: Reached) -> Found | None:
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

    def _batch(self, events: StepEvents) -> Batch:
        """The events that may matter, as the matcher takes them."""
        if self._conditions is None:
            given = self._reading.usable(events.events)
            batch = with_any(lifted(given, self.plan, self._engine), self._relevant)
        else:
            batch = events.meeting(self._reading, self._conditions, self._relevant)
        check_times(batch, TIME)
        return batch

    @property
    def head(self) -> Head | None:
        return self._head

    def save(self, store: ShardWriter) -> None:
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

    def _save_beside(self, store: ShardWriter, entry: Entry | None, head: Head) -> Head:
        """Appends to the log, and goes on with the next snapshot or begins it; returns the head."""
        store.append(head, entry)
        if self._next is None:
            self._next = NextSnapshot(snapshot_in_pieces(self._matcher, self._made_for), head.entries)
            return head
        head = self._next.follow(store, entry, head)
        if self._next.is_written:
            self._next = None
        return head

    @property
    def matcher(self) -> LiveMatcher:
        return self._matcher

    @cached_property
    def lists_with(self) -> object:
        return alike((self._matcher.lists_with, self._engine.time_zone))

    def open_changes(self, deployed: Sequence[Deployed]) -> OpenChanges:
        matchers = [one.matcher for one in deployed if isinstance(one, DeployedHere)]
        changes = self._runner.open_changes(matchers, MOST_OPEN_ROWS)
        versions = np.repeat(np.array([one.deployment.version for one in deployed], object), changes.counts)
        return changes._replace(rows=self._open_rows(changes.rows, pa.array(versions, pa.string())))

    def end(self) -> None:
        pass
