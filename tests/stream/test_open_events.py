"""Streams of events that one row opens and another one closes: what is left at the end is what detect finds in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.intervals.events import NAMES, Row, interval_pattern, table
from tests.stream.running import finished, run, streamed, written
from tests.stream.test_errors import failing

from cepheid import CepheidWarning, PatternError, SchemaError, detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "user", "event_id": "id"} | NAMES
ON_STREAM: dict[str, Any] = {"lateness": "4 seconds", "open_for": "1 minute", "shards": 2} | OPTIONS
CHAIN = (
    "EVENT PAL((A a overlap B b) (!D d gap) before C c) WHERE end(a) <= start(c) "
    "AND end(b) > TIMESTAMP '1970-01-01 00:00:20Z' AND end(b) - start(b) > INTERVAL 1 SECOND AND end(a) > start(a) "
    "WITHIN 12 seconds OF STARTS"
)


def arriving() -> list[Row]:
    """Rows in about the order of their times, each with its key. Some that close events have a start, which says
    nothing, also if it is after the end.
    """
    random = Random(3)
    rows: list[tuple[float, Row]] = []
    for i in range(300):
        kind, start = random.choice("AABBCD"), i // 4 + random.randrange(6)
        end, user, name = start + random.randrange(12), random.choice("uv"), f"e{i}"
        delay = random.choice([0, 0, 3])
        closing = (None, None if i % 9 else end + 5, end, name, user)
        rows += [(start + delay, (kind, start, None, name, user)), (end + delay + 0.5, closing)]
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def left(batches: list[list[dict[str, Any]]]) -> list[str]:
    """The match_ids of what was inserted and not retracted."""
    count = Counter[str]()
    for row in (row for rows in batches for row in rows):
        count[row["match_id"]] += {"insertion": 1, "retraction": -1, "completion": 0}[row["kind"]]
    return sorted(count.elements())


def test_a_stream_goes_on_from_its_checkpoint(streams: SparkSession, tmp_path: Path) -> None:
    """Events that are open when the query stops are closed after its restart; three patterns, one per consistency."""
    rows, last = arriving(), [("Z", 1000, 1000, "z", "u")]
    half = len(rows) // 2
    measures = {"until": "unix_seconds(end(c))"}
    each = {name: interval_pattern(f"{CHAIN} CONSISTENCY {name}") for name in ("earliest", "conservative", "realtime")}
    options = {"measures": dict.fromkeys(each, measures)}
    written([table(rows[: half // 2]), table(rows[half // 2 : half])], tmp_path / "events")
    found = run(detect(streamed(streams, tmp_path / "events"), each, **options, **ON_STREAM), tmp_path / "checkpoint")
    written([table(rows[half:]), table(last)], tmp_path / "events", first=2)
    found += run(detect(streamed(streams, tmp_path / "events"), each, **options, **ON_STREAM), tmp_path / "checkpoint")
    expected = detect(table([*rows, *last]), each, **options, **OPTIONS).to_pylist()
    for name in each:
        of_pattern = [[row for row in batch if row["pattern"] == name] for batch in found]
        assert left(of_pattern) == sorted(row["match_id"] for row in expected if row["pattern"] == name)
        final = {row["match_id"]: row["until"] for batch in of_pattern for row in batch if row["kind"] != "retraction"}
        assert final.items() >= {(row["match_id"], row["until"]) for row in expected if row["pattern"] == name}
    assert len(expected) > 30
    kinds = {name: {row["kind"] for rows in found for row in rows if row["pattern"] == name} for name in each}
    assert "completion" in kinds["earliest"]
    assert kinds["conservative"] == {"insertion"}


def test_rows_of_events_are_those_of_the_table(streams: SparkSession, tmp_path: Path) -> None:
    """A table that takes insertions and completions and deletes retractions has the rows of events that detect gives,
    with measures and the columns of the events.
    """
    rows, pattern = arriving(), interval_pattern(f"{CHAIN} CONSISTENCY realtime")
    measures = {"until": "unix_seconds(end(c))"}
    options: dict[str, Any] = {"rows_per": "event", "columns": ["id", "ends"], "measures": measures}
    written([table(rows[:200]), table(rows[200:]), table([("Z", 1000, 1000, "z", "u")])], tmp_path / "events")
    found = run(
        detect(streamed(streams, tmp_path / "events"), pattern, **options, **ON_STREAM), tmp_path / "checkpoint"
    )
    stored: dict[tuple[str, int], dict[str, Any]] = {}
    for row in (row for batch in found for row in batch):
        place = row["match_id"], row["position"]
        if row["kind"] == "retraction":
            del stored[place]
        else:
            stored[place] = row
    expected = detect(table(rows), pattern, **options, **OPTIONS).to_pylist()
    names = ("match_id", "position", "stage", "id", "user", "ends", "match_start", "match_end", "until")
    assert sorted(repr([row[name] for name in names]) for row in stored.values()) == sorted(
        repr([row[name] for name in names]) for row in expected
    )
    assert len(expected) > 30


def test_events_that_are_open_for_too_long_and_other_problems(streams: SparkSession, tmp_path: Path) -> None:
    """They end the query with a message that names the event; what no row can give is refused before it starts."""
    rows = [("A", 0, None, "a1", "u")], [("B", 90, 90, "b1", "u")], [("B", 100, 100, "b2", "u")]
    written([table(one) for one in rows], tmp_path / "events")
    events, pattern = (
        streamed(streams, tmp_path / "events"),
        interval_pattern("EVENT PAL(A a before B b) WITHIN 2 minutes OF STARTS"),
    )
    event = "(id: 'a1', begins: 1970-01-01 00:00:00+00:00, ends: NULL, user: 'u')"
    with failing(f"an event {event} is open for longer than open_for. Close it with a row"):
        finished(detect(events, pattern, **ON_STREAM).writeStream.format("noop"), tmp_path / "checkpoint")
    long = interval_pattern("EVENT PAL(A a) WHERE date_format(end(a), a.kind) = 'A'")
    sql = "reads the end and other columns of one event, which come in different"
    with pytest.raises(PatternError, match=sql):
        detect(events, long, **ON_STREAM)
    with pytest.raises(SchemaError, match="open_for: events are open only where rows open them"):
        detect(events, pattern, lateness="1 second", open_for="1 minute", **NAMES)
    with pytest.warns(CepheidWarning, match="events that no row closes are stored for ever"):
        detect(events, pattern, **{**ON_STREAM, "open_for": None})
