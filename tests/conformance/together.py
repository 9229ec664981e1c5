"""Several cases in one Spark query, since each query takes seconds whatever its size: many patterns over the events of
all cases. Each case has its own key, and only the rows of its own pattern count.

The times of each case are moved so that time ends at the same moment for all cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
from tests.conformance.translate import EPOCH, TIME, Question

from cepheid import Pattern

CASE = "_case"
MOST = 12
"""The most cases in one query."""
MICROSECOND = timedelta(microseconds=1)
ENDS = EPOCH + timedelta(days=50 * 365) - MICROSECOND
"""The moment at which time ends. It is after 1970, because Spark's watermark starts there. The watermark counts whole
milliseconds, and time has then reached the microsecond before it, which must be a possible time of an event.
"""


@dataclass(frozen=True)
class Joined:
    """The parts of one query for several cases."""

    patterns: Mapping[str, Pattern]
    events: pa.Table
    key: Sequence[str]
    sequence: str
    distances: Sequence[timedelta]
    """How far the times of each case are moved."""

    def rows_of_each(self, rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        """The rows of each case, with the times of the case."""
        found: list[list[Mapping[str, Any]]] = [[] for _ in self.distances]
        for row in rows:
            if row["pattern"] == str(row[CASE]):
                time = row["detected_at"] and row["detected_at"] - self.distances[row[CASE]]
                found[row[CASE]].append({**row, "detected_at": time})
        return found


def joined(questions: Sequence[Question]) -> Joined:
    """The query for these questions, which must fit together."""
    distances = [ENDS - question.as_of for question in questions]
    tables = [
        moved(question, distance).append_column(CASE, pa.array([number] * len(question.events), pa.int32()))
        for number, (question, distance) in enumerate(zip(questions, distances, strict=True))
    ]
    first = questions[0]
    return Joined(
        {str(number): question.pattern for number, question in enumerate(questions)},
        pa.concat_tables(tables, promote_options="default"),
        [CASE, *([first.key] if first.key else [])],
        first.sequence,
        distances,
    )


def grouped(questions: Sequence[Question]) -> Iterator[list[int]]:
    """The indexes of questions that fit together: no column has two types, and no case has its own watermarks."""
    open_: dict[tuple[str | None, str], tuple[list[int], dict[str, pa.DataType]]] = {}
    for number, question in enumerate(questions):
        if question.operator:
            yield [number]
            continue
        place, types = (question.key, question.sequence), {field.name: field.type for field in question.events.schema}
        numbers, known = open_.setdefault(place, ([], {}))
        if len(numbers) == MOST or any(known.get(name, type_) != type_ for name, type_ in types.items()):
            yield numbers
            numbers, known = open_[place] = ([], {})
        numbers.append(number)
        known.update(types)
    yield from (numbers for numbers, _ in open_.values())


def moved(question: Question, distance: timedelta) -> pa.Table:
    """The events of a question with moved times."""
    times = pa.array([time + distance for time in question.events.column(TIME).to_pylist()], pa.timestamp("us", "UTC"))
    return question.events.set_column(question.events.schema.get_field_index(TIME), TIME, times)
