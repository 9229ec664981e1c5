"""However events arrive and time advances, a matcher emits what detect finds for the same events in order."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, Row, cases, events
from tests.searching import share

from cepheid import CepheidWarning, Matcher, detect

SECOND = timedelta(seconds=1)
SPAN = 40
"""Number of seconds that contains all events, with some to spare."""


@dataclass(frozen=True)
class Delivery:
    """How the events arrive and how time advances."""

    lateness: str | None
    batches: tuple[tuple[Row, ...], ...]
    times: tuple[datetime | None, ...]
    """For each batch, the time to which the matcher advances after it."""
    restored: tuple[bool, ...]
    """For each batch, whether a snapshot is taken after it and a new matcher continues from there."""
    as_of: datetime | None
    """The last time to which the matcher advances; None: the input is complete."""


@st.composite
def deliveries(draw: st.DrawFn, rows: Sequence[Row]) -> Delivery:
    """Any delivery in which no event is late."""
    lateness = draw(st.sampled_from([None, 0, 1, 5]))
    most = SPAN if lateness is None else lateness
    delays = [timedelta(seconds=draw(st.integers(0, most))) for _ in rows]
    shuffled = draw(st.permutations(range(len(rows))))
    order = sorted(shuffled, key=lambda i: rows[i]["at"] + delays[i])
    if lateness == 0:  # for each key, events of equal time arrive in the order of their sequence
        order = sorted(shuffled, key=lambda i: (rows[i]["at"], rows[i]["device"], rows[i]["id"]))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(rows) - 1)), max_size=6)) | {0, len(rows)})
    batches, times = [], []
    for start, end in pairwise(cuts):
        batches.append(tuple(rows[i] for i in draw(st.permutations(order[start:end]))))
        latest = min((rows[i]["at"] for i in order[end:]), default=FIRST + SPAN * SECOND) - FIRST
        seconds = draw(st.none() | st.integers(-1, latest // SECOND - 1))
        times.append(None if seconds is None else FIRST + seconds * SECOND)
    return Delivery(
        lateness=None if lateness is None else f"{lateness} seconds",
        batches=tuple(batches),
        times=tuple(times),
        restored=tuple(draw(st.booleans()) for _ in batches),
        as_of=draw(st.none() | st.integers(SPAN, 2 * SPAN).map(lambda seconds: FIRST + seconds * SECOND)),
    )


@share(30)
@given(data=st.data(), case=cases(), in_sequence=st.booleans(), measured=st.booleans())
def test_any_delivery(*, data: st.DataObject, case: Case, in_sequence: bool, measured: bool) -> None:
    """Any order of arrival within the lateness, any batches, any advances of time, and snapshots anywhere."""
    rows = data.draw(events(ties=True))
    delivery = data.draw(deliveries(rows))
    options: dict[str, Any] = {
        "key": "device",
        "time": "at",
        "sequence": "id" if in_sequence else None,
        "outputs": ("matches", "timeouts"),
        "measures": {"n": "count(s0)", "first": "first(s0.kind)"} if measured else None,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected = detect(table(rows), case.pattern, as_of=delivery.as_of, **options)
    matcher = Matcher(case.pattern, SCHEMA, lateness=delivery.lateness, **options)
    found = []
    for batch, time, restored in zip(delivery.batches, delivery.times, delivery.restored, strict=True):
        found.append(matcher.process(table(batch)))
        if time is not None:
            found.append(matcher.advance_time(time))
        if restored:
            state, counts = matcher.snapshot(), matcher.counts
            if data.draw(st.booleans(), label="goes on"):
                continue  # the same matcher continues, after taking the snapshot
            matcher = Matcher(case.pattern, SCHEMA, lateness=delivery.lateness, **options)
            matcher.restore(state)
            assert matcher.counts == counts
    found.append(matcher.finish() if delivery.as_of is None else matcher.advance_time(delivery.as_of))
    assert counted(pa.concat_tables(found)) == counted(expected)
    assert (matcher.counts.late, matcher.counts.waiting) == (0, 0)
    if delivery.as_of is None:
        assert matcher.counts.open_partial_matches == 0


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


def counted(found: pa.Table) -> Counter[str]:
    """The rows in any order, as text, so that NaN equals itself."""
    return Counter(map(repr, found.to_pylist()))
