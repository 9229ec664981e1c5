"""What the workers of a streaming query need for copies of hot keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark import TaskContext

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Batch
from cepheid.hosts.spark.stream.copies.assignment import Assignment
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.copies.routing import Marking, routed

_BATCH = "streaming.sql.batchId"
"""The property in which Spark gives tasks the number of the micro-batch (`MicroBatchExecution.BATCH_ID_KEY`)."""


class Copying(NamedTuple):
    """How standbys get copies of keys."""

    checkpoint: str
    delay: int
    """Microseconds: how late events may be."""
    markings: Mapping[int, Marking]
    """By the number of the pattern."""

    def in_this_batch(self) -> Copies:
        """The copies in the micro-batch that this task belongs to. Raises SnapshotError, as `CopiesFolder`."""
        task = TaskContext.get()
        batch = None if task is None else task.getLocalProperty(_BATCH)
        assert batch is not None, "events are packed in tasks of micro-batches"
        windows = {pattern: marking.window for pattern, marking in self.markings.items()}
        return Copies(CopiesFolder(self.checkpoint).assignment(int(batch), self.delay, windows), self.markings)


class Copies(NamedTuple):
    """The copies in one micro-batch."""

    assignment: Assignment
    markings: Mapping[int, Marking]

    def routed(self, pattern: int, batch: Batch, shards: Ints, first: int) -> tuple[Batch, Ints]:
        """The pattern's events and where they go, as `routing.routed`."""
        return routed(batch, shards, self.assignment.of_pattern(pattern), self.markings[pattern], first)
