"""Cases through `detect` on a stream of Spark's: in micro-batches, with watermarks as in the case.

Spark's watermark is the latest time less the lateness, from the next batch on. So the lateness is longer than all
events are apart, and a marker, an event of a key of its own, moves the watermark to where the case has it.
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
"""What the times of a case with watermarks of its own are moved by."""
MARK = "_mark"
OUTPUTS = ("matches", "timeouts", "late")
PARTS = 3
"""Into as many micro-batches the events go that have no watermarks of their own."""


@cache
def session_of_cases() -> SparkSession:
    """One for all: a session has Python workers of its own."""
    from cepheid.hosts.spark.session import local_session

    session = local_session("cepheid conformance", time_zone="UTC").newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


def streamed_alone(question: Question) -> list[Mapping[str, Any]]:
    """The rows that `detect` gives with the watermarks of the case, times as in the case."""
    key = [question.key] if question.key else []
    rows = _detected([*_as_watermarks_come(question)], question.pattern, key, question.sequence)
    return [row | {"detected_at": row["detected_at"] and row["detected_at"] - LATER} for row in rows]


def streamed_together(questions: Sequence[Question]) -> list[list[Mapping[str, Any]]]:
    """Those of each question, without watermarks of their own, in one query."""
    asked = joined(questions)
    return asked.rows_of_each(_detected([*_in_parts(asked)], asked.patterns, asked.key, asked.sequence))


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
    """The events between two watermarks, and the marker of the second; then what is left, which may be nothing."""
    events, waiting = moved(question, LATER), list[int]()
    for step in question.items:
        if step.event is not None:
            waiting.append(step.event)
        else:
            time = EPOCH + LATER + timedelta(milliseconds=min(step.ts, END))
            yield _with_marker(events.take(pa.array(waiting, pa.int64())), time)
            waiting = []
    yield _with_marker(events.take(pa.array(waiting, pa.int64())))


def _in_parts(asked: Joined) -> Iterator[pa.Table]:
    """As many events of all cases in each part, behind which time comes to the last of them; then to the end."""
    times = asked.events.column(TIME)
    inner = [part / PARTS for part in range(1, PARTS)]
    ends = pc.quantile(times.cast(pa.int64()), inner, interpolation="lower").cast(times.type)
    before = pa.scalar(EPOCH, times.type)
    for end in [*ends, pa.scalar(ENDS, times.type)]:
        part = asked.events.filter(pc.and_(pc.greater(times, before), pc.less_equal(times, end)))
        yield _with_marker(part, end.as_py())
        before = end
    yield _with_marker(asked.events.slice(0, 0))


def _with_marker(events: pa.Table, time: datetime | None = None) -> pa.Table:
    """The events, with one that lets time come to there."""
    ours = events.append_column(MARK, pa.array([False] * len(events), pa.bool_()))
    if time is None:
        return ours
    blank = {pa.string(): "", pa.bool_(): False}
    row = {field.name: blank.get(field.type, -1) for field in ours.schema}
    return pa.concat_tables(
        [ours, pa.Table.from_pylist([row | {TIME: time + LATENESS + MICROSECOND, MARK: True}], schema=ours.schema)]
    )
