"""`why`: the funnel of a pattern of stages, and the fate of each start without a match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.near_patterns import Row, events_of, patterns, rows, starts_of_partial_matches
from tests.searching import share

import cepheid
from cepheid import ConditionError, IntervalPattern, LimitExceeded, Limits, Pattern, SchemaError, Skip, detect, why
from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import BeginWithout
from cepheid.matchers.stages import observed
from cepheid.output.funnel import BEGIN_WITHOUT

A = Pattern.begin("a").where("kind = 'a'")
START = datetime(2026, 1, 1)  # noqa: DTZ001 the times have no zone
OPTIONS = {"key": "k", "time": "at"}


def events(kinds: str, *, minutes: list[int] | None = None) -> pa.Table:
    """Events of one key, by default one a minute; the kind of each is a letter."""
    at = pa.array([START + timedelta(minutes=m) for m in minutes or range(len(kinds))], pa.timestamp("us"))
    return pa.table({"k": pa.array(["x"] * len(kinds), "string"), "at": at, "kind": pa.array([*kinds], "string")})


NEXT = A.next("b").where("kind = 'b'")
FOLLOWED = A.followed_by("b").where("kind = 'b'")
NOT = A.not_followed_by("n").where("kind = 'n'").followed_by("b").where("kind = 'b'")
LOOP = A.followed_by("b").where("kind = 'b'").times(2, 4).greedy().followed_by("c").where("kind = 'c'")
UNTIL = A.followed_by("b").where("kind = 'b'").times_or_more(3).until("kind = 'u'")
KEPT_OUT = FOLLOWED.begin_without("n", within="2 minutes", where="kind = 'n'")
COUNTED = A.followed_by("b").where("kind = 'b'").times_or_more(3).until("kind = 'u' AND count(b) >= 1")


@pytest.mark.parametrize(
    ("pattern", "kinds", "minutes", "expected"),
    [
        (NEXT, "ab", None, []),
        (NEXT, "axb", None, [("broken", "a", None, 1)]),
        (NOT, "anb", None, [("forbidden", "a", "n", 1)]),
        (UNTIL.within("1 day"), "abbuc", None, [("until", "b", "b", 1)]),
        (COUNTED.followed_by("c").where("kind = 'c'"), "aubbubc", None, [("until", "b", "b", 1)]),
        (FOLLOWED.within("5 minutes"), "axb", [0, 1, 5], [("out of time", "a", None, 1)]),
        (FOLLOWED.within("5 minutes"), "ax", None, [("out of time", "a", None, 1)]),
        (FOLLOWED.max_gap("5 minutes"), "ab", [0, 5], [("gap", "a", None, 1)]),
        (FOLLOWED.within_previous("5 minutes").within("1 day"), "ab", [0, 5], [("gap", "a", None, 1)]),
        (FOLLOWED.within("1 day").skip(Skip.past_last_event()), "aab", None, [("skipped", "b", None, 1)]),
        (FOLLOWED, "axx", None, [("still open", "a", None, 1)]),
        (KEPT_OUT, "naxab", None, [(BEGIN_WITHOUT, None, "n", 1)]),
        (KEPT_OUT.where("at > a.at"), "nanaxax", None, [("still open", "a", None, 1), (BEGIN_WITHOUT, None, "n", 2)]),
        (LOOP, "aabbxa", None, [("still open", "b", None, 2), ("still open", "a", None, 1)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("few", [True, False], ids=["few events", "many events"])
def test_the_fate_of_each_start(
    *,
    pattern: Pattern,
    kinds: str,
    minutes: list[int] | None,
    expected: list[tuple[str, str | None, str | None, int]],
    few: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Starts without a match are counted by what ended their furthest partial match, and by how far it came. For many
    events the compiled kernel counts them.
    """
    monkeypatch.setattr(observed, "FEW_EVENTS", 100 if few else 0)
    funnel = why(events(kinds, minutes=minutes), pattern, **OPTIONS).funnel
    assert [(one.fate, one.reached, one.by, one.starts) for one in funnel.stopped] == expected
    assert funnel.starts == kinds.count("a") == funnel.matched + sum(funnel.fates.values())


@share(20)
@given(patterns(), rows, st.sampled_from(["kind = 'd'", "v > 1", None]), st.integers(1, 4))
def test_events_that_may_not_start_are_accounted_for(
    shape: Pattern, given_rows: list[Row], where: str | None, within: int
) -> None:
    """All events that start a partial match without `begin_without` are starts with it: those that may not start have
    its fate, and the others are matched or have another. So it is for patterns of all shapes, in both ways to count.
    """
    condition, window = None if where is None else Condition(where), timedelta(microseconds=within)
    pattern, table = replace(shape, without=BeginWithout("before", condition, window)), events_of([given_rows])
    expected = len(starts_of_partial_matches(table, pattern, OPTIONS))
    for few in (100, 0):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(observed, "FEW_EVENTS", few)
            funnel = why(table, pattern, **OPTIONS).funnel
        assert funnel.starts == funnel.matched + sum(funnel.fates.values()) == expected


