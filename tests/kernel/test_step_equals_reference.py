"""The compiled kernel finds what the reference finds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st
from tests.kernel.running import (
    Eager,
    FailingIsFalse,
    FailingIsTrue,
    Found,
    Row,
    Visit,
    branches_are_counted_twice,
    run_compiled,
    run_reference,
)
from tests.kernel.strategies import event_rows, plans

from cepheid.lang.calendar import parse_calendar
from cepheid.plan.calendar import Deadlines
from cepheid.plan.stages.plan import Plan

HOUR = 3_600_000_000
KEYS = st.lists(event_rows(8), min_size=1, max_size=3)
BATCHES = st.lists(
    st.lists(st.builds(Visit, st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=4), max_size=4
)


@given(plans(scripted=False), KEYS, BATCHES)
def test_lifted_conditions(plan: Plan, keys: list[list[Row]], batches: list[list[Visit]]) -> None:
    """Patterns whose conditions use one event give the same matches in the same order, for any visits."""
    _assert_equal(plan, keys, batches, None)


@given(plans(), KEYS, BATCHES)
def test_scripts(plan: Plan, keys: list[list[Row]], batches: list[list[Visit]]) -> None:
    """The same for patterns with conditions across events, with SQL's NULLs, NaN, overflow and failures."""
    _assert_equal(plan, keys, batches, None)


@given(
    plans(scripted=False), KEYS, BATCHES, st.sampled_from(["same day", "same month", "1 month"]), st.integers(1, 200)
)
def test_windows_by_the_calendar(
    plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], window: str, hours: int
) -> None:
    """The same for windows that follow the calendar of a time zone."""
    calendar = parse_calendar(window)
    assert calendar is not None
    pattern = replace(plan.pattern, window=None, calendar=calendar)
    plan = replace(plan, pattern=pattern, deadlines=Deadlines.of(calendar, "Europe/Berlin"))
    started = 24 * 25 * HOUR  # the ends of January and of February come next
    keys = [[(started + time * hours * HOUR, *rest) for time, *rest in rows] for rows in keys]
    _assert_equal(plan, keys, batches, None)


@given(plans(scripted=False), KEYS, st.integers(0, 30))
def test_as_of(plan: Plan, keys: list[list[Row]], after: int) -> None:
    """With as_of, deadlines up to it have passed, and partial matches that are still open are not emitted."""
    until = max([row[0] for rows in keys for row in rows], default=0) + after
    _assert_equal(plan, keys, [], until)


def _assert_equal(plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], until: int | None) -> None:
    known = (1 << len(plan.bits)) - 1
    keys = [[(time, mask & known, values) for time, mask, values in rows] for rows in keys]
    batches = [[visit for visit in batch if visit.key < len(keys)] for batch in batches]
    expected = run_reference(plan, keys, until)
    got = run_compiled(plan, keys, batches, until)
    note(f"expected {expected}\n     got {got}")
    if "failed" in (expected, got) and batches:
        return  # which batch fails first decides what was emitted before
    if expected == "failed" and got != "failed":  # the failed condition decided nothing, so it need not be evaluated
        assert [run_reference(plan, keys, until, kind) for kind in (FailingIsFalse, FailingIsTrue)] == [got, got]
    elif got == "failed" and expected != "failed":  # the condition decided nothing, but may be evaluated
        assert run_reference(plan, keys, until, Eager) == "failed"
    elif got != expected:  # only the count of partial matches with the same events may differ
        assert isinstance(got, Found)
        assert isinstance(expected, Found)
        assert replace(got, negated=expected.negated) == expected
        assert branches_are_counted_twice(plan, keys)
