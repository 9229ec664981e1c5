"""Cases of the event algebra and about intervals through `detect` on a stream of Spark's.

Events come in several micro-batches, out of order, none of them late; then one of another type moves the watermark
behind all.
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
"""Where a case is asked."""

LATENESS = timedelta(days=1000)
END = 10**9
"""Seconds: when the last event is, behind all others and the lateness."""
PARTS = 3
"""Micro-batches."""
STREAMS_LATENESS = End.END
"""By which of their times events are late to Spark."""
PROMOTED: Mapping[str, Any] = {"promote_options": "default"}
"""Where tables are put together: a column that one has not is NULL there."""


def occurrences_together(asked: Sequence[tuple[Case, Sequence[str]]], where: Where) -> list[dict[str, Answer]]:
    """The occurrences of each case for each policy, in one query: each case has a key of its own, and counts the rows
    of its own patterns.
    """
    events = pa.concat_tables([_numbered(case, number) for number, (case, _) in enumerate(asked)], **PROMOTED)
    patterns = {
        f"{number} {policy}": algebra_case.pattern(case).policy(policy)
        for number, (case, policies) in enumerate(asked)
        for policy in policies
    }
    options: dict[str, Any] = {"key": [CASE], "time": AT, "sequence": ID, "columns": [ID]}
    found: list[dict[str, Answer]] = [{policy: [] for policy in policies} for _, policies in asked]
    if where == "spark":
        rows = detect(_frame(events), patterns, **options).toArrow().to_pylist()
    else:
        marker = _numbered(dict(asked[0][0]) | {"events": [{"id": "~", "type": "~", "t": END}]}, -1)
        rows = _rows(pa.concat_tables([events, marker], **PROMOTED), patterns, **options)
    for row in rows:
        number, policy = row["pattern"].split()
        if int(number) == row[CASE]:
            found[row[CASE]][policy].append(algebra_case.shown(row))
    return found


def _numbered(case: Case, number: int) -> pa.Table:
    events = algebra_case.table(case)
    return events.append_column(CASE, pa.array([number] * len(events), pa.int32()))


def intervals_together(asked: Sequence[Question], where: Where) -> list[list[list[str]]]:
    """The ids of the events of each match of each question, in one query, as `occurrences_together` has it; in real
    time those that are left, on a stream where none would ever be certain.
    """
    events = pa.concat_tables(
        [q.events.append_column(CASE, pa.array([n] * len(q.events), pa.int32())) for n, q in enumerate(asked)],
        promote_options="permissive",  # an attribute may be whole numbers in one case and any numbers in another
    )
    options: dict[str, Any] = {"key": [CASE], "time": ("start", "end"), "columns": ["id"]}
    if where == "spark":
        patterns = {str(number): question.pattern for number, question in enumerate(asked)}
        rows = detect(_frame(events), patterns, **options).toArrow().to_pylist()
    else:
        patterns = {str(number): _that_tells(question.pattern) for number, question in enumerate(asked)}
        times = pa.array([END * SECOND], pa.timestamp("us", "UTC"))
        marker = pa.table({"id": ["~"], "type": ["~"], "start": times, "end": times, CASE: pa.array([-1], pa.int32())})
        rows = _rows(pa.concat_tables([events, marker], **PROMOTED), patterns, **options)
    back = {row["match_id"] for row in rows if where == "stream" and row["kind"] == "retraction"}
    found: list[list[list[str]]] = [[] for _ in asked]
    for row in rows:
        number = row[CASE]
        if row["pattern"] == str(number) and row["match_id"] not in back:
            found[number].append([row[p.variable]["id"] for p in asked[number].pattern.positives])
    return found


def _that_tells(pattern: IntervalPattern) -> IntervalPattern:
    return pattern.emitting("realtime") if never_certain(pattern, STREAMS_LATENESS) else pattern


def _frame(events: pa.Table) -> DataFrame:
    from cepheid.hosts.spark.session import local_session

    return local_session("cepheid conformance", time_zone="UTC").createDataFrame(events)


def _rows(events: pa.Table, pattern: Any, **options: Any) -> list[dict[str, Any]]:
    """Of all micro-batches; the last event comes alone."""
    last = len(events) - 1
    parts = [events.take(pa.array(range(start, last, PARTS), pa.int64())) for start in range(PARTS)]
    batches = [*(part for part in parts if len(part)), events.slice(last)]
    with tempfile.TemporaryDirectory() as folder:
        found = detected(session_of_cases(), batches, Path(folder), pattern, lateness=LATENESS, shards=1, **options)
    return [row for batch in found for row in batch]
