"""The index of events by their times finds what looking at all of them finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.kernel.intervals.layout import OPEN_END
from cepheid.matchers.intervals.uncertain.reach import EventsByTime, Reach

ENDS = st.integers(0, 9) | st.just(OPEN_END)
BORDERS = st.integers(0, 9) | st.sampled_from([NO_TIME, FOREVER])
REACHES = st.builds(Reach, BORDERS, BORDERS, BORDERS, BORDERS)


@given(events=st.lists(st.tuples(st.integers(0, 9), ENDS)), removed=st.sets(st.integers(0, 9)), reach=REACHES)
def test_events_within_a_reach(events: list[tuple[int, int]], removed: set[int], reach: Reach) -> None:
    """They are in the order of their ends; open events may have any end."""
    index = EventsByTime()
    for number, (start, end) in enumerate(events):
        index.add(start, end, str(number).encode())
    for number in removed.intersection(range(len(events))):
        index.remove(*events[number], str(number).encode())
    left = sorted(
        (end, start, str(number).encode()) for number, (start, end) in enumerate(events) if number not in removed
    )
    assert [*index.within(reach)] == [name for end, start, name in left if reach.has(start, end)]
