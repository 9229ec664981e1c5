"""`sequence` of interval patterns: it identifies events of equal times, and orders them in the output."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest
from tests.intervals.events import NAMES, Row, interval_pattern, table

from cepheid import ROW_ORDER
from cepheid.detect import detect
from cepheid.errors import SchemaError, SnapshotError
from cepheid.intervals import IntervalMatcher

PAIR = interval_pattern(
    "EVENT PAL(A a, A b) ORDER start(a) = start(b), end(a) = end(b) WHERE a.id < b.id WITHIN 9 seconds"
)
ROWS: list[Row] = [("A", 1, 4, "a1", "v"), ("A", 1, 4, "a2", "u"), ("A", 1, 4, "a3", "w"), ("B", 1, 4, "b1", "x")]


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows["match_id"].to_pylist())


def live(**options: object) -> IntervalMatcher:
    return IntervalMatcher(PAIR, table(ROWS), lateness="1 minute", **(NAMES | options))


def test_events_are_identified_by_times_and_sequence() -> None:
    """Other columns change no id then; in a table, live, and event by event."""
    by_id = detect(table(ROWS), PAIR, sequence="id", **NAMES)
    assert len(set(ids(by_id))) == 3
    assert ids(detect(table(ROWS), PAIR, sequence="id", columns=["user"], **NAMES)) == ids(by_id)
    assert ids(detect(table(ROWS), PAIR, sequence="id DESC", **NAMES)) == ids(by_id)
    assert ids(detect(table(ROWS), PAIR, **NAMES)) != ids(detect(table(ROWS), PAIR, columns=["user"], **NAMES))
    for rows in ([ROWS], [[row] for row in ROWS[::-1]]):
        matcher = live(sequence="id", columns=["kind"])
        made = [matcher.process(table(part)) for part in rows]
        assert ids(pa.concat_tables([*made, matcher.finish()])) == ids(by_id)


def test_events_that_are_equal_in_the_sequence_are_numbered() -> None:
    """By their content, whatever the order of the rows is."""
    found = {tuple(ids(detect(table(rows), PAIR, sequence="kind", **NAMES))) for rows in permutations(ROWS)}
    assert len(found) == 1
    assert len(set(*found)) == 3


@pytest.mark.parametrize(
    ("sequence", "order"),
    [(None, "v u"), ("user", "u v"), ("user DESC", "v u"), (["kind", "length(user)", "user NULLS FIRST"], "u v")],
)
def test_rows_of_events_are_in_its_order(sequence: str | list[str] | None, order: str) -> None:
    """Events of a match that start and end together; without a sequence they are in the order of the variables."""
    rows = detect(table(ROWS[:2]), PAIR, sequence=sequence, rows_per="event", **NAMES)
    assert " ".join(rows["user"].to_pylist()) == order


def test_what_is_refused() -> None:
    """The order of rows, a column that is not there, an id besides, and a snapshot of another sequence."""
    with pytest.raises(SchemaError, match="sequence: the order of rows does not identify intervals; name a column"):
        detect(table(ROWS), PAIR, sequence=ROW_ORDER, **NAMES)
    with pytest.raises(SchemaError, match="sequence: no column named 'number'"):
        detect(table(ROWS), PAIR, sequence="number", **NAMES)
    with pytest.raises(SchemaError, match="sequence: with event_id the id identifies events; leave sequence out"):
        live(sequence="id", event_id="id")
    with pytest.raises(SnapshotError, match="sequence"):
        live(sequence="id").restore(live(sequence="user").snapshot())