def test_the_text_of_begin_without() -> None:
    """The funnel names what has forbidden starts, and so does the trace at each of these events."""
    found = why(events("naxab"), KEPT_OUT, **OPTIONS)
    assert str(found).splitlines()[-1].split() == ["begin_without", "by", "n", "1", "50.0%"]
    assert "    - → starts nothing: begin_without by n  (a: kind = 'a': true; begin_without: true)" in str(
        found.trace({"k": "x"})
    )
    assert found.to_dict()["stopped"] == [{"fate": BEGIN_WITHOUT, "reached": None, "by": "n", "starts": 1}]


PATTERNS = [NEXT, FOLLOWED, NOT, LOOP, UNTIL, FOLLOWED.within("3 minutes").skip(Skip.past_last_event())]


@share(50)
@given(st.sampled_from(PATTERNS), st.text("abncux", max_size=12), st.none() | st.integers(0, 12))
def test_all_starts_are_accounted_for(pattern: Pattern, kinds: str, until: int | None) -> None:
    """Each start is matched or has one fate, and the matched starts are those of the matches that detect finds."""
    table = events(kinds)
    as_of = None if until is None else f"2026-01-01T00:{until:02}:00"
    funnel = why(table, pattern, **OPTIONS, as_of=as_of).funnel
    matches = detect(table, pattern, **OPTIONS, as_of=as_of)
    assert funnel.matched == len(set(matches.column("match_start").to_pylist()))
    assert funnel.starts == funnel.matched + sum(one.starts for one in funnel.stopped)
    assert funnel.starts == kinds[: None if until is None else until + 1].count("a") == funnel.reached["a"]


@pytest.mark.parametrize("pattern", [FOLLOWED, A.followed_by_any("b").where("kind = 'b'")], ids=["one match", "many"])
@given(st.text("abx", min_size=1, max_size=12), st.integers(1, 4), st.booleans())
@share(20)
def test_limits_hold_as_in_detect(pattern: Pattern, kinds: str, most: int, matches: bool) -> None:  # noqa: FBT001
    """Partial matches in sets pass a limit where `detect` says so. Below the limit the fates are those without one."""
    limits = Limits(max_matches_per_event=most) if matches else Limits(max_partial_matches=most)
    table = events(kinds)
    expected = passed_limit(lambda: detect(table, pattern, **OPTIONS, limits=limits))
    assert passed_limit(lambda: why(table, pattern, **OPTIONS, limits=limits)) == expected
    if expected is None:
        assert why(table, pattern, **OPTIONS, limits=limits).funnel == why(table, pattern, **OPTIONS).funnel


def passed_limit(work: Callable[[], object]) -> str | None:
    """What the error says; None: no limit was passed."""
    try:
        work()
    except LimitExceeded as error:
        return str(error)
    return None


def test_over_a_limit() -> None:
    """A start that a limit has dropped is counted as such."""
    funnel = why(events("aab"), FOLLOWED, **OPTIONS, limits=Limits(max_partial_matches=1, on_limit="drop")).funnel
    assert (funnel.matched, funnel.fates) == (1, {"over a limit": 1})


def test_what_is_open_at_a_time() -> None:
    """With `as_of`, starts that may still match are open, and later events do not count."""
    funnel = why(events("axb"), FOLLOWED.within("5 minutes"), **OPTIONS, as_of="2026-01-01T00:01:00").funnel
    assert (funnel.events, funnel.fates) == (2, {"still open": 1})


def test_the_numbers_and_the_text() -> None:
    """The funnel says how many events were read and can matter, and how far their partial matches came, as numbers for
    JSON and as a text.
    """
    table = pa.concat_tables(
        [events("aabxxab"), pa.table({"k": [None], "at": [None], "kind": ["a"]})], promote_options="permissive"
    )
    found = why(table, FOLLOWED.followed_by("c").where("kind = 'c'"), **OPTIONS, nulls="drop")
    assert found.to_dict() == {
        "events": 8,
        "null_keys": 1,
        "null_times": 0,
        "relevant": 5,
        "starts": 3,
        "reached": {"a": 3, "b": 3, "c": 0},
        "matched": 0,
        "stopped": [{"fate": "still open", "reached": "b", "by": None, "starts": 3}],
    }
    assert [line.split() for line in str(found).splitlines()] == [
        ["events", "read", "8"],
        ["without", "key", "1"],
        ["that", "can", "matter", "to", "the", "pattern", "5"],
        ["starts", "3"],
        ["reached", "a", "3", "100.0%"],
        ["reached", "b", "3", "100.0%"],
        ["reached", "c", "0", "0.0%"],
        ["matched", "0", "0.0%"],
        ["did", "not", "match", "3", "100.0%"],
        ["still", "open,", "after", "b", "3", "100.0%"],
    ]


