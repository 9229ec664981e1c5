"""The code of `why` that runs in a Spark worker: it counts what becomes of the starts of a partition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cepheid.families import family_named
from cepheid.hosts.spark.batch.worker import (
    CAUSED_BY_EVENTS,
    Task,
    batches_of_layout,
    compiled_plans,
    message,
    output_schema,
)
from cepheid.requests.request import COUNTS, ERROR

FUNNEL = "funnel"
FUNNELS = pa.schema([pa.field(FUNNEL, pa.string())])
"""The rows of the workers: each has the funnel of a partition in JSON, without the counts of events read."""

_NOTHING_READ = {"events": 0, "null_keys": 0, "null_times": 0}


def count_starts(batches: Iterator[pa.RecordBatch], given: tuple[Any, ...]) -> Iterator[pa.RecordBatch]:
    """The funnel of a partition, whose events come key by key and in order. `given` has the fields of a Task."""
    task, schema = Task(*given), output_schema(FUNNELS)
    _, compiled = compiled_plans(task.kind, task.plans)
    matcher = family_named(task.kind).observed(compiled, task.until)
    try:
        for batch in batches_of_layout(batches, task.layout):
            matcher.process(batch)
        matcher.finish()
    except CAUSED_BY_EVENTS as error:
        yield message(schema, ERROR, str(error))
        return
    yield message(schema, COUNTS, matcher.counts)
    yield message(schema, FUNNEL, json.dumps(matcher.funnel(_NOTHING_READ).to_dict()))
