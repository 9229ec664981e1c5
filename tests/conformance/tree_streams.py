"""Cases of the event algebra and about intervals through `detect` on a stream of Spark's.

Events come in several micro-batches, out of order, none of them late; then one of another type moves the watermark
behind all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from tests.conformance import algebra_case
from tests.conformance.algebra_case import AT, ID, Answer
from tests.conformance.interval_case import SECOND, Question
from tests.conformance.streaming import session_of_cases
from tests.conformance.together import CASE
from tests.stream.running import detected

from cepheid import PatternError, detect

Case: TypeAlias = Mapping[str, Any]
Where: TypeAlias = Literal["process", "spark", "stream"]
"""Where a case is asked."""

LATENESS = timedelta(days=1000)
END = 10**9
"""Seconds: when the last event is, behind all others and the lateness."""
PARTS = 3
"""Micro-batches."""
PROMOTED: Mapping[str, Any] = {"promote_options": "default"}
"""Where tables are put together: a column that one has not is NULL there."""


def occurrences_together(asked: Sequence[tuple[Case, Sequence[str]]], where: Where) -> list[dict[str, Answer]]:
    """The occurrences of each case for each policy, in one query: each case has a key of its own, and counts the rows
    of its own patterns.
    """
    from cepheid.hosts.spark_session import local_session

    events = pa.concat_tables([_numbered(case, number) for number, (case, _) in enumerate(asked)], **PROMOTED)
    patterns = {
        f"{number} {policy}": algebra_case.pattern(case).policy(policy)
        for number, (case, policies) in enumerate(asked)
        for policy in policies
    }
    options: dict[str, Any] = {"key": [CASE], "time": AT, "sequence": ID, "columns": [ID]}
    found: list[dict[str, Answer]] = [{policy: [] for policy in policies} for _, policies in asked]
    if where == "spark":
        frame = local_session("cepheid conformance", time_zone="UTC").createDataFrame(events)
        rows = detect(frame, patterns, **options).toArrow().to_pylist()
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


def intervals_streamed(asked: Question) -> list[list[str]]:
    """The ids of the events of each match; in real time those that are left, where none would ever be certain."""
    times = pa.array([END * SECOND], pa.timestamp("us", "UTC"))
    empty = pa.table({field.name: pa.nulls(1, field.type) for field in asked.events.schema})
    marker = empty.drop_columns(["id", "type", "start", "end"])
    for name, column in {"id": pa.array(["~"]), "type": pa.array(["~"]), "start": times, "end": times}.items():
        marker = marker.append_column(name, column)
    events = pa.concat_tables([asked.events, marker.select(asked.events.schema.names)])
    options: dict[str, Any] = {"start": "start", "end": "end", "columns": ["id"]}
    try:
        rows = _rows(events, asked.pattern, **options)
    except PatternError:
        rows = _rows(events, asked.pattern.emitting("realtime"), **options)
    back = {row["match_id"] for row in rows if row["kind"] == "retraction"}
    left = [row for row in rows if row["match_id"] not in back]
    return [[row[p.variable]["id"] for p in asked.pattern.positives] for row in left]


def _rows(events: pa.Table, pattern: Any, **options: Any) -> list[dict[str, Any]]:
    """Of all micro-batches; the last event comes alone."""
    last = len(events) - 1
    parts = [events.take(pa.array(range(start, last, PARTS), pa.int64())) for start in range(PARTS)]
    batches = [*(part for part in parts if len(part)), events.slice(last)]
    with tempfile.TemporaryDirectory() as folder:
        found = detected(session_of_cases(), batches, Path(folder), pattern, lateness=LATENESS, shards=1, **options)
    return [row for batch in found for row in batch]
