"""Runs cases through `detect` on a Spark stream: in micro-batches, with the watermarks of the case.

Spark's watermark is the latest time minus the lateness, from the next batch on. So the lateness is longer than the
distance of any two events, and a marker, an event with a key of its own, moves the watermark as the case requires.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.conformance.delivery import END
from tests.conformance.together import ENDS, MICROSECOND, Joined, joined, moved
from tests.conformance.translate import EPOCH, TIME, Question
from tests.stream.running import detected

from cepheid import Pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENESS = timedelta(days=100 * 365)
LATER = timedelta(days=365) - MICROSECOND
"""The distance by which the times of a case with its own watermarks are moved."""
MARK = "_mark"
OUTPUTS = ("matches", "timeouts", "late")
PARTS = 3
"""The number of micro-batches for events without watermarks of their own."""


@cache
def session_of_cases() -> SparkSession:
    """One session for all cases: each session has its own Python workers."""
    from cepheid.hosts.spark.session import local_session

    session = local_session("cepheid conformance", time_zone="UTC").newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


def streamed_alone(question: Question) -> list[Mapping[str, Any]]:
    """The rows that `detect` emits with the watermarks of the case; times are those of the case."""
    key = [question.key] if question.key else []
    rows = _detected([*_as_watermarks_come(question)], question.pattern, key, question.sequence)
    return [row | {"detected_at": row["detected_at"] and row["detected_at"] - LATER} for row in rows]


def streamed_together(questions: Sequence[Question]) -> list[list[Mapping[str, Any]]]:
    """The rows of each question, without watermarks of their own, in one query."""
    query = joined(questions)
    return query.rows_of_each(_detected([*_in_parts(query)], query.patterns, query.key, query.sequence))


def _detected(
    batches: Sequence[pa.Table], patterns: Pattern | Mapping[str, Pattern], key: Sequence[str], sequence: str
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        found = detected(
            session_of_cases(),
            batches,
            Path(folder),
            patterns,
            key=[MARK, *key],
            time=TIME,
            sequence=sequence,
            columns=["id"],
            outputs=OUTPUTS,
            lateness=LATENESS,
            shards=1,
        )
    return [row for batch in found for row in batch if not row[MARK]]


def _as_watermarks_come(question: Question) -> Iterator[pa.Table]:
    """The events between two watermarks with a marker for the second one; then the remaining events, possibly none."""
    events, waiting = moved(question, LATER), list[int]()
    for step in question.items:
        if step.event is not None:
            waiting.append(step.event)
        else:
            time = EPOCH + LATER + timedelta(milliseconds=min(step.ts, END))
            yield _with_marker(events.take(pa.array(waiting, pa.int64())), time)
            waiting = []
    yield _with_marker(events.take(pa.array(waiting, pa.int64())))


def _in_parts(query: Joined) -> Iterator[pa.Table]:
    """Micro-batches with equal numbers of events. After each, time advances to its last event; in the end, to the end
    of time.
    """
    times = query.events.column(TIME)
    inner = [part / PARTS for part in range(1, PARTS)]
    ends = pc.quantile(times.cast(pa.int64()), inner, interpolation="lower").cast(times.type)
    before = pa.scalar(EPOCH, times.type)
    for end in [*ends, pa.scalar(ENDS, times.type)]:
        part = query.events.filter(pc.and_(pc.greater(times, before), pc.less_equal(times, end)))
        yield _with_marker(part, end.as_py())
        before = end
    yield _with_marker(query.events.slice(0, 0))


def _with_marker(events: pa.Table, time: datetime | None = None) -> pa.Table:
    """The events, and a marker that advances the watermark to `time`."""
    ours = events.append_column(MARK, pa.array([False] * len(events), pa.bool_()))
    if time is None:
        return ours
    blank = {pa.string(): "", pa.bool_(): False}
    row = {field.name: blank.get(field.type, -1) for field in ours.schema}
    return pa.concat_tables(
        [ours, pa.Table.from_pylist([row | {TIME: time + LATENESS + MICROSECOND, MARK: True}], schema=ours.schema)]
    )
