"""Interval patterns by key and in time slices: rows, their order, ids and counts are those of all events together."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.hosts.test_slices_of_one_width import found, in_slices
from tests.hosts.workers import found_by_one_and_by_two
from tests.intervals.events import NAMES, interval_pattern, table
from tests.intervals.strategies import SECOND, forbidding_patterns, patterns, tables
from tests.searching import share

from cepheid import ConditionError, Limits, PatternError, Report, detect
from cepheid.events.batch import join
from cepheid.families.intervals import Intervals
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import batches_as_they_come, plans_in_process
from cepheid.hosts.in_process.prepare import timed
from cepheid.intervals import IntervalPattern
from cepheid.plan.division import TimeSlices
from cepheid.plan.intervals.slices import slices_text
from cepheid.requests.request_of import request_of

FAMILY = Intervals()


@st.composite
def windowed(draw: st.DrawFn) -> IntervalPattern:
    """Patterns with a window of a few events."""
    pattern = draw(st.one_of(patterns(), forbidding_patterns()))
    window = timedelta(seconds=draw(st.integers(1, 9)))
    return replace(pattern, window=window).taxonomy("type")


def arguments(pattern: Any, schema: pa.Schema, **options: Any) -> dict[str, Any]:
    """The arguments of a call for a pattern that can be divided by time on the host."""
    given_ = {"time": ("start", "end"), "nulls": "drop", **options}
    try:
        plans = plans_in_process(schema, request_of(pattern, **given_), DuckDbEngine())
    except PatternError:
        assume(False)  # noqa: FBT003 - the pattern contradicts itself
    assume(isinstance(FAMILY.time_slices(plans), TimeSlices))
    return given_


@share(20)
@given(
    pattern=windowed(),
    events=tables(most=24),
    key=st.sampled_from([None, None, "u"]),
    columns=st.sampled_from([None, ["type"], ["n"]]),
    least=st.integers(1, 6),
)
def test_equal_to_one_worker(
    pattern: IntervalPattern, events: pa.Table, key: str | None, columns: list[str] | None, least: int
) -> None:
    """Whatever the negations, with equal events, with a key and without one."""
    given_ = arguments(pattern, events.schema, key=key, columns=columns)
    one, two = found_by_one_and_by_two(events, pattern, least=least, **given_)
    note(f"one {one[0][0].to_pylist()}\ntwo {two[0][0].to_pylist()}")
    assert two == one


@share(20)
@given(pattern=windowed(), events=tables(most=24), width=st.integers(1, 12), columns=st.sampled_from([None, ["n"]]))
def test_slices_of_one_width(
    pattern: IntervalPattern, events: pa.Table, width: int, columns: list[str] | None
) -> None:
    """Slices as Spark makes them, several of them in one matcher."""
    given_ = arguments(pattern, events.schema, columns=columns)
    request, engine = request_of(pattern, **given_), DuckDbEngine()
    plans = plans_in_process(events.schema, request, engine)
    slices = FAMILY.time_slices(plans, settled=True)
    assume(isinstance(slices, TimeSlices))
    assert isinstance(slices, TimeSlices)
    compiled = FAMILY.compile(plans)
    whole = join([*batches_as_they_come(timed(events, request), plans, None, engine)])
    expected = found(FAMILY.finite(compiled, None), [whole])
    assert found(FAMILY.sliced(compiled, width * SECOND, None), [in_slices(whole, slices, width * SECOND)]) == expected


@share(5)
@given(events=tables(most=24), pattern=windowed(), least=st.integers(1, 6), key=st.sampled_from([None, "u"]))
def test_several_patterns(events: pa.Table, pattern: IntervalPattern, least: int, key: str | None) -> None:
    """Each pattern has slices of its own."""
    other = IntervalPattern.pal(a="A", b="B").relate("a", ["before", "meets"], "b").within("5 seconds")
    several = {"one": pattern, "other": other.taxonomy("type")}
    given_ = arguments(several, events.schema, key=key)
    one, two = found_by_one_and_by_two(events, several, least=least, **given_)
    assert two == one


def chain(count: int) -> pa.Table:
    """Events of three users, one a second, that overlap the next ones."""
    return table([("AB"[n % 2], n, n + n % 5, f"e{n}", "xyz"[n % 3]) for n in range(count)])


OVERLAPS = "EVENT PAL(A a overlap B b) WITHIN 10 seconds"


@pytest.mark.parametrize("key", [None, "user"])
def test_detect(key: str | None) -> None:
    """`detect` has the same result and the same report with one worker and with two."""
    events, reports = chain(300), [Report(), Report()]
    one, two = (
        detect(events, interval_pattern(OVERLAPS), key=key, workers=workers, report=report, **NAMES)
        for workers, report in zip((1, 2), reports, strict=True)
    )
    assert len(one) > 20
    assert two.equals(one)
    assert reports[0].counts == reports[1].counts


def test_a_key_needs_no_window() -> None:
    """With a key, patterns without `within` are divided by key alone."""
    pattern = interval_pattern("EVENT SEQ(A a, B b)")
    one, two = (detect(chain(60), pattern, key="user", workers=workers, **NAMES) for workers in (1, 2))
    assert two.equals(one)


def test_failures() -> None:
    """A condition that fails, and a limit that is exceeded, are the errors of one worker."""
    fails = interval_pattern(f"{OVERLAPS.removesuffix(' WITHIN 10 seconds')} WHERE 1 / (length(a.id) - 2) > b.n WITHIN 10 seconds")
    for pattern, options, error in (
        (fails, {}, ConditionError),
    ):
        messages = []
        for workers in (1, 2):
            with pytest.raises(error) as raised:
                detect(chain(60).append_column("n", pa.array(np.arange(60))), pattern, workers=workers, **NAMES, **options)
            messages.append(str(raised.value))
        assert messages[0] == messages[1]


# What can be divided


def by_time(text: str, **options: Any) -> str:
    plans = plans_in_process(
        table([]).schema, request_of(interval_pattern(text), **NAMES, **options), DuckDbEngine()
    )
    return slices_text(plans.only)
