"""The deployed patterns in a worker process. Each method answers a request of `in_worker.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.hosts.durable.deployed import EventTable
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.step.events import StepEvents
from cepheid.hosts.durable.step.here import DeployedHere
from cepheid.hosts.durable.store import ShardWriter
from cepheid.hosts.durable.workers.shared_events import SharedEvents, events_in, stream_of
from cepheid.hosts.shards.store import Entry, Head
from cepheid.matchers.watermark import Reached
from cepheid.output.ids import Ids

Write = Callable[[ShardWriter], None]
"""A write to the store, which the host repeats in its transaction."""


class CopiedState(NamedTuple):
    """The stored state of a shard, read whole."""

    content: bytes
    entries: Sequence[Entry]

    def snapshot(self) -> bytes:
        return self.content

    def log(self) -> Sequence[Entry]:
        return self.entries


class Situation(NamedTuple):
    """What the host must know of a pattern without asking."""

    head: Head | None
    due: int
    is_idle: bool


class Stepped(NamedTuple):
    """What a step has done."""

    rows: bytes | None
    """What was found, with a last column for the instants of detection, as an Arrow stream; None: no rows."""
    writes: Sequence[Write]
    """The pattern's state."""
    now: Situation


class _Recorder:
    """Records writes to a store."""

    def __init__(self) -> None:
        self.writes: list[Write] = []

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        self.writes.append(methodcaller("write", head, snapshot, before))

    def append(self, head: Head, entry: Entry | None) -> None:
        self.writes.append(methodcaller("append", head, entry))

    def write_part(self, number: int, content: bytes) -> None:
        self.writes.append(methodcaller("write_part", number, content))

    def put_in_place(self, head: Head, since: int, before: Head) -> None:
        self.writes.append(methodcaller("put_in_place", head, since, before))


class Patterns:
    """The patterns that run in this process, by the number of their deployment."""

    def __init__(self) -> None:
        self._running: dict[int, DeployedHere] = {}
        self._events: StepEvents | None = None

    def make(
        self, deployment: Deployment, table: EventTable, ids: Ids, head: Head | None, state: CopiedState | None
    ) -> Situation:
        """From now on the pattern runs here; it continues from the state, if there is one."""
        made = DeployedHere(deployment, table, ids)
        if state is not None:
            made.recover(state, head)
        self._running[deployment.number] = made
        return _situation(made)

    def forget(self, number: int) -> None:
        del self._running[number]

    def forget_all(self) -> None:
        self._running, self._events = {}, None

    def take(self, events: SharedEvents) -> None:
        """The events of the following steps."""
        self._events = events_in(events)

    def step(self, number: int, has_events: bool, before: Reached, after: Reached) -> Stepped | None:  # noqa: FBT001
        """A step of `Deployed`, and the writes of `save`."""
        running, writer = self._running[number], _Recorder()
        found = running.step(self._events if has_events else None, before, after)
        if found is None:
            return None
        running.save(writer)
        rows = None
        if found.rows.num_rows:
            rows = stream_of(found.rows.append_column(pa.field("", found.detected.type), found.detected))
        return Stepped(rows, writer.writes, _situation(running))

    def start_at(self, number: int, reached: Reached) -> Situation:
        self._running[number].start_at(reached)
        return _situation(self._running[number])

    def drain(self, number: int) -> None:
        self._running[number].drain()

    def relist(self, number: int) -> None:
        self._running[number].relist()

    def counts(self, number: int) -> Mapping[str, int]:
        return self._running[number].counts

    def no_match(self, number: int) -> Mapping[str, int]:
        return self._running[number].no_match

    def open_changes(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        """The fields of OpenChanges, with the rows as an Arrow stream."""
        some = [self._running[number] for number in numbers]
        keys, rows, counts = some[0].open_changes(some)
        return keys, stream_of(rows), counts


def _situation(running: DeployedHere) -> Situation:
    return Situation(running.head, running.due, running.is_idle)
