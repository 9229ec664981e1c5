"""Shards of events that rows open and close, called in the way Spark calls them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.intervals.events import NAMES, interval_pattern, table
from tests.searching import share
from tests.stream.test_shard import MemoryStore, Stream

from cepheid import detect
from cepheid.hosts.shards.log import MatcherCache
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


@share(20)
@given(
    data=st.data(),
    spans=st.lists(st.tuples(st.sampled_from("AABBCD"), st.integers(0, 12), st.integers(0, 9)), min_size=3, max_size=9),
    consistency=st.sampled_from(["earliest", "realtime", "conservative"]),
)
def test_any_micro_batches(data: st.DataObject, spans: list[tuple[str, int, int]], consistency: str) -> None:
    """Any order of arrival within the lateness, any micro-batches, workers and sizes of the log: what was inserted and
    not retracted is what detect finds, and no state is left at the end.
    """
    rows = []
    for number, (kind, start, length) in enumerate(spans):
        opening, id_, user = start + data.draw(st.integers(0, LATENESS)), f"e{number}", data.draw(st.sampled_from("uv"))
        closing = max(opening, start + length + data.draw(st.integers(0, LATENESS)))
        rows += [(opening, 0, (kind, start, None, id_, user)), (closing, 1, (None, None, start + length, id_, user))]
    arriving = [row for *_, row in sorted(rows, key=lambda one: one[:2])]
    stream = open_stream(consistency)
    stream.small_log = data.draw(st.sampled_from([0, 5000]))
    borders = pairwise(sorted(data.draw(st.sets(st.integers(1, len(arriving)), max_size=6)) | {0, len(arriving)}))
    workers, left = (MatcherCache(), MatcherCache()), Counter[str]()
    batches = [table(arriving[start:end]) for start, end in borders]
    for batch in [*batches, table(arriving).slice(0, 0)]:
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
