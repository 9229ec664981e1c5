"""When rows of open partial matches may expire."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cepheid.hosts.durable.step.wakeups import Wakeups

TIMES = st.lists(st.none() | st.integers(0, 50), max_size=4)


@given(st.lists(st.tuples(TIMES, st.integers(0, 5)), max_size=20))
def test_no_expired_row_is_missed(steps: list[tuple[list[int | None], int]]) -> None:
    """At each time at which a row has expired, the store is asked."""
    wakeups, there, now = Wakeups(None), set[int](), 0
    wakeups.forget()
    for times, passed in steps:
        now += passed
        wakeups.add(times)
        there |= {time for time in times if time is not None}
        expired = {time for time in there if time <= now}
        assert wakeups.expire(now) or not expired
        there -= expired


def test_the_store_is_asked_once_for_each_row() -> None:
    """If each step writes one row, the store is asked only when one of them expires."""
    wakeups = Wakeups(None)
    wakeups.forget()
    for time in range(0, 100, 10):
        wakeups.add([time + 100, None])
    assert [time for time in range(300) if wakeups.expire(time)] == [*range(100, 200, 10)]


def test_rows_of_before() -> None:
    """What was stored before may expire until the longest window has passed."""
    wakeups = Wakeups(20)
    assert [time for time in range(50) if wakeups.expire(time)] == [*range(21)]


def test_many_rows() -> None:
    """The ranges of very many steps become one."""
    wakeups = Wakeups(None)
    wakeups.forget()
    for time in range(5000):
        wakeups.add([10_000 + 10 * time])
    assert not wakeups.expire(9_999)
    assert all(wakeups.expire(10_000 + 10 * time) for time in range(5000))
    assert not wakeups.expire(70_000)
