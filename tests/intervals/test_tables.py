"""Interval patterns in whole tables."""

from __future__ import annotations

import re
import warnings

import pandas as pd
import pytest
from tests.intervals.events import EVENTS, NAMES, PAPER, Row, found, interval_pattern, matcher, shown, table

from cepheid.detect import detect
from cepheid.errors import CepheidWarning, ConditionError, EventError, LimitExceeded, MatcherFailed
from cepheid.matchers.counts import IntervalCounts, IntervalMatcherCounts
from cepheid.plan.limits import Limits
from cepheid.requests.report import Report


def test_a_table_of_events() -> None:
    """All matches are found, whatever the order of the rows; the negated event starts between the two parts."""
    assert found(PAPER, EVENTS) == []
    assert found(PAPER, [e for e in EVENTS if e[0] != "D"][::-1]) == [("a1", "b1", "c1")]


def test_a_window_of_starts() -> None:
    """With `OF STARTS` the starts are within the window, however long the events are."""
    events: list[Row] = [("A", 0, 90, "a1"), ("B", 10, 95, "b1"), ("B", 11, 12, "b2")]
    assert found("EVENT PAL(A a, B b) WITHIN 10 seconds OF STARTS", events) == [("a1", "b1")]
    assert found("EVENT PAL(A a, B b) WITHIN 90 seconds", events) == [("a1", "b2")]


def test_the_columns_of_matches() -> None:
    """An id, the key, the start and end of the match, and a struct per variable, in the same kind of table as the
    input.
    """
    frame = table([(*e, "u") for e in EVENTS[:3]]).to_pandas()
    pattern = interval_pattern("EVENT PAL((A a overlap B b) before C c)")
    matches = detect(frame, pattern, key="user", columns=["id"], **NAMES)
    assert isinstance(matches, pd.DataFrame)
    assert list(matches.columns) == ["match_id", "user", "match_start", "match_end", "detected_at", "a", "b", "c"]
    assert matches.iloc[0].tolist()[1:] == [
        "u",
        pd.Timestamp(1, unit="s", tz="UTC"),
        pd.Timestamp(9, unit="s", tz="UTC"),
        pd.Timestamp(9, unit="s", tz="UTC"),
        {"id": "a1"},
        {"id": "b1"},
        {"id": "c1"},
    ]


ALLEN = {
    "before": (25, 30),
    "after": (0, 5),
    "meet": (20, 30),
    "met_by": (0, 10),
    "overlap": (15, 25),
    "overlapped_by": (5, 15),
    "start": (10, 30),
    "started_by": (10, 15),
    "during": (5, 25),
    "contain": (12, 18),
    "finish": (0, 20),
    "finished_by": (15, 20),
    "equal": (10, 20),
}
"""How a from 10 to 20 lies to b."""
STANDARD = {"meets": "meet", "overlaps": "overlap", "starts": "start", "contains": "contain"} | {
    "finishes": "finish",
    "equals": "equal",
}


@pytest.mark.parametrize("name", [*ALLEN, *STANDARD])
def test_relations(name: str) -> None:
    """Each of the possible locations of two intervals is exactly one relation, under both of its names."""
    events = [("A", 10, 20, "a"), *(("B", start, end, relation) for relation, (start, end) in ALLEN.items())]
    for text in (f"EVENT PAL(A a {name} B b)", f"EVENT PAL(A a, B b) RELATE a {name} b"):
        assert found(text, events) == [("a", STANDARD.get(name, name))]


def test_events_of_different_keys_do_not_interact() -> None:
    """Events of different keys are neither matched nor negated together."""
    events = [("A", 0, 2, "a1", "x"), ("B", 5, 6, "b1", "y"), ("A", 1, 3, "a2", "y"), ("D", 4, 4, "d1", "x")]
    assert found("EVENT SEQ(A a, !D d, B b)", events, key="user") == [("a2", "b1")]


def test_an_event_has_all_types_above_its_own() -> None:
    """An event also has the types above its own in the taxonomy."""
    events = [("card", 0, 1, "c1"), ("wire", 2, 3, "w1"), ("note", 4, 5, "n1")]
    kinds = {"card": "payment", "wire": "payment", "note": []}
    pattern = "EVENT SEQ(payment a, payment b)"
    assert found(pattern, events, kinds=kinds) == [("c1", "w1")]


def test_times_in_conditions() -> None:
    """`start(a)` and `end(a)` are timestamps."""
    events = [("A", 0, 2, "a1"), ("B", 5, 6, "b1"), ("B", 9, 9, "b2")]
    assert found("EVENT PAL(A a before B b) WHERE start(b) - end(a) < INTERVAL 5 SECONDS", events) == [("a1", "b1")]


def test_events_that_are_no_intervals() -> None:
    """Events without key or times, and those that end before they start, are an error, or dropped and counted."""
    events = [("A", 0, 2, "a1", "x"), ("A", 3, 2, "a2", "x"), ("A", None, 2, "a3", "x"), ("A", 1, 2, "a4")]
    with pytest.raises(EventError) as raised:
        found("EVENT PAL(A a)", events, key="user")
    assert str(raised.value) == (
        "events that cannot be ordered: 1 with a NULL in the key (user) in row 3, counted from 0; 1 without a time "
        "(begins or ends) in row 2, counted from 0; 1 that ends before it starts ('ends' is before 'begins') in row 1, "
        "counted from 0. "
        'Drop them before, or with nulls="drop", which counts them in the report'
    )
    with pytest.warns(
        CepheidWarning,
        match="dropped: 1 event without key and 1 event without time and 1 event that ends before it starts",
    ):
        assert found("EVENT PAL(A a)", events, key="user", nulls="drop") == [("a1",)]
    report = Report()
    found("EVENT PAL(A a)", events, key="user", nulls="drop", report=report)
    assert report.counts == IntervalCounts(4, null_keys=1, null_times=1, reversed=1, matches=1)
    live = matcher("EVENT PAL(A a) WITHIN 1 hour", key="user", nulls="drop")
    live.process(table(events))
    assert live.counts == IntervalMatcherCounts(4, null_keys=1, null_times=1, reversed=1, open_matches=1, held=1)


