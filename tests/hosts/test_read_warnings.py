"""Warnings that need all events: parts of conditions that held for none, types that none has, a sequence of NULLs, a
time before all events, and matches that are certain only because the input ended.
"""

from __future__ import annotations

import re
import uuid
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import CepheidWarning, OccurrencePattern, Pattern, Report, Skip, detect, explain
from cepheid.intervals import interval_pattern

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
HOURS = [START + timedelta(hours=hour) for hour in range(6)]
EVENTS = pa.table(
    {
        "user": ["a", "a", "b", "b", "a", "b"],
        "at": HOURS,
        "until": [at + timedelta(minutes=30) for at in HOURS],
        "kind": ["login", "pay", "login", "logout", "login", "pay"],
        "amount": [1, 2, 3, 4, 5, 6],
        "empty": pa.nulls(6, pa.int64()),
    }
)
LOGIN = Pattern.begin("first_in").where("kind = 'login'")
ADVICE = ". Compare that with the events' values; why(events, pattern, …) shows how far partial matches came"


def warned(pattern: Any, events: pa.Table = EVENTS, **options: Any) -> list[str]:
    """The warnings of a detection."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detect(events, pattern, **{"key": "user", "time": "at", **options})
    assert all(one.category is CepheidWarning for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        (LOGIN.followed_by("out").where("kind = 'Logout'"), "stage 'out': kind = 'Logout' held for no event"),
        (
            LOGIN.followed_by("up").where("amount > 100 AND amount > first_in.amount").optional(),
            "stage 'up': amount > 100 held for no event",
        ),
        (
            LOGIN.followed_by("out").where("kind = 'logout'").where("amount > 9"),
            "stage 'out': (kind = 'logout') AND (amount > 9) held for no event",
        ),
        (
            LOGIN.followed_by("back").subtype("refund").taxonomy("kind", {"login": [], "refund": []}),
            "stage 'back': no event is of the type 'refund'",
        ),
        (
            LOGIN.followed_by("back").subtype("back").where("amount > 0").taxonomy("kind", {"refund": "back"}),
            "stage 'back': no event is of the type 'back', nor of one below it",
        ),
        (
            {"one": LOGIN, "two": LOGIN.next("b").where("amount > 9")},
            "pattern 'two', stage 'b': amount > 9 held for no event",
        ),
    ],
)
def test_a_part_that_held_for_no_event(pattern: Any, part: str) -> None:
    """A part of a condition, or a type, of which there is no event is warned of once, with its stage."""
    assert warned(pattern) == [part + ADVICE]


def test_other_kinds_of_pattern() -> None:
    """Occurrences and intervals warn of types that no event has."""
    occurrences = OccurrencePattern.of("login ; refund").taxonomy("kind")
    assert warned(occurrences) == ["no event is of the type 'refund'. Compare that with the events' values"]
    intervals = interval_pattern("EVENT SEQ(login x, refund y) WITHIN 1 hour").taxonomy("kind")
    found = warned(intervals, time=("at", "until"))
    assert found == ["event 'y': no event is of the type 'refund'. Compare that with the events' values"]


@pytest.mark.parametrize(
    "pattern",
    [
        LOGIN,
        LOGIN.followed_by("b").where("amount > 100").or_where("amount > 3"),
        LOGIN.not_followed_by("out").where("kind = 'timeout'").followed_by("pay").where("kind = 'pay'"),
        LOGIN.one_or_more().until("kind = 'timeout'"),
        LOGIN.begin_without("out", within="1 hour", where="kind = 'timeout'"),
        LOGIN.followed_by("b").where("amount > first_in.amount + 100"),
        OccurrencePattern.of("login - refund").taxonomy("kind"),
    ],
)
def test_what_is_not_warned_of(pattern: Any) -> None:
    """Forbidden events, ends of loops and conditions across events may hold for no event."""
    assert warned(pattern) == []


def test_no_events() -> None:
    """Without events nothing is said about them."""
    assert warned(LOGIN, EVENTS[:0]) == []


def test_one_warning_is_enough() -> None:
    """What is never true, or probably misspelt, is warned of with its reason, and not again for want of events."""
    assert len(warned(LOGIN.next("b").where("amount = NULL"))) == 1
    assert len(warned(LOGIN.next("b").subtype("logni").taxonomy("kind"))) == 1


def test_many_parts() -> None:
    """Of many parts the first three are listed."""
    patterns = {f"p{number}": LOGIN.next("b").where(f"amount = {number + 100}") for number in range(5)}
    (warning,) = warned(patterns)
    assert warning.count("held for no event") == 3
    assert "pattern 'p2', stage 'b': amount = 102 held for no event; and 2 more. " in warning


def test_a_report_has_them() -> None:
    """With a report, it has the parts, and there is no warning."""
    report = Report()
    assert warned(LOGIN.next("b").where("amount > 9"), report=report) == []
    assert report.unheld == ("stage 'b': amount > 9 held for no event",)
    assert "held for no event" in repr(report)
    assert "held for no event" in report._repr_html_()


def test_events_that_are_out_of_order() -> None:
    """Parts are known over all events, also where these must be sorted."""
    assert warned(LOGIN, EVENTS.take([5, 0, 4, 1, 3, 2])) == []


def test_a_sequence_of_nulls() -> None:
    """A sequence without values is warned of, as nothing else would say that it orders nothing."""
    (warning,) = warned(LOGIN, sequence="empty")
    assert warning.startswith("sequence: 'empty' is NULL for every event, so it orders nothing")
    assert warned(LOGIN, sequence="amount") == []


# Matches that are certain because the input ended


ABSENCE = LOGIN.not_followed_by("out").where("kind = 'logout'").within("2 hours")


def test_absences_at_the_end() -> None:
    """A match of absence whose time was not over is warned of, with the `as_of` that leaves it out, or counted."""
    (warning,) = warned(ABSENCE)
    assert warning.startswith("1 of 2 matches is certain only because the input ended: an event that forbids it may")
    as_of = re.search(r"as_of='(.*?)'", warning)
    assert as_of is not None
    assert warned(ABSENCE, as_of=as_of[1]) == []
    assert len(detect(EVENTS, ABSENCE, key="user", time="at", as_of=as_of[1])) == 1
    report = Report()
    assert warned(ABSENCE, report=report) == []
    assert (report.certain_by_end, report.counts.matches) == (1, 2)
    assert "certain_by_end=1" in repr(report)
    assert "certain by end" in report._repr_html_()


def test_absences_after_the_last_year() -> None:
    """Where Python has no such year, the warning has no `as_of`."""
    times = pa.array([300_000_000_000_000_000], pa.timestamp("us", "UTC"))
    late = pa.table({"user": ["u"], "at": times, "kind": ["login"]})
    with pytest.warns(CepheidWarning, match="may not have come yet. Give a report, which counts it"):
        detect(late, ABSENCE, key="user", time="at")


def test_loops_at_the_end() -> None:
    """A loop that might have gone on is counted and not warned of: its match only might have been longer."""
    loop, report = Pattern.begin("all").one_or_more().consecutive().longest(), Report()
    assert warned(loop) == []
    detect(EVENTS, loop, key="user", time="at", report=report)
    assert report.certain_by_end == report.counts.matches == 6


def test_processing_order_has_no_deadlines() -> None:
    """In processing order no time passes, so it is not known what only the end made certain."""
    report = Report()
    detect(EVENTS, LOGIN, key="user", time=None, report=report)
    assert report.certain_by_end is None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.sampled_from("xyz")), min_size=1, max_size=12))
@pytest.mark.filterwarnings("ignore::cepheid.CepheidWarning")
def test_as_of_the_last_event_leaves_out_what_is_counted(rows: list[tuple[str, int, str]]) -> None:
    """The count is that of the matches which `as_of` the last event leaves out."""
    key, at, kind = zip(*rows, strict=True)
    events = pa.table({"key": key, "at": [START + timedelta(hours=hour) for hour in at], "kind": kind})
    absent = Pattern.begin("x").where("kind = 'x'").not_followed_by("y").where("kind = 'y'").within("3 hours")
    longest = Pattern.begin("x").where("kind = 'x'").one_or_more().consecutive().longest()
    for pattern in (absent, longest.skip(Skip.past_last_event())):
        report = Report()
        found = len(detect(events, pattern, key="key", time="at", report=report))
        until = START + timedelta(hours=max(at))
        assert len(detect(events, pattern, key="key", time="at", as_of=until)) == found - (report.certain_by_end or 0)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=8))
@pytest.mark.filterwarnings("ignore::cepheid.CepheidWarning")
def test_as_of_leaves_out_intervals_that_wait_for_a_negation(rows: list[tuple[str, int, int]]) -> None:
    """A negation after the last event of a match looks at later events up to the window after its start."""
    kinds, starts, lengths = zip(*rows, strict=True)
    ends = [START + timedelta(hours=start + length) for start, length in zip(starts, lengths, strict=True)]
    events = pa.table({"kind": kinds, "at": [START + timedelta(hours=start) for start in starts], "end": ends})
    for text in ("EVENT SEQ(x a, !y n) WITHIN 4 hours", "EVENT SEQ(x a, (!y n), z b) WITHIN 4 hours"):
        pattern, report = interval_pattern(text).taxonomy("kind"), Report()
        found = len(detect(events, pattern, time=("at", "end"), report=report))
        certain = len(detect(events, pattern, time=("at", "end"), as_of=max(ends)))
        assert certain == found - (report.certain_by_end or 0)


# What the plan says


def test_one_column_as_start_and_end() -> None:
    """Intervals whose start is their end are warned of, and `explain` says it."""
    pattern = interval_pattern("EVENT SEQ(login x, pay y) WITHIN 1 hour").taxonomy("kind")
    (warning,) = warned(pattern, time=("at", "at"))
    assert warning.startswith("time: the column 'at' is both start and end, so every event is an instant")
    assert f"Warning: {warning}." in explain(pattern, events=EVENTS, key="user", time=("at", "at")).text


@pytest.mark.parametrize(
    "pattern",
    [
        LOGIN,
        OccurrencePattern.of("login").taxonomy("kind"),
        interval_pattern("EVENT SEQ(login x, pay y) WITHIN 1 hour").taxonomy("kind"),
    ],
)
def test_an_empty_name(pattern: Any) -> None:
    """A pattern without a name is warned of, as its name is part of the ids of its matches."""
    time = ("at", "until") if hasattr(pattern, "positives") else "at"
    (warning,) = warned(pattern.named(""), time=time)
    assert warning.startswith("the pattern's name is empty")
    assert "the pattern's name is empty" in explain(pattern.named(""), events=EVENTS, key="user", time=time).text


def test_arguments_for_streams_are_named_by_explain_alone() -> None:
    """`lateness` and `shards` mean nothing for finite events: `explain` says so, and `detect` says nothing."""
    assert warned(LOGIN, lateness="1 hour", shards=4) == []
    text = explain(LOGIN, events=EVENTS, key="user", time="at", lateness="1 hour", shards=4).text
    assert "Warning: lateness and shards: for streams; these events are finite" in text
    assert "for streams" not in explain(LOGIN, events=EVENTS, key="user", time="at").text


def test_as_of_before_all_events() -> None:
    """A time before all events is warned of, as none of them counts; for intervals, before the first one ends. The time
    of the first event is not, nor is any time where there are no events.
    """
    early = "as_of: 2026-03-02 07:59:59 is before all events, so none counts; the first is at 2026-03-02 08:00:00"
    assert warned(LOGIN, as_of="2026-03-02T07:59:59") == [early]
    assert warned(LOGIN, as_of="2026-03-02T08:00:00") == []
    assert warned(LOGIN, EVENTS.slice(0, 0), as_of="2026-03-02T07:59:59") == []
    pattern = interval_pattern("EVENT SEQ(login x, pay y) WITHIN 1 hour").taxonomy("kind")
    (ends,) = warned(pattern, time=("at", "until"), as_of="2026-03-02T08:00:00")
    assert ends.endswith("is before all events, so none counts; the first ends at 2026-03-02 08:30:00")


IN_A_DAY = Pattern.begin("a").followed_by("b").within("1 day")


def users(count: int, keys: pa.Array | pa.ChunkedArray | None = None) -> pa.Table:
    """So many events, one a minute, each with a user of its own, of two shops."""
    return pa.table(
        {
            "user": pa.array([str(number) for number in range(count)]) if keys is None else keys,
            "shop": ["x", "y"] * (count // 2),
            "at": [START + timedelta(minutes=minute) for minute in range(count)],
            "amount": [*range(count)],
        }
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_keys_of_one_event(workers: int) -> None:
    """Where each of many events has a key of its own and nothing matched, the key is named."""
    ones = [uuid.UUID(int=number).bytes for number in range(200)]
    coded = [pa.array([f"{n}{i}" for i in range(100)]).dictionary_encode() for n in "ab"]
    each = [None, pa.array(ones, pa.uuid()), pa.chunked_array(coded), pa.array([Decimal(n) for n in range(200)])]
    for events in [users(200, keys) for keys in each]:
        (found,) = warned(IN_A_DAY, events, workers=workers)
        assert found == (
            "key: each event has a key of its own (user), and only events of one key are matched together. "
            "Name columns that the events of a match have in common"
        )
    assert "its own (shop, user)" in warned(IN_A_DAY, users(200), key=["shop", "user"], workers=workers)[0]
    assert "each of the first 100,000 events" in warned(IN_A_DAY, users(100_002), workers=workers)[0]


def test_keys_that_may_be_right() -> None:
    """Few events, keys that repeat, patterns that one event may match and other faults are not warned of."""
    events = users(200)
    again = events.slice(0, 1).set_column(2, "at", pa.array([START - timedelta(hours=1)]))
    assert warned(IN_A_DAY, users(50)) == []
    assert warned(IN_A_DAY, events, key="shop") == []
    assert warned(IN_A_DAY, events, key=None) == []
    assert warned(IN_A_DAY, pa.concat_tables([events, again])) == []
    alone = Pattern.begin("a").where("amount % 1000 = 999 OR amount < 0")
    absent = Pattern.begin("a").not_followed_by("b").where("amount >= 0").within("1 day")
    assert not any("key:" in one for one in warned(alone, events) + warned(absent, events, as_of=START))
    assert not any("key:" in one for one in warned(IN_A_DAY.named("x").followed_by("c").where("amount = -1"), events))
