"""The code that runs in a Spark worker after the shuffle: it sorts the events of blocks and finds matches in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cepheid.hosts.spark.batch.blocks.form import whole_blocks
from cepheid.hosts.spark.batch.blocks.order import ordered_batches
from cepheid.hosts.spark.batch.worker import Task, found_by


def find_in_blocks(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The matches in a partition, given as parts of blocks. `given` has the fields of a Task."""
    task = Task(*given)
    yield from found_by(task, ordered_batches(whole_blocks(batches), task.layout))
