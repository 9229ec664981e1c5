"""The shards of a stream as Spark calls them: their state is in Spark's store, their deadlines are Spark's timers."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from cepheid.errors import ConditionError, EventError, LimitExceeded, SkipError, SnapshotError
from cepheid.hosts.shards.store import Entry, Head
from cepheid.hosts.spark.collection import freeze_what_stays
from cepheid.hosts.spark.sent import Sent
from cepheid.hosts.spark.stream.ledger import EVENTS, pattern_of_ledger
from cepheid.hosts.spark.stream.load.shards import ShardCall
from cepheid.hosts.spark.stream.notices import without_notices
from cepheid.hosts.spark.stream.placement import NUMBERED_OTHERWISE, Placement
from cepheid.requests.request import ERROR

if TYPE_CHECKING:
    from cepheid.hosts.spark.stream.shard import Stepped

without_notices()

ROWS, PATTERN, CALL = "_rows", "_pattern", "_call"
SHARD_ROWS = StructType(
    [
        StructField(ERROR, StringType()),
        StructField(ROWS, BinaryType()),
        StructField(PATTERN, IntegerType()),
        StructField(CALL, ArrayType(LongType())),
    ]
)
"""The columns that a call of a shard returns: the reason why it cannot continue, its rows as one value, the number of
its pattern, and the numbers that it reports: those of a ShardCall, then its counts. They are one column, as Spark
generates code for each column in each micro-batch.
"""

HEAD = StructType(
    [
        StructField("format", IntegerType()),
        StructField("state", BinaryType()),
        StructField("entries", IntegerType()),
        StructField("log_bytes", LongType()),
        StructField("room", LongType()),
        StructField("passed", LongType()),
        StructField("open", LongType()),
        StructField("timer", LongType()),
    ]
)
"""The columns of a shard's head, as Spark stores it. The state of a checkpoint takes no further column, so
`Head.open_of_each` is stored after the name, in `state`.
"""
_NAME_BYTES = 16
_SNAPSHOT = StructType([StructField("snapshot", BinaryType())])
_LEDGER = StructType([StructField("ledger", BinaryType())])
_NUMBER = StructType([StructField("number", IntegerType())])
_ENTRY = StructType(
    [StructField("passed", LongType()), StructField("events", BinaryType()), StructField("digest", BinaryType())]
)


def stored_head(head: Head) -> tuple[Any, ...]:
    """The values of HEAD."""
    each = head.open_of_each
    return (head.format, head.state + struct.pack(f"<{len(each)}q", *each), *head[2 : len(HEAD)])


def head_of(stored: Sequence[Any]) -> Head:
    """The head with these values of HEAD."""
    format_, state, *others = stored
    head = Head(format_, bytes(state[:_NAME_BYTES]), *others)
    return head._replace(open_of_each=stored_open_of_each(state))


def stored_open_of_each(state: bytes) -> tuple[int, ...]:
    """`Head.open_of_each`, from the column `state`."""
    return tuple(number for (number,) in struct.iter_unpack("<q", state[_NAME_BYTES:]))


class SparkStore:
    """The state of the shard that Spark calls, in Spark's state store: a `store.Store`."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", HEAD)
        self._snapshot = handle.getValueState("snapshot", _SNAPSHOT)
        self._log = handle.getMapState("log", _NUMBER, _ENTRY)
        self._ledger = handle.getValueState("ledger", _LEDGER)

    def head(self) -> Head | None:
        stored = self._head.get()
        return None if stored is None else head_of(stored)

    def snapshot(self) -> bytes:
        stored = self._snapshot.get()
        return b"" if stored is None else bytes(stored[0])

    def log(self) -> list[Entry]:
        entries = sorted(self._log.iterator())  # numbers differ, so entries are not compared
        return [Entry(passed, bytes(events), bytes(digest)) for _, (passed, events, digest) in entries]

    def entry(self, number: int) -> Entry:
        stored = self._log.getValue((number,))
        if stored is None:
            raise SnapshotError(f"the log is damaged: entry {number} is not there")
        passed, events, digest = stored
        return Entry(passed, bytes(events), bytes(digest))

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        self._head.update(stored_head(head))
        self._snapshot.update((snapshot,))
        self._forget(before)

    def append(self, head: Head, entry: Entry | None) -> None:
        self._head.update(stored_head(head))
        if entry is not None:
            self._log.updateValue((head.entries,), entry[: len(_ENTRY)])

    def clear(self, before: Head) -> None:
        self._head.clear()
        self._snapshot.clear()
        self._forget(before)

    def _forget(self, before: Head | None) -> None:
        """Removes the log. Spark's own clearing of a map would iterate over all of its entries."""
        for number in range(1, 1 + (0 if before is None else before.entries)):
            self._log.removeKey((number,))

    def read_ledger(self) -> bytes | None:
        """The ledger. Only a ledger shard has one."""
        stored = self._ledger.get()
        return None if stored is None else bytes(stored[0])

    def write_ledger(self, known: bytes) -> None:
        self._ledger.update((known,))

    def clear_ledger(self) -> None:
        self._ledger.clear()


