"""Interval patterns in finite input that ends at a time: `as_of`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from warnings import catch_warnings

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from tests.intervals.events import EVENTS, NAMES, Row, found, interval_pattern, matcher, table
from tests.intervals.strategies import forbidding_patterns, patterns
from tests.searching import share

from cepheid.detect import detect
from cepheid.errors import PatternError
from cepheid.intervals import IntervalPattern
from cepheid.lang.consistency import Consistency, End
from cepheid.plan.intervals.growth import never_certain
from cepheid.requests.report import Report

GAP = "EVENT PAL((A a overlap B b) (!D d gap) before C c) WITHIN 10 seconds"
THEN_NO_D = "EVENT PAL(A a, !D d) WITHIN 10 seconds"


def at(second: int) -> str:
    return f"1970-01-01T00:00:{second:02}Z"


@pytest.mark.parametrize(("second", "expected"), [(8, []), (9, [("a1", "b1", "c1")]), (59, [("a1", "b1", "c1")])])
def test_events_count_once_they_have_ended(second: int, expected: list[tuple[str, ...]]) -> None:
    """A match is there when its last event has ended. Events that end later are not read."""
    report = Report()
    assert found(GAP, EVENTS, as_of=at(second), report=report) == expected
    assert report.counts.events == sum(end <= second for _, _, end, _ in EVENTS)


def test_a_match_waits_for_a_negation_after_its_last_event() -> None:
    """It is certain when the window after its start has passed; `REALTIME 1` gives what holds so far."""
    rows: list[Row] = [("A", 1, 4, "a1"), ("D", 7, 12, "d1"), ("A", 9, 10, "a2")]
    real_time = f"{THEN_NO_D} REALTIME 1"
    wanted: dict[int, tuple[list[tuple[str, ...]], list[tuple[str, ...]]]] = {
        4: ([], [("a1",)]),
        10: ([], [("a1",), ("a2",)]),
        11: ([("a1",)], [("a1",), ("a2",)]),
        12: ([("a1",)], [("a1",), ("a2",)]),
        19: ([("a1",), ("a2",)], [("a1",), ("a2",)]),
    }
    for second, (certain, so_far) in wanted.items():
        assert found(THEN_NO_D, rows, as_of=at(second)) == certain
        assert found(real_time, rows, as_of=at(second)) == so_far


@share(50)
@given(
    pattern=patterns() | forbidding_patterns(),
    rows=st.lists(
        st.tuples(st.sampled_from("AABBC"), st.integers(0, 20), st.sampled_from([0, 1, 2, 5, 9]), st.integers(0, 2)),
        min_size=2,
        max_size=9,
    ),
    second=st.integers(0, 40),
)
def test_it_is_what_a_live_matcher_has_emitted_by_then(
    pattern: IntervalPattern, rows: list[tuple[str, int, int, int]], second: int
) -> None:
    """A live matcher for events in the order of their ends, which are late by them, with the clock at that time."""
    pattern = _on_columns(pattern)
    assume(not never_certain(pattern, End.END))
    real_time = pattern.consistency is Consistency.REALTIME
    events = sorted(
        [(kind, start, start + length, f"e{n}", "xyz"[u]) for n, (kind, start, length, u) in enumerate(rows)],
        key=lambda row: row[2],
    )
    with catch_warnings(action="ignore"):
        try:
            live = matcher(pattern if real_time else pattern.emitting("earliest"), "0 seconds", late_by="end")
        except PatternError:  # it contradicts itself
            reject()
    emitted = [row for event in events if event[2] <= second for row in live.process(table([event])).to_pylist()]
    emitted += live.advance_time(f"1970-01-01T00:00:{second:02}.000001").to_pylist()
    left = {row["match_id"] for row in emitted} - {row["match_id"] for row in emitted if row["kind"] == "retraction"}
    with catch_warnings(action="ignore"):
        result = detect(table(events), pattern, as_of=at(second), **NAMES)
    assert set(result["match_id"].to_pylist()) == left


def _on_columns(pattern: IntervalPattern) -> IntervalPattern:
    """The pattern without conditions, whose columns these events do not have."""
    negations = tuple(replace(one, condition=None) for one in pattern.negations)
    return replace(pattern, condition=None, negations=negations).taxonomy("kind")


def test_what_is_never_certain_is_refused() -> None:
    """An event that starts between two others may end at any later time. In real time it does not matter."""
    message = r"the negation of 'd': an event with any later end may still forbid a match, so that no match is ever"
    with pytest.raises(PatternError, match=message) as caught:
        found(GAP.replace(" gap", ""), EVENTS, as_of=at(9))
    assert str(caught.value).endswith(
        "choose a scope that bounds them (gap, seq_between or during_span), or let the pattern emit in real time."
    )
    assert found(GAP.replace(" gap", "") + " REALTIME 1", EVENTS, as_of=at(9)) == [("a1", "b1", "c1")]
    with pytest.raises(PatternError, match=r"\(pattern 'x'\)|pattern 'x'"):
        detect(table(EVENTS), {"x": interval_pattern(GAP.replace(" gap", ""))}, as_of=at(9), **NAMES)


def test_workers_find_the_same() -> None:
    """Several processes, whole keys and slices of one."""
    rows = [(kind, 3 * n, 3 * n + n % 5, f"{kind}{n}") for n, kind in enumerate("ABDAACDABAAB" * 3)]
    options: dict[str, Any] = {"as_of": "1970-01-01T00:01:20Z"}
    alone = found(THEN_NO_D, rows, **options)
    assert 0 < len(alone) < len(found(THEN_NO_D, rows))
    assert found(THEN_NO_D, rows, workers=2, **options) == alone
