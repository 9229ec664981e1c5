"""Events are given to matchers in portions that take less than a second or so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.hosts import pace
from cepheid.hosts.pace import Pace


@given(ranges=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 20)), max_size=4), took=st.floats(0, 90))
def test_all_events_are_in_a_portion(ranges: list[tuple[int, int]], took: float) -> None:
    """Portions follow each other from the first event to the last one, however long they take."""
    now = [0.0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pace, "monotonic", lambda: now[0])
        one = Pace()
        for start, length in ranges:
            place = start
            for begin, end in one.portions(start, start + length):
                assert begin == place < end
                place, now[0] = end, now[0] + took * (end - begin) / 2**14
            assert place == start + length


@pytest.mark.parametrize(("each", "most"), [(1e-3, 1000), (1e-5, 100_000), (1.0, 64)])
def test_a_portion_takes_a_second(each: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an event takes so many seconds, portions soon have no more than so many events, and not many fewer."""
    now = [0.0]
    monkeypatch.setattr(pace, "monotonic", lambda: now[0])
    lengths = []
    for begin, end in Pace().portions(0, 1 << 23):
        lengths.append(end - begin)
        now[0] += each * (end - begin)
        if len(lengths) == 20:
            break
    assert most // 4 <= lengths[-1] <= most