def test_a_time_that_is_a_placeholder() -> None:
    """A start or end too far away for a deadline to be computed is an error, and the state does not change."""
    for event in (("B", 2, 2**63 // 1_000_000 - 1, "far"), ("B", -(2**63) // 1_000_000 + 1, 3, "far")):
        events = [("A", 0, 1, "a"), ("B", 2, 3, "b")]
        with pytest.raises(EventError, match="further than 100,000 years from 1970: is it a placeholder"):
            found("EVENT PAL(A a before B b)", [*events, event])
        live = matcher("EVENT PAL(A a before B b)", None)
        with pytest.raises(EventError, match="further than 100,000 years from 1970"):
            live.process(table([event]))
        live.process(table(events))
        assert live.counts.late == 0
        assert live.finish().num_rows == 1


def test_a_condition_that_fails() -> None:
    """The error is that of SQL; afterwards the matcher cannot be used."""
    pattern = "EVENT PAL(A a, B b) WHERE 1 / (length(a.id) - length(b.id)) > 0"
    events = [("A", 0, 2, "a1"), ("B", 5, 6, "b1")]
    message = "division by zero in the condition (1 / (length(a.id) - length(b.id)) > 0)"
    with pytest.raises(ConditionError, match=re.escape(message)):
        found(pattern, events)
    with pytest.raises(ConditionError, match=r", at a \(.*id = 'a1'.*\), b \(.*id = 'b1'"):
        found(pattern, events)
    negated = "EVENT PAL(A a, (!B d intersects_gap WHERE 1 / (length(a.id) - length(d.id)) > 0), B b)"
    message = "the condition of the negation of 'd' (1 / (length(a.id) - length(d.id)) > 0)"
    with pytest.raises(ConditionError, match=re.escape(message)):
        found(negated, [*events, ("B", 3, 4, "b2")])
    alone = "EVENT PAL(A a) WHERE 1 / (length(a.id) - 2) > 0"
    with pytest.raises(
        ConditionError,
        match=r"division by zero in '1 / \(length\(a.id\) - 2\) > 0' \(where\), at the event with .*'a1'",
    ):
        found(alone, events)
    live = matcher(pattern, lateness=None)
    with pytest.raises(ConditionError):
        live.process(table(events))
    with pytest.raises(
        MatcherFailed, match="failed half-way in an earlier call, with ConditionError: division by zero"
    ):
        live.finish()


def test_what_can_fail_is_evaluated_only_where_sql_evaluates_it() -> None:
    """A division is evaluated only where the times fit and the earlier conditions are true."""
    events = [("A", 0, 2, "a1"), ("B", 5, 6, "b1"), ("B", 1, 3, "b22")]
    apart = "EVENT PAL(A a overlap B b) WHERE 1 / (length(a.id) - length(b.id)) < 0"
    assert found(apart, events) == [("a1", "b22")]


def test_a_limit() -> None:
    """An event that completes more matches than the limit is an error."""
    events = [("A", i, i + 1, f"a{i}") for i in range(20)] + [("B", 50, 51, "b1")]
    with pytest.raises(LimitExceeded, match=r"an event completes more than 10 matches \(max_matches_per_event\)"):
        found("EVENT PAL(A a before B b)", events, limits=Limits(max_matches_per_event=10))


def test_matches_over_a_limit_can_be_dropped() -> None:
    """The matches with the earliest start are dropped and counted, also where more are found than the first table can
    hold.
    """
    for count, most in ((20, 10), (5000, 3), (3, 3)):
        events = [("A", i, i + 1, f"a{i}") for i in range(count)] + [("B", 6000, 6001, "b1")]
        limits, report = Limits(max_matches_per_event=most, on_limit="drop"), Report()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            left = found("EVENT PAL(A a before B b)", events, limits=limits, report=report)
        assert left == [(f"a{i}", "b1") for i in range(count - most, count)]
        assert (report.counts.matches, report.counts.dropped_matches) == (most, count - most)
    few = "EVENT PAL(A a before B b) WITHIN 1 hour REALTIME 1"
    live = matcher(few, lateness="2 hours", limits=Limits(None, 1, "drop"))
    rows = live.process(table([("A", 0, 1, "a0"), ("A", 2, 3, "a1"), ("B", 5, 6, "b0")]))
    assert (shown(rows), live.counts.dropped_matches) == (["+a1,b0"], 1)
    again = matcher(few, lateness="2 hours", limits=Limits(None, 1, "drop"))
    again.restore(live.snapshot())
    assert again.counts == live.counts


def test_many_matches_of_one_event() -> None:
    """The table of matches grows to hold all matches of one event."""
    events = [("A", i, i, f"a{i}") for i in range(120)] + [("C", 500, 501, "c1")]
    assert len(found("EVENT PAL((A a before A b) before C c)", events)) == 120 * 119 // 2
