"""Slices of patterns with skip strategies assume what is open at their begin, and are repeated where this was wrong."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from tests.hosts.test_time_slices import FIRST
from tests.hosts.workers import Find, found_by_one_and_by_two, one_and_two

from cepheid import ConditionError, LimitExceeded, Limits, Pattern, Skip
from cepheid.hosts.in_process.workers.agreement import checked
from cepheid.hosts.in_process.workers.division import Slice, Task
from cepheid.hosts.in_process.workers.messages import Done, Failed, Open

PAIRS = Pattern.begin("a").next("b").within("2 seconds").skip(Skip.past_last_event())
"""The events by twos: which of them form a pair depends on all events before."""
RISING = Pattern.begin("a").next("b").where("6 / (n - a.n) > 0").within("2 seconds").skip(Skip.past_last_event())
"""It fails on two events with the same n."""


def events_of(numbers: list[int]) -> pa.Table:
    """One event a second."""
    at = [FIRST + timedelta(seconds=second) for second in range(len(numbers))]
    return pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "n": numbers})


@pytest.mark.parametrize("least", [2, 3, 4, 5, 7])
def test_repeated_until_they_agree(least: int) -> None:
    """Slices that begin with an odd event assume the wrong pairs."""
    one, two = found_by_one_and_by_two(events_of([0] * 40), PAIRS, time="at", least=least)
    assert two == one
    assert one[1]["matches"] == 20


def test_a_failure_of_an_assumption_is_none() -> None:
    """A condition may fail on events that are no candidates, as the slice before knows. Then there is no error."""
    numbers = [(number + 1) // 2 for number in range(40)]  # 0, 1, 1, 2, 2, …: only the wrong pairs fail
    one, two = found_by_one_and_by_two(events_of(numbers), RISING, time="at", least=5)
    assert two == one
    assert one[1]["matches"] == 20


@pytest.mark.parametrize("at", [1, 12, 17, 38])
def test_a_failure_is_that_of_one_worker(at: int) -> None:
    """If the pairs themselves fail, it is with the first of them."""
    numbers = [number // 2 if number >= at else (number + 1) // 2 for number in range(40)]
    with one_and_two(events_of(numbers), RISING, time="at", least=5) as both:
        one, two = (error_of(find) for find in both)
    assert "division by zero" in one
    assert two == one


@pytest.mark.parametrize("skip", [Skip(), Skip.to_next(), Skip.past_last_event()])
def test_limits_count_what_one_worker_counts(skip: Skip) -> None:
    """A slice has all open partial matches of the key, so a limit is exceeded at the same event."""
    pattern = Pattern.begin("a").followed_by("b").where("n = 1").within("9 seconds").skip(skip)
    events = events_of([0] * 20)
    for most, fails in ((8, True), (9, False)):
        with one_and_two(events, pattern, time="at", least=4, limits=Limits(max_partial_matches=most)) as both:
            one, two = (error_of(find) for find in both)
        assert bool(one) == fails
        assert two == one


def error_of(find: Find) -> str:
    """The message; empty if it succeeds."""
    try:
        find()
    except (ConditionError, LimitExceeded) as error:
        return str(error)
    return ""


def task(number: int, *, certain: bool = False) -> Task:
    """The tasks have ten events each."""
    begin = 10 * number
    return Task(
        0,
        begin,
        begin + 10,
        None,
        Slice(0, begin, begin, begin, entered=0, is_last=False, hands_over=True, certain=certain),
    )


def done(before: list[int], after: list[int]) -> Done:
    return Done([], {}, Open(np.array(before, np.int64), np.array(after, np.int64)))


def test_the_first_that_disagrees_is_repeated() -> None:
    """Those before it are certain; those after it wait for it."""
    tasks = [task(0, certain=True), task(1), task(2), task(3)]
    results = {0: done([], [9]), 1: done([9], [18, 19]), 2: done([19], []), 3: done([], [])}
    tasks, again = checked(tasks, results)
    assert again == [2]
    assert [one.is_certain for one in tasks] == [True, True, True, False]
    assert tasks[2].slice is not None
    assert tasks[2].slice.open is not None
    assert tasks[2].slice.open.tolist() == [18, 19]
    assert checked(tasks, results | {2: done([18, 19], [])})[1] == []


def test_a_failure_that_is_certain_ends_the_check() -> None:
    """A slice that failed with an assumption is repeated; one that failed without ends all."""
    tasks = [task(0, certain=True), task(1), task(2)]
    failed = Failed("ConditionError", "")
    tasks, again = checked(tasks, {0: done([], []), 1: failed, 2: done([5], [])})
    assert again == [1]
    assert checked(tasks, {0: done([], []), 1: failed, 2: done([5], [])})[1] == []


def test_whole_keys_agree() -> None:
    """Tasks that are no slices assume nothing."""
    whole = Task(0, 0, 10)
    assert checked([whole, whole], {0: Done([], {}), 1: Failed("SkipError", "")}) == ([whole, whole], [])
