"""Cases through `detect` on a stream of Spark's: in micro-batches, with watermarks as in the case.

Spark's watermark is the latest time less the lateness, from the next batch on. So the lateness is longer than all
events are apart, and a marker, an event of a key of its own, moves the watermark to where the case has it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.conformance.delivery import END, Step
from tests.conformance.translate import BEFORE, EPOCH, TIME, Question
from tests.stream.running import detected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENESS = timedelta(days=100 * 365)
LATER = timedelta(days=365) - timedelta(microseconds=1)
"""What all times are moved by: Spark's watermark begins at 1970. It counts whole milliseconds, and time has come to the
microsecond before it, which must be able to be an event's.
"""
MARK = "_mark"
OUTPUTS = ("matches", "timeouts", "late")
PARTS = 3
"""Into as many micro-batches the events go that no watermark is between."""


@cache
def session_of_cases() -> SparkSession:
    """One for all: a session has Python workers of its own."""
    from cepheid.hosts.spark_session import local_session

    session = local_session("cepheid conformance", time_zone="UTC").newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


def stream_rows(question: Question) -> list[Mapping[str, Any]]:
    """The rows that `detect` gives, times as in the case."""
    with tempfile.TemporaryDirectory() as folder:
        batches = detected(
            session_of_cases(),
            [*micro_batches(question)],
            Path(folder),
            question.pattern,
            key=[MARK, *([question.key] if question.key else [])],
            time=TIME,
            sequence=question.sequence,
            columns=["id"],
            outputs=OUTPUTS,
            lateness=LATENESS,
            shards=1,
        )
    rows = [row for batch in batches for row in batch if not row[MARK]]
    return [row | {"detected_at": row["detected_at"] and row["detected_at"] - LATER} for row in rows]


def micro_batches(question: Question) -> Iterator[pa.Table]:
    """The events between two watermarks, and the marker of the second; then what is left, which may be nothing."""
    waiting: list[int] = []
    for step in steps(question):
        if step.event is not None:
            waiting.append(step.event)
        else:
            yield pa.concat_tables([_events(question, waiting), _marker(question, step.ts)])
            waiting = []
    yield _events(question, waiting)


def steps(question: Question) -> Iterator[Step]:
    """The events and watermarks; without an operator, some watermarks that make none late, and where time stands."""
    if question.operator:
        yield from question.items
        return
    listed = [item for item in question.items if item.event is not None]
    for number, item in enumerate(listed):
        if number and number * PARTS // len(listed) > (number - 1) * PARTS // len(listed):
            yield Step(None, item.ts - 1)
        yield item
    if question.as_of > BEFORE:
        yield Step(None, (question.as_of - EPOCH) // timedelta(milliseconds=1))


def _events(question: Question, ids: list[int]) -> pa.Table:
    events = question.events.take(pa.array(ids, pa.int64()))
    times = pa.array([time + LATER for time in events.column(TIME).to_pylist()], pa.timestamp("us", "UTC"))
    place = events.schema.get_field_index(TIME)
    return events.set_column(place, TIME, times).append_column(MARK, pa.array([False] * len(ids), pa.bool_()))


def _marker(question: Question, ts: int) -> pa.Table:
    """Lets time come to `ts` (milliseconds)."""
    schema = question.events.schema.append(pa.field(MARK, pa.bool_()))
    time = EPOCH + LATER + LATENESS + timedelta(milliseconds=min(ts, END), microseconds=1)
    row: dict[str, Any] = {"id": -1, TIME: time, MARK: True, question.sequence: -1}
    if question.key:
        row[question.key] = {pa.string(): "", pa.bool_(): False}.get(schema.field(question.key).type, 0)
    return pa.Table.from_pylist([row], schema=schema)