class Matchings(NamedTuple):
    """What the shards of a query need to run; each value has the fields of a Matching."""

    each: Mapping[int, tuple[object, ...]]
    """For each pattern, by its number."""
    together: tuple[object, ...] | None
    """For the shards, if all patterns share them."""

    @property
    def pickled(self) -> bytes:
        """For workers."""
        return pickle.dumps(tuple(self), protocol=pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=64)
def _unpickled(sent: Sent) -> Matchings:
    """The same objects for all calls in a worker."""
    return Matchings(*pickle.loads(sent.read()))  # noqa: S301 - from the driver


class ShardProcessor(StatefulProcessor):
    """Calls `step` with the state that Spark stores."""

    def __init__(self, placement: Placement, matchings: Sent, ended: Sequence[int] = ()) -> None:
        """What is stored for the numbers in `ended` is cleared."""
        self._placement, self._matchings, self._ended = placement, matchings, ended
        self._query = uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        freeze_what_stays()
        self._handle = handle
        self._store = SparkStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        values = [bytes(row[EVENTS]) for row in rows]
        yield from self._called(key[0], values, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Spark passes the arguments by these names."""
        yield from self._called(
            key[0], [], timerValues.getCurrentWatermarkInMs(), fired=expiredTimerInfo.getExpiryTimeInMs()
        )

    def _called(self, shard: int, values: Sequence[bytes], watermark: int, fired: int | None = None) -> Iterator[Row]:
        """Steps the shard. Failures become rows, as in `batch/worker.py`: an exception would reach the user below the
        worker's stack.
        """
        try:
            yield from self._step(shard, values, watermark, fired)
        except (ConditionError, EventError, LimitExceeded, SkipError, SnapshotError) as error:
            yield Row(*SHARD_ROWS.names)(str(error), *[None] * (len(SHARD_ROWS) - 1))

    def _step(self, shard: int, values: Sequence[bytes], watermark: int, fired: int | None) -> Iterator[Row]:
        from cepheid.hosts.spark.stream.shard import (
            CACHE,
            KEEPERS,
            MORE_SHARDS,
            Matching,
            Shard,
            check_ledger,
            of_another_query,
            step,
        )

        pattern, own = (pattern_of_ledger(shard), shard) if shard < 0 else self._placement.shard_of(shard)
        if pattern in self._ended:
            self._clear(shard, fired)
            return
        matchings = _unpickled(self._matchings)
        if pattern not in matchings.each:  # called by a timer, perhaps before the ledger's shard
            raise of_another_query([MORE_SHARDS, NUMBERED_OTHERWISE])
        matching = Matching(*matchings.each[pattern])  # type: ignore[arg-type]
        if shard < 0:
            known = self._store.read_ledger()
            if (following := check_ledger(matching, known)) != known:
                self._store.write_ledger(following)
            return
        patterns = [pattern]
        if matchings.together is not None:
            patterns, matching = [*matchings.each], Matching(*matchings.together)  # type: ignore[arg-type]
        is_standby = own >= self._placement.shards
        called = Shard(self._store, CACHE, (self._query, shard), is_standby=is_standby, keepers=KEEPERS)
        stepped = step(matching, called, values, watermark)
        if stepped.timer != stepped.former_timer:
            if stepped.former_timer not in (None, fired):  # Spark itself deletes the timer that fired
                self._handle.deleteTimer(stepped.former_timer)
            if stepped.timer is not None:
                self._handle.registerTimer(stepped.timer)
        yield from _reported(patterns, own, stepped)

    def _clear(self, shard: int, fired: int | None) -> None:
        """Removes what is stored for a shard of a pattern that has left the query."""
        if shard < 0:
            self._store.clear_ledger()
        elif (head := self._store.head()) is not None:
            self._store.clear(head)
            if head.timer not in (None, fired):
                self._handle.deleteTimer(head.timer)


def _reported(patterns: Sequence[int], shard: int, stepped: Stepped) -> Iterator[Row]:
    """A row for each pattern of the shard. Patterns that share it have equal parts of its times and of its state."""
    task = TaskContext.get()
    assert task is not None, "shards are called in Spark's tasks"
    shares = len(patterns)
    call = ShardCall(
        shard=shard,
        partition=task.partitionId(),
        events=stepped.events,
        **{name: time // shares for name, time in stepped.times.items()},
        state_bytes=stepped.state_bytes // shares,
        open=0,
    )
    for pattern, made in zip(patterns, stepped.each, strict=True):
        own = call._replace(open=made.open)
        yield Row(*SHARD_ROWS.names)(None, made.rows, pattern, [*own, *made.counts.values()])
