"""What the workers of a streaming query need for copies of hot keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark import TaskContext

from cepheid.hosts.spark.stream.copies.assignment import Assignment
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.copies.routing import Marking

_BATCH = "streaming.sql.batchId"
"""The property in which Spark gives tasks the number of the micro-batch (`MicroBatchExecution.BATCH_ID_KEY`)."""


class Copying(NamedTuple):
    """How standbys get copies of keys."""

    checkpoint: str
    delay: int
    """Microseconds: how late events may be."""
    markings: Mapping[int, Marking]
    """By the number of the pattern."""

    def assignment(self) -> Assignment:
        """The assignment of the micro-batch that this task belongs to. Raises SnapshotError, as `CopiesFolder`."""
        task = TaskContext.get()
        batch = None if task is None else task.getLocalProperty(_BATCH)
        assert batch is not None, "events are packed in tasks of micro-batches"
        windows = {pattern: marking.window for pattern, marking in self.markings.items()}
        return CopiesFolder(self.checkpoint).assignment(int(batch), self.delay, windows)
