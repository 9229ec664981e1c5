"""Cases that are asked of Spark in one query, which costs seconds whatever it is asked: many patterns at once over the
events of all, in which each case has a key of its own and counts the rows of its own pattern.

Each case's times are moved so that time ends for all where the case lets it.
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
"""Cases a query."""
MICROSECOND = timedelta(microseconds=1)
ENDS = EPOCH + timedelta(days=50 * 365) - MICROSECOND
"""Where time ends, behind 1970 in any case: Spark's watermark begins there. It counts whole milliseconds, and time has
come to the microsecond before it, which must be able to be an event's.
"""


@dataclass(frozen=True)
class Joined:
    """What is asked in one query."""

    patterns: Mapping[str, Pattern]
    events: pa.Table
    key: Sequence[str]
    sequence: str
    distances: Sequence[timedelta]
    """How far each case's times are moved."""

    def rows_of_each(self, rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        """Those of each case, times as in the case."""
        found: list[list[Mapping[str, Any]]] = [[] for _ in self.distances]
        for row in rows:
            if row["pattern"] == str(row[CASE]):
                time = row["detected_at"] and row["detected_at"] - self.distances[row[CASE]]
                found[row[CASE]].append({**row, "detected_at": time})
        return found


def joined(questions: Sequence[Question]) -> Joined:
    """These questions, which fit together, as one."""
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
    """The numbers of those that fit together: no column has two types, and there is no watermark of a case's own."""
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
    """Its events, at other times."""
    times = pa.array([time + distance for time in question.events.column(TIME).to_pylist()], pa.timestamp("us", "UTC"))
    return question.events.set_column(question.events.schema.get_field_index(TIME), TIME, times)