def test_a_python_condition() -> None:
    """Patterns with functions are explained, too."""
    pattern = A.next("b").where(lambda event, _: event["kind"] == "b", name="is_b")
    assert why(events("abax"), pattern, **OPTIONS).funnel.fates == {"broken": 1}


@pytest.mark.parametrize(
    ("pattern", "given"),
    [({"one": FOLLOWED}, "several patterns"), (IntervalPattern.pal(a="A"), "an IntervalPattern")],
)
def test_other_patterns(pattern: object, given: str) -> None:
    """Only one pattern of stages is explained. Times are not asked for before."""
    with pytest.raises(SchemaError, match=f"why explains one pattern of stages, made with .*; it was given {given}"):
        why(events("ab"), pattern, key="k")  # type: ignore[arg-type]


def test_it_is_public() -> None:
    """`cepheid.why` is the function."""
    assert cepheid.why is why


def test_one_key_step_by_step() -> None:
    """A trace has, for each event of the key, what it did to each partial match, and the conditions that were
    evaluated; then what deadlines and the end did.
    """
    table = pa.concat_tables([events("axab"), events("ab").set_column(0, "k", pa.array(["y", "y"]))])
    pattern = FOLLOWED.where("at > a.at").within("2 minutes").skip(Skip.past_last_event())
    steps = why(table, pattern, **OPTIONS).trace({"k": "x"}).steps
    assert [(step.partial_match, step.outcome, {one.of: one.result for one in step.conditions}) for step in steps] == [
        ((), "taken by a", {"a": True}),
        (("a 2026-01-01 00:00:00",), "ignored", {"b": False}),
        ((), "starts nothing", {"a": False}),
        (("a 2026-01-01 00:00:00",), "ends: out of time", {}),
        ((), "taken by a", {"a": True}),
        (("a 2026-01-01 00:02:00",), "taken by b, complete", {"b": True}),
        ((), "starts nothing", {"a": False}),
        (("a 2026-01-01 00:02:00", "b 2026-01-01 00:03:00"), "match", {}),
    ]
    kinds = [None if step.event is None else step.event["kind"] for step in steps]
    assert kinds == ["a", "x", "x", None, "a", "b", "b", None]


def test_the_text_of_a_trace() -> None:
    """Printed, the steps of an event are below it; for JSON, times are texts."""
    trace = why(events("ax"), NEXT.followed_by("c"), **OPTIONS).trace({"k": "x"})
    assert str(trace).splitlines() == [
        "2026-01-01 00:00:00  kind = a",
        "    - → taken by a  (a: kind = 'a': true)",
        "2026-01-01 00:01:00  kind = x",
        "    a 2026-01-01 00:00:00 → ends: broken  (b: kind = 'b': false)",
        "    - → starts nothing  (a: kind = 'a': false)",
    ]
    assert trace.to_dict()["steps"][0] == {
        "time": "2026-01-01 00:00:00+00:00",
        "event": {"kind": "a"},
        "partial_match": [],
        "outcome": "taken by a",
        "conditions": [
            {"of": "a", "result": True, "parts": [{"text": "kind = 'a'", "result": True, "values": {"kind": "a"}}]}
        ],
        "at_end": False,
    }


def test_what_is_open_at_the_end_of_a_trace() -> None:
    """Without a key the trace is of all events; what is still open ends with them."""
    trace = why(events("ax"), FOLLOWED, time="at").trace()
    assert str(trace).splitlines()[-2:] == ["end of the events", "    a 2026-01-01 00:00:00 → ends: still open"]


def test_times_of_a_trace_are_those_of_the_events() -> None:
    """A time has the zone of its column; where that has none, it is local in `time_zone`."""
    given_events = events("ax")
    local = given_events.set_column(
        given_events.schema.get_field_index("at"), "at", pc.local_timestamp(given_events["at"])
    )
    zoned = given_events.set_column(
        given_events.schema.get_field_index("at"), "at", given_events["at"].cast(pa.timestamp("us", "Asia/Tokyo"))
    )
    for table, clock in ((local, "00:0"), (zoned, "09:0")):
        steps = why(table, NEXT, **OPTIONS, time_zone="America/New_York").trace({"k": "x"}).steps
        assert steps[1].partial_match == (f"a 2026-01-01 {clock}0:00",)
        assert f"{steps[1].time:%H:%M}" == f"{clock}1"


