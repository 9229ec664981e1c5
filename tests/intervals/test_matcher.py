"""Interval patterns through the public calls: whole tables, and events that go on coming."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tests.intervals.running import ENGINE, batch_of
from tests.intervals.strategies import SECOND

from cepheid.compile.interval import compile_intervals
from cepheid.detect import detect
from cepheid.errors import (
    CepheidWarning,
    ConditionError,
    EventError,
    LimitExceeded,
    MatcherFailed,
    PatternError,
    SchemaError,
    SnapshotError,
)
from cepheid.hosts.interval_counts import IntervalCounts, IntervalMatcherCounts
from cepheid.hosts.request import Report
from cepheid.intervals import IntervalMatcher, IntervalPattern, interval_pattern
from cepheid.lang.interval_values import End
from cepheid.live_intervals import LiveIntervalMatcher
from cepheid.plan.interval_build import build_interval_plan
from cepheid.plan.interval_plan import IntervalSchema
from cepheid.plan.limits import Limits

Row = tuple[Any, ...]
TIMES = pa.timestamp("us", "UTC")
NAMES: dict[str, Any] = {"start": "begins", "end": "ends", "type": "kind"}
PAPER = "EVENT PAL((A a overlap B b) (!D d) before C c) WITHIN 10 seconds"
EVENTS: list[Row] = [
    ("A", 1, 4, "a1"),
    ("B", 3, 6, "b1"),
    ("C", 8, 9, "c1"),
    ("D", 5, 12, "d1"),
    ("A", 30, 31, "z1"),
]


def table(events: Iterable[Row]) -> pa.Table:
    """Events as (type, start, end, id) and, if they have it, user; times in seconds."""
    rows = [(*event, None)[:5] for event in events]
    kinds, starts, ends, ids, users = zip(*rows, strict=True)
    return pa.table(
        {
            "kind": pa.array(kinds, pa.string()),
            "begins": pa.array([None if s is None else s * 1_000_000 for s in starts], TIMES),
            "ends": pa.array([None if e is None else e * 1_000_000 for e in ends], TIMES),
            "id": pa.array(ids, pa.string()),
            "user": pa.array(users, pa.string()),
        }
    )


def matcher(pattern: str | IntervalPattern = PAPER, delay: str | None = "8 seconds", **options: Any) -> IntervalMatcher:
    return IntervalMatcher(pattern, table(EVENTS).schema, delay=delay, **(NAMES | options))


def found(pattern: str, events: Iterable[Row], **options: Any) -> list[tuple[str, ...]]:
    asked = interval_pattern(pattern)
    matches = detect(table(events), asked, **(NAMES | options))
    variables = [p.variable for p in asked.positives]
    return [tuple(row[v]["id"] for v in variables) for row in matches.to_pylist()]


def test_rows_say_when_they_were_told() -> None:
    """A match is detected when the clock is at the end of the event that completes it, and taken back likewise."""
    told = matcher(f"{PAPER} REALTIME 1").process(table(EVENTS[:4])).to_pylist()
    assert [(row["kind"], row["detected_at"].timestamp()) for row in told] == [("insertion", 9), ("retraction", 12)]
    (alone,) = matcher("EVENT PAL(A a) WITHIN 1 hour REALTIME 1").process(table(EVENTS[:1])).to_pylist()
    assert alone["detected_at"].timestamp() == 4


def shown(rows: pa.Table) -> list[str]:
    """+a1,b1,c1 and -a1,b1,c1; what is late as it is."""
    signs = {"insertion": "+", "retraction": "-"}
    variables = [name for name in rows.schema.names if len(name) == 1]
    return [
        row["event"]["id"] + " late"
        if row["kind"] == "late"
        else signs[row["kind"]] + ",".join(row[v]["id"] for v in variables)
        for row in rows.to_pylist()
    ]


# Whole tables


def test_a_table_of_events() -> None:
    """All matches, whatever the order of the rows; the negated event starts between the two parts."""
    assert found(PAPER, EVENTS) == []
    assert found(PAPER, [e for e in EVENTS if e[0] != "D"][::-1]) == [("a1", "b1", "c1")]


def test_the_columns_of_matches() -> None:
    """An id, the key, when the match starts and ends, and a struct per variable, in the kind of table that came."""
    frame = table([(*e, "u") for e in EVENTS[:3]]).to_pandas()
    pattern = interval_pattern("EVENT PAL((A a overlap B b) before C c)")
    matches = detect(frame, pattern, key="user", columns=["id"], **NAMES)
    assert isinstance(matches, pd.DataFrame)
    assert list(matches.columns) == ["match_id", "user", "match_start", "match_end", "a", "b", "c"]
    assert matches.iloc[0].tolist()[1:] == [
        "u",
        pd.Timestamp(1, unit="s", tz="UTC"),
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
    """Of all ways in which two intervals can lie to each other, each relation is one, under both of its names."""
    events = [("A", 10, 20, "a"), *(("B", start, end, relation) for relation, (start, end) in ALLEN.items())]
    for text in (f"EVENT PAL(A a {name} B b)", f"EVENT PAL(A a, B b) RELATE a {name} b"):
        assert found(text, events) == [("a", STANDARD.get(name, name))]


def test_events_of_different_keys_have_nothing_to_do_with_each_other() -> None:
    """Neither in matches nor in negations."""
    events = [("A", 0, 2, "a1", "x"), ("B", 5, 6, "b1", "y"), ("A", 1, 3, "a2", "y"), ("D", 4, 4, "d1", "x")]
    assert found("EVENT SEQ(A a, !D d, B b)", events, key="user") == [("a2", "b1")]


def test_an_event_is_of_all_types_that_its_type_is_a_kind_of() -> None:
    """A taxonomy says which."""
    events = [("card", 0, 1, "c1"), ("wire", 2, 3, "w1"), ("note", 4, 5, "n1")]
    kinds = {"card": "payment", "wire": "payment", "note": []}
    pattern = "EVENT SEQ(payment a, payment b)"
    assert found(pattern, events, kinds=kinds) == [("c1", "w1")]


def test_times_in_conditions() -> None:
    """start(a) and end(a) are timestamps."""
    events = [("A", 0, 2, "a1"), ("B", 5, 6, "b1"), ("B", 9, 9, "b2")]
    assert found("EVENT PAL(A a before B b) WHERE start(b) - end(a) < INTERVAL 5 SECONDS", events) == [("a1", "b1")]


def test_events_that_are_no_intervals() -> None:
    """Those without key or times, and those that end before they start, are an error or counted."""
    events = [("A", 0, 2, "a1", "x"), ("A", 3, 2, "a2", "x"), ("A", None, 2, "a3", "x"), ("A", 1, 2, "a4")]
    with pytest.raises(EventError) as raised:
        found("EVENT PAL(A a)", events, key="user")
    assert str(raised.value) == (
        "events that are no intervals: 1 with a NULL in the key (user), 1 without begins or ends, "
        '1 with ends before begins. Mend or drop them before, or give nulls="drop", which counts them'
    )
    with pytest.warns(
        CepheidWarning,
        match="1 events without key and 1 without time and 1 that end before they start were dropped",
    ):
        assert found("EVENT PAL(A a)", events, key="user", nulls="drop") == [("a1",)]
    report = Report()
    found("EVENT PAL(A a)", events, key="user", nulls="drop", report=report)
    assert report.counts == IntervalCounts(4, null_keys=1, null_times=1, reversed=1, matches=1)
    live = matcher("EVENT PAL(A a) WITHIN 1 hour", key="user", nulls="drop")
    live.process(table(events))
    assert live.counts == IntervalMatcherCounts(4, null_keys=1, null_times=1, reversed=1, open_matches=1, held=1)


def test_a_time_that_is_a_placeholder() -> None:
    """A start or end further away than any deadline can be told from is an error, and changes nothing."""
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
    """As SQL fails; and the matcher is of no use then."""
    pattern = "EVENT PAL(A a, B b) WHERE 1 / (length(a.id) - length(b.id)) > 0"
    events = [("A", 0, 2, "a1"), ("B", 5, 6, "b1")]
    told = "pattern 'pattern': division by zero in the condition (1 / (length(a.id) - length(b.id)) > 0)"
    with pytest.raises(ConditionError, match=re.escape(told)):
        found(pattern, events)
    negated = "EVENT PAL(A a, (!B d intersects_gap WHERE 1 / (length(a.id) - length(d.id)) > 0), B b)"
    told = "the condition of the negation of 'd' (1 / (length(a.id) - length(d.id)) > 0)"
    with pytest.raises(ConditionError, match=re.escape(told)):
        found(negated, [*events, ("B", 3, 4, "b2")])
    alone = "EVENT PAL(A a) WHERE 1 / (length(a.id) - 2) > 0"
    with pytest.raises(ConditionError, match=r"pattern 'pattern': division by zero in .* AND \(1 / \(length"):
        found(alone, events)
    live = matcher(pattern, delay=None)
    with pytest.raises(ConditionError):
        live.process(table(events))
    with pytest.raises(MatcherFailed, match="has failed half-way before, with ConditionError: division by zero"):
        live.finish()


def test_what_can_fail_is_asked_of_nothing_else_than_sql_asks_it() -> None:
    """A division is only computed where the times fit and what is asked before it is true."""
    events = [("A", 0, 2, "a1"), ("B", 5, 6, "b1"), ("B", 1, 3, "b22")]
    apart = "EVENT PAL(A a overlap B b) WHERE 1 / (length(a.id) - length(b.id)) < 0"
    assert found(apart, events) == [("a1", "b22")]


def test_a_limit() -> None:
    """More matches than one event may complete."""
    events = [("A", i, i + 1, f"a{i}") for i in range(20)] + [("B", 50, 51, "b1")]
    with pytest.raises(LimitExceeded, match=r"an event completes more than 10 matches \(max_matches_per_event\)"):
        found("EVENT PAL(A a before B b)", events, limits=Limits(max_matches_per_event=10))


def test_matches_over_a_limit_can_be_dropped() -> None:
    """Those with the earliest start, and they are counted; also where there is no room for so many as are found."""
    for count, most in ((20, 10), (5000, 3), (3, 3)):
        events = [("A", i, i + 1, f"a{i}") for i in range(count)] + [("B", 6000, 6001, "b1")]
        limits, report = Limits(max_matches_per_event=most, on_limit="drop"), Report()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            left = found("EVENT PAL(A a before B b)", events, limits=limits, report=report)
        assert left == [(f"a{i}", "b1") for i in range(count - most, count)]
        assert (report.counts.matches, report.counts.dropped_matches) == (most, count - most)
    few = "EVENT PAL(A a before B b) WITHIN 1 hour REALTIME 1"
    live = matcher(few, delay="2 hours", limits=Limits(None, 1, "drop"))
    rows = live.process(table([("A", 0, 1, "a0"), ("A", 2, 3, "a1"), ("B", 5, 6, "b0")]))
    assert (shown(rows), live.counts.dropped_matches) == (["+a1,b0"], 1)
    again = matcher(few, delay="2 hours", limits=Limits(None, 1, "drop"))
    again.restore(live.snapshot())
    assert again.counts == live.counts


def test_many_matches_of_one_event() -> None:
    """Room is made for as many as there are."""
    events = [("A", i, i, f"a{i}") for i in range(120)] + [("C", 500, 501, "c1")]
    assert len(found("EVENT PAL((A a before A b) before C c)", events)) == 120 * 119 // 2


# Events that go on coming


def test_real_time_takes_back_what_was_wrong() -> None:
    """A retraction has the id of the insertion; a long negated event comes after the match that it forbids."""
    live = matcher(f"{PAPER} REALTIME 1")
    before = live.process(table(EVENTS[:3]))
    after = live.process(table(EVENTS[3:4]))
    assert (shown(before), shown(after)) == (["+a1,b1,c1"], ["-a1,b1,c1"])
    assert before.column("match_id") == after.column("match_id")
    assert shown(live.finish()) == []


def test_conservative_output_is_never_taken_back() -> None:
    """Matches wait until no event that is not late can forbid them; with CONSISTENCY earliest no longer than that."""
    for consistency, told in (("earliest", []), ("conservative", [])):
        live = matcher(f"{PAPER} CONSISTENCY {consistency}")
        assert shown(live.process(table(EVENTS))) == told
    quiet = [e for e in EVENTS if e[0] != "D"]
    # c1 starts at 8 and ends at 9: with the clock at 17 no event from before 9 comes any more, at 18 none up to 9.
    for consistency, clock in (("earliest", 16), ("conservative", 18)):
        live = matcher(f"{PAPER} CONSISTENCY {consistency}")
        told = shown(live.process(table(quiet[:3])))
        assert (told, shown(live.advance_time(f"1970-01-01T00:00:{clock - 1}"))) == ([], [])
        assert shown(live.advance_time(f"1970-01-01T00:00:{clock}")) == ["+a1,b1,c1"]


def test_late_events_are_told_and_not_matched() -> None:
    """Exactly the delay behind the clock is in time."""
    live = matcher("EVENT PAL(A a before C c) WITHIN 1 hour CONSISTENCY earliest", delay="5 seconds")
    assert shown(live.process(table([("C", 8, 10, "c1")]))) == []
    assert shown(live.process(table([("A", 4, 6, "a2"), ("A", 5, 6, "a1")]))) == ["a2 late", "+a1,c1"]
    assert live.counts.late == 1
    by_end = matcher("EVENT PAL(A a before C c) WITHIN 1 hour CONSISTENCY earliest", delay="5 seconds", lateness="end")
    assert shown(by_end.process(table([("C", 8, 10, "c1")]))) == []
    assert shown(by_end.process(table([("A", 4, 6, "a2"), ("A", 1, 4, "a3")]))) == ["a3 late", "+a2,c1"]


def test_the_events_of_a_call_are_a_set() -> None:
    """They come in the order of their ends, so that it does not matter in which order the rows are."""
    events = [("A", 1, 4, "a1"), ("A", 1, 4, "a2"), ("B", 3, 6, "b1"), ("C", 18, 19, "c1"), ("C", 18, 19, "c1")]
    first, *others = ([events[i] for i in order] for order in permutations(range(len(events))))
    told = matcher("EVENT PAL((A a overlap B b) before C c) WITHIN 1 hour REALTIME 1").process(table(first))
    assert sorted(shown(told)) == ["+a1,b1,c1"] * 2 + ["+a2,b1,c1"] * 2
    for rows in others:
        live = matcher("EVENT PAL((A a overlap B b) before C c) WITHIN 1 hour REALTIME 1")
        assert live.process(table(rows)) == told


def test_a_late_event_does_not_move_the_clock() -> None:
    """However late it ends."""
    live = matcher("EVENT PAL(A a before C c) WITHIN 1 hour CONSISTENCY earliest", delay="5 seconds")
    live.process(table([("C", 8, 10, "c1")]))
    assert shown(live.process(table([("A", 4, 1000, "a1")]))) == ["a1 late"]
    assert shown(live.process(table([("A", 5, 6, "a2")]))) == ["+a2,c1"]


@pytest.mark.parametrize("delay", ["8 seconds", None])
def test_behind_the_end(delay: str | None) -> None:
    """What comes after finish is late, with no time that made it so; also of a matcher that is restored."""
    live, again = (matcher(f"{PAPER} REALTIME 1", delay) for _ in range(2))
    live.process(table(EVENTS[:2]))
    assert shown(live.finish()) == []
    again.restore(live.snapshot())
    for ended in (live, again):
        (row,) = ended.process(table(EVENTS[2:3])).to_pylist()
        assert (row["kind"], row["event"]["id"], row["detected_at"]) == ("late", "c1", None)
        assert (shown(ended.advance_time("2024-05-01")), ended.counts.late) == ([], 1)


def test_consistency_can_be_changed_while_it_runs() -> None:
    """To real time: what holds for now is told at once. Back: nothing new is told before it is final."""
    live = matcher(PAPER)
    assert shown(live.process(table(EVENTS[:3]))) == []
    assert shown(live.switch("realtime")) == ["+a1,b1,c1"]
    assert shown(live.switch("conservative")) == []
    assert shown(live.process(table(EVENTS[3:4]))) == ["-a1,b1,c1"]


def test_a_snapshot_goes_on() -> None:
    """Restored, a matcher tells what the other would have told; ids are the same."""
    one, other = (matcher(f"{PAPER} REALTIME 1") for _ in range(2))
    one.process(table(EVENTS[:3]))
    other.restore(one.snapshot())
    assert other.counts == one.counts
    assert other.process(table(EVENTS[3:])) == one.process(table(EVENTS[3:]))


def test_a_snapshot_of_another_pattern_is_refused() -> None:
    """As one of another delay, and one that is damaged; the consistency may be another."""
    data = matcher(f"{PAPER} REALTIME 1").snapshot()
    matcher(PAPER).restore(data)
    with pytest.raises(SnapshotError, match=r'interval pattern\[2\] was "WITHIN 10 seconds" and'):
        matcher("EVENT PAL((A a overlap B b) (!D d) before C c) WITHIN 9 seconds").restore(data)
    with pytest.raises(SnapshotError, match="delay was 8000000 and is 9000000"):
        matcher(delay="9 seconds").restore(data)
    with pytest.raises(SnapshotError, match="damaged"):
        matcher().restore(data[:-1] + b"x")


def test_what_no_match_can_be_about_is_forgotten() -> None:
    """Memory is that of the window and the delay; the logs of all tests of the engine hold with it."""
    live = matcher("EVENT PAL((A a overlap B b) before C c) WITHIN 10 seconds", delay="5 seconds")
    live.process(table([("ABC"[i % 3], i, i + 2, str(i)) for i in range(500)]))
    live.restore(live.snapshot())
    assert live.counts.held <= 20


def test_a_long_negated_event_is_kept_by_its_end() -> None:
    """intersects_gap: an event from long before the match forbids it, if it lasts."""
    live = matcher("EVENT PAL(A a, (!D d intersects_gap), C c) WITHIN 10 seconds", delay="30 seconds")
    live.process(table([("D", 0, 60, "d1")]))
    live.process(table([("A", 50, 52, "a1"), ("B", 75, 78, "b1")]))
    live.restore(live.snapshot())
    assert shown(live.process(table([("C", 58, 60, "c1")]))) == []
    assert shown(live.finish()) == []


def test_arguments_that_are_none() -> None:
    """A negative delay, another lateness, columns that are not there."""
    with pytest.raises(SchemaError, match="delay: a length of time must not be negative"):
        matcher(delay=pd.Timedelta(-1, "s"))  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="lateness is 'start' or 'end', got 'middle'"):
        matcher(lateness="middle")
    with pytest.raises(SchemaError, match="nulls: 'keep' is not one of 'error', 'drop'"):
        matcher(nulls="keep")
    with pytest.raises(PatternError, match="PAL or SEQ is expected"):
        matcher("EVENT OR(A)")
    with pytest.raises(SchemaError, match="events have no column 'id', which the matcher was made with"):
        matcher().process(table(EVENTS).drop_columns(["id"]))


def test_events_of_other_types() -> None:
    """As a Matcher, it takes a column in no other type than it was made for; an instant is the same in any zone."""
    live, events = matcher(columns="id"), table(EVENTS[:3])
    local, text = (events.column("begins").cast(type_) for type_ in (pa.timestamp("us"), pa.string()))
    wrong = events.set_column(1, "begins", local).set_column(3, "id", pa.array([1, 2, 3]))
    with pytest.raises(SchemaError) as raised:
        live.process(wrong)
    assert str(raised.value).splitlines() == [
        "column 'begins' is of type timestamp[us]; the matcher was made for timestamp[us, tz=UTC]",
        "column 'id' is of type int64; the matcher was made for string",
    ]
    with pytest.raises(SchemaError, match=r"column 'begins' is of type string; the matcher was made for timestamp"):
        live.process(events.set_column(1, "begins", text))
    with pytest.raises(SchemaError, match="two columns of the events are named 'id'"):
        live.process(events.append_column("id", events.column("id")))
    assert live.counts.events == 0
    tokyo = events.column("begins").cast(pa.timestamp("us", "Asia/Tokyo"))
    live.process(events.set_column(1, "begins", tokyo).drop_columns(["user"]))
    assert shown(live.finish()) == ["+a1,b1,c1"]


@pytest.mark.parametrize(("negation", "most"), [("", 1 << 10), ("(!D d gap), ", 1 << 11)])
def test_matches_that_are_over_need_no_room(negation: str, most: int) -> None:
    """There is room for few more rows than there are open matches, however many matches there were."""
    rows = table([("AB"[i % 2], i, i, str(i)) for i in range(3000)])
    pattern = f"EVENT PAL(A a, {negation}B b) RELATE a before b WITHIN 60 seconds REALTIME 1"
    schema = IntervalSchema(rows.schema, (), "begins", "ends")
    plan = build_interval_plan(interval_pattern(pattern).taxonomy("kind"), schema, ENGINE)
    live = LiveIntervalMatcher(compile_intervals(plan, delay=10 * SECOND, lateness=End.START))
    assert live.process(batch_of(plan, rows)).num_rows > 40_000
    assert live.open_matches < most // 2
    assert len(live.kernel.open.rows) <= most


@pytest.mark.parametrize("scope", ["start_between", "gap", "intersects_gap", "during_span"])
def test_late_negatives_of_many_keys(scope: str) -> None:
    """What is left of what is told in real time is what is found in all events, however many matches come and go."""
    random = Random(scope)
    rows: list[Row] = []
    for i in range(3000):
        kind, start = random.choice("AAABBBD"), i // 4 + random.randrange(12)
        length = random.randrange(20 if kind == "D" else 4)
        rows.append((kind, start, start + length, f"e{i}", random.choice("uvw")))
    pattern = f"EVENT PAL(A a, (!D d {scope}), B b) RELATE a before b WITHIN 12 seconds REALTIME 1"
    live = matcher(pattern, delay="60 seconds", key="user")
    calls = [live.process(table(rows[first : first + 20])) for first in range(0, len(rows), 20)]
    told = pa.concat_tables([*calls, live.finish()]).select(["kind", "match_id"]).to_pylist()
    left = Counter[str]()
    for row in told:
        left[row["match_id"]] += {"insertion": 1, "retraction": -1}[row["kind"]]
    expected = detect(table(rows), interval_pattern(pattern), key="user", **NAMES).column("match_id").to_pylist()
    assert sorted(left.elements()) == sorted(expected)
    assert min(left.values()) == 0
    assert live.counts.matches == len(expected) > 100
    assert len(told) > 2000 or scope in ("intersects_gap", "start_between")


UNCERTAIN = (
    "the negation of 'd': events that forbid a match may come however late by their ends, so that no match is ever "
    "certain\nEither let lateness be that of starts (lateness='start'), or choose a scope that bounds them (gap, "
    "seq_between or during_span), or let the pattern emit in real time."
)


def test_matches_that_would_never_be_certain() -> None:
    """They are refused, unless a match is told at once, or nothing is certain before the end anyhow."""
    with pytest.raises(PatternError) as raised:
        matcher(PAPER, lateness="end")
    assert str(raised.value) == UNCERTAIN
    with pytest.raises(PatternError, match="the negation of 'd': events that forbid a match may come however late"):
        matcher(f"{PAPER} CONSISTENCY earliest", lateness="end")
    matcher(PAPER, None, lateness="end")
    matcher(PAPER.replace("!D d", "!D d gap"), lateness="end")
    final = "the negation of 'd': events that forbid a match may come however late by their ends, so that no match is "
    with pytest.warns(CepheidWarning) as caught:
        live = matcher(f"{PAPER} REALTIME 1", lateness="end")
    (warning,) = caught
    assert str(warning.message).startswith(f"{final}ever final. Better choose a scope that bounds them")
    assert shown(live.process(table(EVENTS[:3]))) == ["+a1,b1,c1"]
    with pytest.raises(PatternError) as raised:
        live.switch("conservative")
    assert str(raised.value) == UNCERTAIN
    assert shown(live.process(table(EVENTS[3:4]))) == ["-a1,b1,c1"]


def test_what_a_matcher_keeps_for_ever_is_warned_of() -> None:
    """Once, where it is made, with what to do; its plan says it, too. With an unlimited delay all is kept anyhow."""
    grows = {
        "EVENT PAL(A a before B b)": "without within an interval pattern needs all its events for ever. Add within(…).",
        "EVENT PAL(A a) WITHOUT (D d ORDER end(d) < start(a)) WITHIN 1 hour": (
            "nothing bounds the negation of 'd', whose events are kept. Give it a scope."
        ),
    }
    for pattern, message in grows.items():
        with pytest.warns(CepheidWarning) as caught:
            live = matcher(pattern)
        assert [str(warning.message) for warning in caught] == [message]
        assert caught[0].filename == __file__
        assert live.explain().splitlines()[-1] == f"Warning: {message}"
        assert "Warning" not in matcher(pattern, None).explain()


def test_an_unlimited_delay() -> None:
    """With delay=None nothing is late, and what a later event may forbid waits for the end."""
    live = matcher(PAPER, delay=None)
    assert shown(live.process(table([EVENTS[4], *EVENTS[:3]]))) == []
    assert shown(live.finish()) == ["+a1,b1,c1"]


def test_the_plan_as_text() -> None:
    """Conditions on one event, on several, and the orders of joins with what they may cost."""
    text = matcher(
        f"{PAPER} REALTIME 1".replace("WITHIN", "WHERE a.user = b.user WITHIN"), frequencies={"C": 10}
    ).explain()
    assert text == (
        "Pattern 'pattern': intervals of\n"
        "  EVENT PAL((A a overlap B b) before C c)\n"
        "  WITHOUT (D d start_between(a, b | c))\n"
        "  WHERE a.user = b.user\n"
        "  WITHIN 10 seconds\n"
        "  REALTIME 1\n"
        "Types: column 'kind'\n"
        "Events:\n"
        "  a: `kind` IN ('A')\n"
        "  b: `kind` IN ('B')\n"
        "  c: `kind` IN ('C')\n"
        "  not d: `kind` IN ('D')\n"
        "Joins:\n"
        "  when a comes: a ⋈ b ⋈ c, about 0.00201 partial results\n"
        "  when b comes: b ⋈ a ⋈ c, about 0.00201 partial results\n"
        "  when c comes: c ⋈ a ⋈ b, about 0.02 partial results"
    )


def test_the_plan_as_a_drawing() -> None:
    """Each tree of joins, from the event that comes to the negations."""
    assert matcher("EVENT SEQ(A a, !D d, B b)", delay=None).diagram() == (
        "flowchart BT\n"
        '    v0_0["a comes"]\n'
        '    v0_1(("⋈"))\n'
        "    v0_0 --> v0_1\n"
        '    v0_1s[("b")] --> v0_1\n'
        '    v0_1 --> v0_n0{"no d"}\n'
        '    v1_0["b comes"]\n'
        '    v1_1(("⋈"))\n'
        "    v1_0 --> v1_1\n"
        '    v1_1s[("a")] --> v1_1\n'
        '    v1_1 --> v1_n0{"no d"}'
    )


def test_variables_of_any_name() -> None:
    """Words of the query text, and what is no word, are explained, drawn and kept as any other."""
    odd = IntervalPattern.pal(order="A", end="B").relate("order", "before", "end").where("order.user = `end`.user")
    odd = odd.without('"no"\n#1`', "D", between=("order", "end")).within("1 minute").emitting("realtime")
    live, again = (matcher(odd) for _ in range(2))
    assert "\n  WHERE `order`.user = `end`.user\n" in live.explain()
    assert live.diagram().splitlines()[1:6] == [
        '    v0_0["order comes"]',
        '    v0_1(("⋈"))',
        "    v0_0 --> v0_1",
        '    v0_1s[("end")] --> v0_1',
        '    v0_1 --> v0_n0{"no #quot;no#quot; #35;1#96;"}',
    ]
    live.process(table([("A", 0, 1, "a1", "u"), ("A", 0, 1, "a2", "v")]))
    again.restore(live.snapshot())
    (row,) = again.process(table([("B", 5, 6, "b1", "u")])).to_pylist()
    assert (row["order"]["id"], row["end"]["id"]) == ("a1", "b1")


def test_events_that_agree_in_all_columns_are_different_events() -> None:
    """Their matches have ids of their own, also over several calls and a snapshot; a retraction has the right one."""
    live, again = (matcher("EVENT PAL(A a, (!D d gap), C c) WITHIN 1 hour REALTIME 1") for _ in range(2))
    twins = [("A", 0, 1, "a"), ("A", 0, 1, "a")]
    live.process(table(twins))
    again.restore(live.snapshot())
    rows = again.process(table([*twins[:1], ("C", 5, 6, "c")]))
    ids = rows.column("match_id").to_pylist()
    assert len(set(ids)) == len(ids) == 3
    assert sorted(again.process(table([("D", 2, 3, "d")])).column("match_id").to_pylist()) == sorted(ids)
    pair = interval_pattern("EVENT PAL(A a, C c)")
    together = detect(table([*twins, *twins[:1], ("C", 5, 6, "c")]), pair, **NAMES)
    assert len(set(together.column("match_id").to_pylist())) == 3
