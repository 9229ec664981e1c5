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
from tests.hosts.workers import Found, found_by_one_and_by_two
from tests.intervals.events import NAMES, interval_pattern, table
from tests.intervals.strategies import SECOND, forbidding_patterns, patterns, tables
from tests.searching import share

from cepheid import ConditionError, Limits, PatternError, Report, detect
from cepheid.events.batch import join
from cepheid.families.intervals import Intervals
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import batches_as_they_come, plans_in_process
from cepheid.hosts.in_process.held_bits import HeldBits
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


@st.composite
def overlapping(draw: st.DrawFn) -> tuple[IntervalPattern, pa.Table]:
    """Patterns that C events forbid which may have started any time before, and events of which those of type C did."""
    pattern = IntervalPattern.pal(a="A", b="B").relate("a", ["before", "meets", "overlaps"], "b")
    ordered = draw(st.sampled_from(["start(a) < end(x), start(x) < end(b)", "end(x) = start(a)"]))
    by_order = draw(st.booleans())
    pattern = (
        pattern.without("x", "C", ordered=ordered)
        if by_order
        else pattern.without("x", "C", between=("a", "b"), scope="intersects_gap")
    )
    events = draw(tables(least=8, most=24))
    earlier = [
        start - timedelta(seconds=25) if kind == "C" else start
        for start, kind in zip(events["start"].to_pylist(), events["type"].to_pylist(), strict=True)
    ]
    place = events.schema.names.index("start")
    moved = events.set_column(place, "start", pa.array(earlier, events.schema.field("start").type))
    return pattern.within(f"{draw(st.integers(1, 9))} seconds").taxonomy("type"), moved


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
    note(f"one {one[0]}\ntwo {two[0]}")
    assert _rows(two) == _rows(one)


@share(10)
@given(given_=overlapping(), least=st.integers(1, 4))
def test_events_that_started_before(given_: tuple[IntervalPattern, pa.Table], least: int) -> None:
    """A slice has the events that end in it, however long they are."""
    pattern, events = given_
    one, two = found_by_one_and_by_two(events, pattern, least=least, time=("start", "end"))
    assert _rows(two) == _rows(one)


def _rows(found_: Found) -> tuple[list[Any], dict[str, int]]:
    """The rows, in their order, and the counts. Without relevant events there are no tables."""
    tables_, counts = found_
    return [table.to_pylist() for table in tables_ if len(table)], counts


@share(20)
@given(pattern=windowed(), events=tables(most=24), width=st.integers(1, 12), columns=st.sampled_from([None, ["n"]]))
def test_slices_of_one_width(pattern: IntervalPattern, events: pa.Table, width: int, columns: list[str] | None) -> None:
    """Slices as Spark makes them, several of them in one matcher."""
    given_ = arguments(pattern, events.schema, columns=columns)
    request, engine = request_of(pattern, **given_), DuckDbEngine()
    plans = plans_in_process(events.schema, request, engine)
    slices = FAMILY.time_slices(plans, settled=True)
    assume(isinstance(slices, TimeSlices))
    assert isinstance(slices, TimeSlices)
    compiled = FAMILY.compile(plans)
    whole = join([*batches_as_they_come(timed(events, request), plans, None, engine, HeldBits())])
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
    assert _rows(two) == _rows(one)


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
    """A condition that fails is the error of one worker."""
    fails = OVERLAPS.replace(" WITHIN", " WHERE 1 / (a.n - 24) > b.n WITHIN")
    events, messages = chain(60).append_column("n", pa.array(np.arange(60))), []
    for workers in (1, 2):
        with pytest.raises(ConditionError, match="division by zero") as raised:
            detect(events, interval_pattern(fails), workers=workers, **NAMES)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


# What can be divided


def by_time(text: str, **options: Any) -> str:
    plans = plans_in_process(chain(1).schema, request_of(interval_pattern(text), **NAMES, **options), DuckDbEngine())
    return slices_text(plans.only)


@pytest.mark.parametrize(
    "text",
    [
        OVERLAPS,
        "EVENT SEQ(A a, !D d, B b) WITHIN 10 seconds",
        "EVENT PAL(A a, (!D d during_span), B b) WITHIN 10 seconds",
        "EVENT PAL(A a, (!D d start_between), B b) WITHIN 10 seconds",
    ],
)
def test_a_window_allows_slices(text: str) -> None:
    """Negations may look at what starts around a match."""
    assert by_time(text) == (
        "by time: finite input can, in process and on Spark (without a key, or with slices=True), because a match and "
        "what forbids it start within 10 seconds"
    )


def test_long_events_need_to_be_known() -> None:
    """Spark does not know beforehand how long the events are."""
    assert by_time("EVENT PAL(A a, (!D d intersects_gap), B b) WITHIN 10 seconds") == (
        "by time: finite input can in process; not on Spark, because the negation of 'd' looks at events that started "
        "any time before"
    )


EARLIER = "the negation of 'd' looks at events of any earlier time"
LATER = "the negation of 'd' looks at events of any later time"


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("EVENT PAL(A a, B b)", {}, "without within, a match may end at any later time"),
        ("EVENT PAL(A a, !D d, B b)", {}, "without within, a match may end at any later time"),
        (OVERLAPS.replace("10 seconds", "9999 weeks"), {}, None),
        (
            "EVENT PAL(A a, (!D d during_span), B b) WITHIN 10 seconds OF STARTS",
            {},
            "the negation of 'd' looks at events up to the end of a match, of any later time",
        ),
        (OVERLAPS.replace("10 seconds", "36525000 days"), {}, "within is longer than any time between events"),
        (OVERLAPS, {"limits": Limits(on_limit="drop")}, "on_limit='drop' counts the matches of all starts together"),
    ],
)
def test_what_forbids_slices(text: str, options: dict[str, Any], reason: str | None) -> None:
    """The reason names the clause."""
    found_ = by_time(text, **options)
    assert found_.startswith("by time: finite") if reason is None else found_ == f"by time: cannot, because {reason}"


def test_unbounded_negations_forbid_slices() -> None:
    """A negation needs a bound on both sides."""
    pattern = IntervalPattern.pal(a="A", b="B").within("10 seconds").taxonomy("kind")
    for ordered, reason in (("end(d) <= start(a)", EARLIER), ("end(b) <= start(d)", LATER)):
        with pytest.raises(PatternError) as raised:
            detect(chain(9), pattern.without("d", "D", ordered=ordered), workers=2, **NAMES)
        assert str(raised.value) == (
            "workers: without a key, events are divided into time slices, which is not possible here: "
            f"{reason}. Give a key, or leave out workers"
        )


def test_all_ways_are_explained() -> None:
    """One line a way, for each why it fits or why not."""
    plans = plans_in_process(chain(1).schema, request_of(interval_pattern(OVERLAPS), **NAMES), DuckDbEngine())
    assert FAMILY.explain(plans.only.pattern, plans.only).text.endswith(
        "Dividing one key by a value: cannot, because intervals are divided by key and by time only\n"
        "Dividing one key by start: cannot, because intervals have no partial matches: each event is joined with those "
        "stored before\n"
        f"Dividing one key {by_time(OVERLAPS)}\n"
    )
