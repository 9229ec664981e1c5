"""Shards of events that rows open and close, called in the way Spark calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.intervals.events import NAMES, Row, interval_pattern, table
from tests.searching import share
from tests.stream.test_shard import MemoryStore, Stream

from cepheid import detect
from cepheid.hosts.shards.log import MatcherCache
from cepheid.output.events import unnested
from cepheid.plan.lifted import OutputName

OPTIONS: dict[str, Any] = {"key": "user", "event_id": "id", "columns": ["id", "ends"]} | NAMES
LATENESS, OPEN_FOR = 3, 20
PATTERN = "EVENT PAL((A a overlap B b) (!D d gap) before C c) WITHIN 9 seconds OF STARTS CONSISTENCY {}"


@dataclass
class OpenStream(Stream):
    """A stream of such rows. The watermark follows their own times."""

    outputs: tuple[OutputName, ...] = ("matches", "late")
    time: str = "begins"

    def batch(self, rows: pa.Table) -> pa.Table:
        watermark = self.watermark
        found = super().batch(rows.slice(0, 0)) if not rows.num_rows else self._of(rows)
        own = [row["ends"] or row["begins"] for row in rows.to_pylist()]
        latest = max((int(time.timestamp()) - LATENESS for time in own), default=0)
        self.watermark = max(watermark, 1000 * latest)
        return found

    def _of(self, rows: pa.Table) -> pa.Table:
        found = [part for shard, value in self.values(rows).items() for part in self._call(shard, [value])]
        for shard, timer in [*self.timers.items()]:
            if timer <= self.watermark:
                found += self._call(shard, [])
        return pa.concat_tables(found) if found else pa.table({})


def open_stream(consistency: str, **options: Any) -> OpenStream:
    pattern = interval_pattern(PATTERN.format(consistency))
    given_ = OPTIONS | {"open_for": timedelta(seconds=OPEN_FOR)} | options
    return OpenStream(pattern, table([("A", 0, 1, "a", "u")]).schema, given_, timedelta(seconds=LATENESS))


Spans: TypeAlias = Sequence[tuple[str, int, int]]
SPANS = st.lists(st.tuples(st.sampled_from("AABBCD"), st.integers(0, 12), st.integers(0, 9)), min_size=3, max_size=9)
CONSISTENCIES = st.sampled_from(["earliest", "realtime", "conservative"])


@st.composite
def arrivals(draw: st.DrawFn, spans: Spans) -> list[Row]:
    """The opening and closing rows of events, in an order in which none is late."""
    rows = []
    for number, (kind, start, length) in enumerate(spans):
        opening, id_, user = start + draw(st.integers(0, LATENESS)), f"e{number}", draw(st.sampled_from("uv"))
        closing = max(opening, start + length + draw(st.integers(0, LATENESS)))
        rows += [(opening, 0, (kind, start, None, id_, user)), (closing, 1, (None, None, start + length, id_, user))]
    return [row for *_, row in sorted(rows, key=lambda one: one[:2])]


@st.composite
def batches(draw: st.DrawFn, arriving: Sequence[Row]) -> list[pa.Table]:
    """The rows in micro-batches, and one without rows, after which all time has passed."""
    borders = pairwise(sorted(draw(st.sets(st.integers(1, len(arriving)), max_size=6)) | {0, len(arriving)}))
    return [*(table(arriving[start:end]) for start, end in borders), table(arriving).slice(0, 0)]


@share(20)
@given(data=st.data(), spans=SPANS, consistency=CONSISTENCIES)
def test_any_micro_batches(data: st.DataObject, spans: list[tuple[str, int, int]], consistency: str) -> None:
    """Any order of arrival within the lateness, any micro-batches, workers and sizes of the log: what was inserted and
    not retracted is what detect finds, and no state is left at the end.
    """
    arriving = data.draw(arrivals(spans))
    stream = open_stream(consistency)
    stream.small_log = data.draw(st.sampled_from([0, 5000]))
    workers, left = (MatcherCache(), MatcherCache()), Counter[str]()
    for batch in data.draw(batches(arriving)):
        stream.cache = data.draw(st.sampled_from([MatcherCache(), *workers]))
        if not batch.num_rows:
            stream.watermark += 1_000_000
        for row in stream.batch(batch).to_pylist():
            left[row["match_id"]] += {"insertion": 1, "retraction": -1, "completion": 0}[row["kind"]]
            assert left[row["match_id"]] in (0, 1)
    expected = detect(table(arriving), stream.pattern, **OPTIONS)
    assert sorted(left.elements()) == sorted(expected.column("match_id").to_pylist())
    assert not stream.timers
    assert not [state for state in stream.states.values() if state != MemoryStore()]


@share(20)
@given(data=st.data(), spans=SPANS, consistency=CONSISTENCIES)
def test_rows_of_events(data: st.DataObject, spans: Spans, consistency: str) -> None:
    """Each row of a match, of whatever kind, is a row for each of its events, as they are known then. A table with the
    key (match_id, position) has at the end the rows that detect gives.
    """
    arriving = data.draw(arrivals(spans))
    found: dict[str, list[dict[str, Any]]] = {"match": [], "event": []}
    streams = {rows_per: open_stream(consistency, rows_per=rows_per) for rows_per in found}
    for batch in data.draw(batches(arriving)):
        for rows_per, stream in streams.items():
            stream.watermark += 0 if batch.num_rows else 1_000_000
            found[rows_per] += unnested(stream.batch(batch)).to_pylist()
    of_match = ("kind", "match_id", "match_end", "detected_at")
    expected = [[*map(row.get, of_match), v, *row[v].values()] for row in found["match"] for v in "abc"]
    assert sorted(map(repr, expected)) == sorted(
        repr([*map(row.get, of_match), row["stage"], row["id"], row["ends"]]) for row in found["event"]
    )
    assert [row["position"] for row in found["event"]] == [1, 2, 3] * len(found["match"])
    stored: dict[tuple[str, int], tuple[Any, ...]] = {}
    for row in found["event"]:
        if row["kind"] == "retraction":
            del stored[row["match_id"], row["position"]]
        else:
            stored[row["match_id"], row["position"]] = (row["stage"], row["id"], row["ends"])
    rows = detect(table(arriving), streams["event"].pattern, rows_per="event", **OPTIONS).to_pylist()
    assert stored == {(row["match_id"], row["position"]): (row["stage"], row["id"], row["ends"]) for row in rows}