def test_a_trace_in_processing_order_has_no_times() -> None:
    """Where no time passes, a trace shows none; equal events are shown one by one."""
    trace = why(events("aabx"), FOLLOWED, time=None).trace()
    lines = str(trace).splitlines()
    assert lines[:2] == ["kind = a", "    - → taken by a  (a: kind = 'a': true)"]
    assert lines.count("kind = a") == 2
    assert "1970" not in str(trace)
    assert "end of the events" not in str(trace)
    assert "    a, b → match" in lines


def test_keys_are_given_as_values_or_texts() -> None:
    """Categories are compared by their values, and a text stands for a number, as on the command line."""
    frame = pd.DataFrame({"k": pd.Categorical(["x", "y"]), "n": [1, 2], "at": pd.to_datetime(["2026-01-01"] * 2)})
    pattern = Pattern.begin("a").where("n > 0")
    for value in (2, "2"):
        steps = why(frame, pattern, key=["k", "n"], time="at").trace({"k": "y", "n": value}).steps
        assert [step.outcome for step in steps] == ["taken by a, complete", "match"]


def test_errors_are_those_of_detect() -> None:
    """A condition that fails on an event is named, as in detect."""
    pattern = A.next("b").where("1 / (minute(a.at) - minute(at) + 1) > 0")
    with pytest.raises(ConditionError, match=r"division by zero in the condition of stage 'b' \(1 / "):
        why(events("ab"), pattern, **OPTIONS)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({}, r"trace: the key has k; give a value for each, as in trace\({'column': value}\)"),
        ({"k": "z"}, "trace: no event has the key {'k': 'z'}"),
        ({"k": object()}, "trace: <object .* is no value of 'k', which is of type string"),
    ],
)
def test_keys_that_cannot_be_traced(key: dict[str, object], message: str) -> None:
    """A key that is not there, or not named in full, is refused with what to write."""
    with pytest.raises(SchemaError, match=message):
        why(events("ab"), FOLLOWED, **OPTIONS).trace(key)


def test_conditions_of_a_step_have_three_values() -> None:
    """Each part of a condition is true, false or unknown, and has the values that it compared; the text shows those
    that are not among the event's columns, and NULLs.
    """
    table = pa.table(
        {
            "k": ["x"] * 3,
            "at": [START + timedelta(minutes=m) for m in range(3)],
            "v": pa.array([5, None, 3], pa.int64()),
        }
    )
    pattern = Pattern.begin("a").where("v = 5").followed_by("b").where("v IS NOT NULL AND v > a.v - 1")
    trace = why(table, pattern, **OPTIONS).trace({"k": "x"})
    offered = [step.conditions[0] for step in trace.steps if step.partial_match and step.conditions]
    assert [(one.of, one.result) for one in offered] == [("b", False), ("b", False)]
    assert [[(part.result, dict(part.values)) for part in one.parts] for one in offered] == [
        [(False, {"v": None}), (None, {"v": None, "a.v - 1": 4})],
        [(True, {"v": 3}), (False, {"v": 3, "a.v - 1": 4})],
    ]
    assert "b: v IS NOT NULL: false (v is NULL), v > a.v - 1: unknown (v is NULL, a.v - 1 = 4)" in str(trace)
    assert "b: v IS NOT NULL: true, v > a.v - 1: false (a.v - 1 = 4)" in str(trace)


def test_a_condition_is_unknown() -> None:
    """A condition is unknown if a part is unknown and none is false."""
    table = pa.table({"at": [START], "v": pa.array([None], pa.int64())})
    (step,) = why(table, Pattern.begin("a").where("v > 1"), time="at").trace().steps
    assert (step.conditions[0].result, step.outcome) == (None, "starts nothing")


def test_a_condition_that_another_part_guards() -> None:
    """A part that fails on an event, where SQL would not evaluate it, has no result of its own."""
    table = pa.table({"at": [START], "t": pa.array(["x"])})
    pattern = Pattern.begin("a").where("t <> 'x' AND date_add(date'2026-01-01', cast(t AS INT)) > date'2026-01-01'")
    (step,) = why(table, pattern, time="at").trace().steps
    assert [part.text for part in step.conditions[0].parts] == ["t <> 'x'"]


def test_a_trace_in_a_notebook() -> None:
    """A notebook shows the steps in a table, without what an event could smuggle into it."""
    shown = why(events("<"), A, **OPTIONS).trace({"k": "x"})._repr_html_()
    assert "starts nothing" in shown
    assert "kind = &lt;" in shown
