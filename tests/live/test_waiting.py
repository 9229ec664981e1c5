"""The queue of waiting events: whatever the order of arrival, each event leaves once, when time has passed it."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cepheid.events.batch import TIME, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.matchers.event_queue import EventQueue, times_of


def batch(times: list[int]) -> Batch:
    return Batch(pa.record_batch({TIME: pa.array(times, pa.int64()).cast(TIME_TYPE)}))


@given(st.lists(st.lists(st.integers(-9, 9), max_size=9) | st.integers(-10, 10), max_size=30))
def test_events_leave_when_time_has_passed_them(steps: list[list[int] | int]) -> None:
    """Lists are arriving events, numbers are times to advance to; the result equals that of a plain list."""
    waiting = EventQueue()
    plain: list[int] = []
    for step in steps:
        if isinstance(step, list):
            waiting.add(batch(step))
            plain += step
        else:
            taken = waiting.take(step)
            assert sorted([] if taken is None else times_of(taken).tolist()) == sorted(t for t in plain if t <= step)
            plain = [time for time in plain if time > step]
        assert len(waiting) == len(plain)
    rest = waiting.all
    assert sorted([] if rest is None else times_of(rest).tolist()) == sorted(plain)
