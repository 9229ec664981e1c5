"""Runs cases of the event algebra and about intervals through `detect` on a Spark stream.

Events arrive in several micro-batches, out of order and never late; then an event of another type moves the watermark
past all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
from tests.conformance import algebra_case
from tests.conformance.algebra_case import AT, ID, Answer
from tests.conformance.interval_case import SECOND, Question
from tests.conformance.streaming import session_of_cases
from tests.conformance.together import CASE
from tests.stream.running import detected

from cepheid import detect
from cepheid.lang.consistency import End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.plan.intervals.growth import never_certain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Case: TypeAlias = Mapping[str, Any]
Where: TypeAlias = Literal["process", "spark", "stream"]
"""Where a question is answered."""

LATENESS = timedelta(days=1000)
END = 10**9
"""Seconds: the time of the last event, after all others by more than the lateness."""
PARTS = 3
"""The number of micro-batches."""
STREAMS_LATENESS = End.END
"""The time, start or end, by which Spark decides which events are late."""
PROMOTED: Mapping[str, Any] = {"promote_options": "default"}
"""Columns that a table lacks are NULL in the combined table."""


def occurrences_together(cases: Sequence[tuple[Case, Sequence[str]]], where: Where) -> list[dict[str, Answer]]:
    """The occurrences of each case for each policy, from one query: each case has its own key, and only the rows of its
    own patterns count.
    """
    events = pa.concat_tables([_numbered(case, number) for number, (case, _) in enumerate(cases)], **PROMOTED)
    patterns = {
        f"{number} {policy}": algebra_case.pattern(case).policy(policy)
        for number, (case, policies) in enumerate(cases)
        for policy in policies
    }
    options: dict[str, Any] = {"key": [CASE], "time": AT, "sequence": ID, "columns": [ID]}
    found: list[dict[str, Answer]] = [{policy: [] for policy in policies} for _, policies in cases]
    if where == "spark":
        rows = detect(frame(events), patterns, **options).toArrow().to_pylist()
    else:
        marker = _numbered(dict(cases[0][0]) | {"events": [{"id": "~", "type": "~", "t": END}]}, -1)
        rows = stream_rows(pa.concat_tables([events, marker], **PROMOTED), patterns, **options)
    for row in rows:
        number, policy = row["pattern"].split()
        if int(number) == row[CASE]:
            found[row[CASE]][policy].append(algebra_case.shown(row))
    return found


def _numbered(case: Case, number: int) -> pa.Table:
    events = algebra_case.table(case)
    return events.append_column(CASE, pa.array([number] * len(events), pa.int32()))


def intervals_together(questions: Sequence[Question], where: Where) -> list[list[list[str]]]:
    """The ids of the events of each match of each question, from one query, as in `occurrences_together`. On a stream,
    patterns whose matches would never be certain emit in real time, and matches that are not retracted count.
    """
    events = pa.concat_tables(
        [q.events.append_column(CASE, pa.array([n] * len(q.events), pa.int32())) for n, q in enumerate(questions)],
        promote_options="permissive",  # an attribute may be whole numbers in one case and other numbers in another
    )
    options: dict[str, Any] = {"key": [CASE], "time": ("start", "end"), "columns": ["id"]}
    if where == "spark":
        patterns = {str(number): question.pattern for number, question in enumerate(questions)}
        rows = detect(frame(events), patterns, **options).toArrow().to_pylist()
    else:
        patterns = {str(number): _emitting(question.pattern) for number, question in enumerate(questions)}
        times = pa.array([END * SECOND], pa.timestamp("us", "UTC"))
        marker = pa.table({"id": ["~"], "type": ["~"], "start": times, "end": times, CASE: pa.array([-1], pa.int32())})
        rows = stream_rows(pa.concat_tables([events, marker], **PROMOTED), patterns, **options)
    retracted = {row["match_id"] for row in rows if where == "stream" and row["kind"] == "retraction"}
    found: list[list[list[str]]] = [[] for _ in questions]
    for row in rows:
        number = row[CASE]
        if row["pattern"] == str(number) and row["match_id"] not in retracted:
            found[number].append([row[p.variable]["id"] for p in questions[number].pattern.positives])
    return found


def _emitting(pattern: IntervalPattern) -> IntervalPattern:
    return pattern.emitting("realtime") if never_certain(pattern, STREAMS_LATENESS) else pattern


def frame(events: pa.Table) -> DataFrame:
    """The events as a DataFrame."""
    from cepheid.hosts.spark.session import local_session

    return local_session("cepheid conformance", time_zone="UTC").createDataFrame(events)


def stream_rows(events: pa.Table, pattern: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of all micro-batches; the last event has a micro-batch of its own."""
    last = len(events) - 1
    parts = [events.take(pa.array(range(start, last, PARTS), pa.int64())) for start in range(PARTS)]
    batches = [*(part for part in parts if len(part)), events.slice(last)]
    with tempfile.TemporaryDirectory() as folder:
        found = detected(session_of_cases(), batches, Path(folder), pattern, lateness=LATENESS, shards=1, **options)
    return [row for batch in found for row in batch]
