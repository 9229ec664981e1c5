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
from tests.stream.running import detected

from cepheid import PatternError

Where: TypeAlias = Literal["process", "spark", "stream"]
"""Where a case is asked."""

LATENESS = timedelta(days=1000)
END = 10**9
"""Seconds: when the last event is, behind all others and the lateness."""
PARTS = 3
"""Micro-batches."""


def occurrences_streamed(case: Mapping[str, Any], policies: Sequence[str]) -> dict[str, Answer]:
    """The case's occurrences for each policy, of all of which one query is asked."""
    marker = {"id": "~", "type": "~", "t": END}
    events = algebra_case.table(dict(case) | {"events": [*case["events"], marker]})
    patterns = {policy: algebra_case.pattern(case).policy(policy) for policy in policies}
    rows = _rows(events, patterns, time=AT, sequence=ID, columns=[ID])
    return {policy: [algebra_case.shown(row) for row in rows if row["pattern"] == policy] for policy in policies}


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
