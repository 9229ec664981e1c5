"""Interval patterns in events that continue to arrive: what is emitted, and when."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random

import pandas as pd
import pyarrow as pa
import pytest
from tests.intervals.events import EVENTS, NAMES, PAPER, Row, interval_pattern, matcher, shown, table

from cepheid.detect import detect
from cepheid.errors import CepheidWarning, PatternError, SchemaError, SnapshotError
from cepheid.intervals import IntervalMatcher, IntervalPattern


def test_rows_have_the_time_of_their_emission() -> None:
    """`detected_at` is the clock: for an insertion, the end of the event that completes the match; for a retraction,
    the end of the event that forbids it.
    """
    emitted = matcher(f"{PAPER} REALTIME 1").process(table(EVENTS[:4])).to_pylist()
    assert [(row["kind"], row["detected_at"].timestamp()) for row in emitted] == [("insertion", 9), ("retraction", 12)]
    (alone,) = matcher("EVENT PAL(A a) WITHIN 1 hour REALTIME 1").process(table(EVENTS[:1])).to_pylist()
    assert alone["detected_at"].timestamp() == 4


def test_real_time_retracts_what_was_wrong() -> None:
    """A retraction has the id of its insertion; here a long negated event arrives after the match that it forbids."""
    live = matcher(f"{PAPER} REALTIME 1")
    before = live.process(table(EVENTS[:3]))
    after = live.process(table(EVENTS[3:4]))
    assert (shown(before), shown(after)) == (["+a1,b1,c1"], ["-a1,b1,c1"])
    assert before.column("match_id") == after.column("match_id")
    assert shown(live.finish()) == []


def test_conservative_output_is_never_retracted() -> None:
    """Matches are withheld until no event in time can forbid them; CONSISTENCY earliest withholds them no longer than
    that.
    """
    for consistency, emitted in (("earliest", []), ("conservative", [])):
        live = matcher(f"{PAPER} CONSISTENCY {consistency}")
        assert shown(live.process(table(EVENTS))) == emitted
    quiet = [e for e in EVENTS if e[0] != "D"]
    # c1 starts at 8 and ends at 9: with the clock at 17 no event from before 9 can arrive any more, at 18 none up to 9.
    for consistency, clock in (("earliest", 16), ("conservative", 18)):
        live = matcher(f"{PAPER} CONSISTENCY {consistency}")
        emitted = shown(live.process(table(quiet[:3])))
        assert (emitted, shown(live.advance_time(f"1970-01-01T00:00:{clock - 1}"))) == ([], [])
        assert shown(live.advance_time(f"1970-01-01T00:00:{clock}")) == ["+a1,b1,c1"]


@pytest.mark.parametrize("consistency", ["conservative", "earliest", "realtime"])
def test_many_matches(consistency: str) -> None:
    """Thousands of matches wait for a while, and finished ones make room for others: nothing is lost or repeated."""
    random, now, events = Random(1), 0, list[Row]()
    for number in range(3000):
        now += random.randint(0, 1)
        events.append((random.choice("ABC"), now, now + random.randint(1, 4), f"e{number}"))
    query = "EVENT PAL((A a overlap B b) before C c) WITHIN 20 seconds"
    live = matcher(f"{query} CONSISTENCY {consistency}")
    rows = pa.concat_tables([live.process(table(events[:1000])), live.process(table(events[1000:])), live.finish()])
    whole = detect(table(events), interval_pattern(query), **NAMES)
    assert len(whole) > 4000
    assert set(rows["kind"].to_pylist()) == {"insertion"}
    assert sorted(rows["match_id"].to_pylist()) == sorted(whole["match_id"].to_pylist())


def test_late_events_are_emitted_and_not_matched() -> None:
    """Late events are emitted and not matched; an event exactly as old as the delay allows is not late."""
    live = matcher("EVENT PAL(A a before C c) WITHIN 1 hour CONSISTENCY earliest", lateness="5 seconds")
    assert shown(live.process(table([("C", 8, 10, "c1")]))) == []
    assert shown(live.process(table([("A", 4, 6, "a2"), ("A", 5, 6, "a1")]))) == ["a2 late", "+a1,c1"]
    assert live.counts.late == 1
    by_end = matcher(
        "EVENT PAL(A a before C c) WITHIN 1 hour CONSISTENCY earliest", lateness="5 seconds", late_by="end"
    )
    assert shown(by_end.process(table([("C", 8, 10, "c1")]))) == []
    assert shown(by_end.process(table([("A", 4, 6, "a2"), ("A", 1, 4, "a3")]))) == ["a3 late", "+a2,c1"]


def test_the_events_of_a_call_are_a_set() -> None:
    """The events of one call are sorted by their ends, so the order of the rows does not matter."""
    events = [("A", 1, 4, "a1"), ("A", 1, 4, "a2"), ("B", 3, 6, "b1"), ("C", 18, 19, "c1"), ("C", 18, 19, "c1")]
    first, *others = ([events[i] for i in order] for order in permutations(range(len(events))))
    emitted = matcher("EVENT PAL((A a overlap B b) before C c) WITHIN 1 hour REALTIME 1").process(table(first))
    assert sorted(shown(emitted)) == ["+a1,b1,c1"] * 2 + ["+a2,b1,c1"] * 2
    for rows in others:
        live = matcher("EVENT PAL((A a overlap B b) before C c) WITHIN 1 hour REALTIME 1")
        assert live.process(table(rows)) == emitted


def test_a_late_event_does_not_move_the_clock() -> None:
    """A late event leaves the clock as it is, whenever it ends."""
    live = matcher("EVENT PAL(A a before C c) WITHIN 1 hour CONSISTENCY earliest", lateness="5 seconds")
    live.process(table([("C", 8, 10, "c1")]))
    assert shown(live.process(table([("A", 4, 1000, "a1")]))) == ["a1 late"]
    assert shown(live.process(table([("A", 5, 6, "a2")]))) == ["+a2,c1"]


@pytest.mark.parametrize("delay", ["8 seconds", None])
def test_after_the_end(delay: str | None) -> None:
    """An event after `finish` is late, with `detected_at` NULL; also for a restored matcher."""
    live, again = (matcher(f"{PAPER} REALTIME 1", delay) for _ in range(2))
    live.process(table(EVENTS[:2]))
    assert shown(live.finish()) == []
    again.restore(live.snapshot())
    for ended in (live, again):
        (row,) = ended.process(table(EVENTS[2:3])).to_pylist()
        assert (row["kind"], row["event"]["id"], row["detected_at"]) == ("late", "c1", None)
        assert (shown(ended.advance_time("2024-05-01")), ended.counts.late) == ([], 1)


def test_consistency_can_be_changed_while_it_runs() -> None:
    """After a switch to real time, all present matches are emitted at once. After a switch back, new matches are
    emitted only when they are final.
    """
    live = matcher(PAPER)
    assert shown(live.process(table(EVENTS[:3]))) == []
    assert shown(live.switch("realtime")) == ["+a1,b1,c1"]
    assert shown(live.switch("conservative")) == []
    assert shown(live.process(table(EVENTS[3:4]))) == ["-a1,b1,c1"]


def test_measures() -> None:
    """Rows have measures in place of events, also those of retractions; for late events they are NULL. A snapshot is
    for the same measures.
    """
    measures = {"ids": "concat(a.id, b.id, c.id)", "length": "unix_seconds(end(c)) - unix_seconds(start(a))"}
    live, other = (matcher(f"{PAPER} REALTIME 1", measures=measures) for _ in range(2))
    rows = live.process(table(EVENTS[:3])).to_pylist()
    other.restore(live.snapshot())
    rows += other.process(table(EVENTS[3:])).to_pylist() + other.process(table([("A", 2, 3, "late")])).to_pylist()
    assert [(row["kind"], row["ids"], row["length"]) for row in rows] == [
        ("insertion", "a1b1c1", 8),
        ("retraction", "a1b1c1", 8),
        ("late", None, None),
    ]
    users = measures | {"ids": "concat(a.user, b.user, c.user)"}
    with pytest.raises(SnapshotError, match=r"measures\.ids"):
        matcher(f"{PAPER} REALTIME 1", measures=users).restore(live.snapshot())


def test_nothing_may_come_after() -> None:
    """A negation after the last event ends a window after the start of the match; that time belongs to it. Until no
    event in time can begin there, a conservative match waits, and one in real time may be retracted.
    """
    waiting, at_once = (
        matcher(f"EVENT PAL(A a, !B b) WITHIN 5 seconds REALTIME {factor}", lateness="3 seconds") for factor in (0, 1)
    )
    rows = [("A", 0, 1, "a0"), ("B", 5, 5, "b0"), ("A", 6, 7, "a1"), ("B", 12, 13, "b1"), ("C", 14, 15, "c0")]
    emitted = [[shown(live.process(table([row]))) for row in rows] for live in (waiting, at_once)]
    assert emitted == [[[], [], [], [], ["+a1"]], [["+a0"], ["-a0"], ["+a1"], [], []]]


def test_the_plan_shows_the_present_consistency() -> None:
    """After a switch or a restore, the explained plan is that of a matcher made with the present consistency."""
    live, other = matcher(PAPER), matcher(PAPER)
    before = live.explain()
    live.switch("realtime")
    assert live.explain() == matcher(f"{PAPER} REALTIME 1").explain() != before
    other.restore(live.snapshot())
    assert other.explain() == live.explain()
    live.switch("conservative")
    assert live.explain() == before


def test_invalid_arguments() -> None:
    """A negative delay, an unknown `late_by`, and missing columns are refused."""
    with pytest.raises(SchemaError, match="lateness: a length of time must not be negative"):
        matcher(lateness=pd.Timedelta(-1, "s"))  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="late_by is 'start' or 'end', got 'middle'"):
        matcher(late_by="middle")
    with pytest.raises(SchemaError, match="nulls: 'keep' is not one of 'error', 'drop'"):
        matcher(nulls="keep")
    with pytest.raises(PatternError, match="PAL or SEQ is expected"):
        matcher("EVENT OR(A)")
    known = "a consistency is one of 'conservative', 'earliest', 'realtime', got 1"
    for wrong in (interval_pattern(PAPER).emitting, matcher().switch):
        with pytest.raises(PatternError, match=known):
            wrong(1)  # type: ignore[arg-type]  # a slip of who knows REALTIME 1
    with pytest.raises(
        SchemaError, match=r"frequencies: a number by type is expected, as in \{'login': 100\}, got \[3\]"
    ):
        matcher(frequencies=[3])
    with pytest.raises(SchemaError, match="frequencies: numbers above zero are expected, got 'A': 'x', 'B': -2"):
        matcher(frequencies={"A": "x", "B": -2, "C": 1})
    with pytest.raises(SnapshotError, match=r"a snapshot is bytes, as snapshot\(\) gives them, got str"):
        matcher().restore("abc")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="events have no column 'id', which the matcher was made with"):
        matcher().process(table(EVENTS).drop_columns(["id"]))


def test_events_of_other_types() -> None:
    """Like a Matcher, it refuses a column of another type than it was made for; an instant may have any zone."""
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


@pytest.mark.parametrize("scope", ["start_between", "gap", "intersects_gap", "during_span"])
def test_late_negatives_of_many_keys(scope: str) -> None:
    """The matches emitted in real time and not retracted are those that `detect` finds in all events, however many are
    inserted and retracted.
    """
    random = Random(scope)
    rows: list[Row] = []
    for i in range(3000):
        kind, start = random.choice("AAABBBD"), i // 4 + random.randrange(12)
        length = random.randrange(20 if kind == "D" else 4)
        rows.append((kind, start, start + length, f"e{i}", random.choice("uvw")))
    pattern = f"EVENT PAL(A a, (!D d {scope}), B b) RELATE a before b WITHIN 12 seconds REALTIME 1"
    live = matcher(pattern, lateness="60 seconds", key="user")
    calls = [live.process(table(rows[first : first + 20])) for first in range(0, len(rows), 20)]
    emitted = pa.concat_tables([*calls, live.finish()]).select(["kind", "match_id"]).to_pylist()
    left = Counter[str]()
    for row in emitted:
        left[row["match_id"]] += {"insertion": 1, "retraction": -1}[row["kind"]]
    expected = detect(table(rows), interval_pattern(pattern), key="user", **NAMES).column("match_id").to_pylist()
    assert sorted(left.elements()) == sorted(expected)
    assert min(left.values()) == 0
    assert live.counts.matches == len(expected) > 100
    assert len(emitted) > 2000 or scope in ("intersects_gap", "start_between")


UNCERTAIN = (
    "the negation of 'd': an event with any later end may still forbid a match, so that no match is ever "
    "certain\nEither measure lateness at starts (late_by='start'), or choose a scope that bounds them (gap, "
    "seq_between or during_span), or let the pattern emit in real time."
)


def test_matches_that_would_never_be_certain() -> None:
    """Such patterns are refused, unless matches are emitted in real time, or nothing is certain before the end in any
    case.
    """
    with pytest.raises(PatternError) as raised:
        matcher(PAPER, late_by="end")
    assert str(raised.value) == UNCERTAIN
    with pytest.raises(PatternError, match="the negation of 'd': an event with any later "):
        matcher(f"{PAPER} CONSISTENCY earliest", late_by="end")
    matcher(PAPER, None, late_by="end")
    matcher(PAPER.replace("!D d", "!D d gap"), late_by="end")
    final = "the negation of 'd': an event with any later end may still forbid a match, so that no match is "
    with pytest.warns(CepheidWarning) as caught:
        live = matcher(f"{PAPER} REALTIME 1", late_by="end")
    (warning,) = caught
    assert str(warning.message).startswith(
        f"a matcher keeps what is open: {final}ever final. Better choose a scope that bounds them"
    )
    assert shown(live.process(table(EVENTS[:3]))) == ["+a1,b1,c1"]
    with pytest.raises(PatternError) as raised:
        live.switch("conservative")
    assert str(raised.value) == UNCERTAIN
    assert shown(live.process(table(EVENTS[3:4]))) == ["-a1,b1,c1"]


def test_columns_that_are_never_null() -> None:
    """The columns of a variable or a late event are NULL where there is none, even if the columns of the events are
    never NULL.
    """
    events = table(EVENTS[:3])
    sure = pa.schema([field.with_nullable(nullable=field.name == "user") for field in events.schema])
    live = IntervalMatcher(interval_pattern(f"{PAPER} REALTIME 1"), sure, lateness="8 seconds", columns=["id"], **NAMES)
    rows = live.process(events.cast(sure))
    assert (shown(rows), rows.column("event").null_count) == (["+a1,b1,c1"], 1)
    assert shown(live.process(table([("A", 0, 1, "a0")]).cast(sure))) == ["a0 late"]


@pytest.mark.parametrize("scope", ["start_between", "intersects_gap"])
def test_an_order_bounds_what_a_scope_does_not(scope: str) -> None:
    """With lateness measured at ends, a match is certain once no event that ends early enough to forbid it can arrive
    any more.
    """
    pattern = f"EVENT PAL(A a, C c) WITHOUT (D d {scope}(a | c) ORDER end(d) <= start(c)) WITHIN 1 minute"
    for consistency in ("conservative", "earliest"):
        live = matcher(f"{pattern} CONSISTENCY {consistency}", lateness="5 seconds", late_by="end")
        assert shown(live.process(table([("A", 0, 1, "a1"), ("C", 10, 12, "c1"), ("C", 11, 13, "c2")]))) == []
        assert shown(live.process(table([("D", 2, 11, "d1"), ("B", 16, 17, "b1")]))) == []
        assert shown(live.process(table([("B", 18, 19, "b2")]))) == ["+a1,c1"]
    with pytest.raises(PatternError, match="an event with any later "):
        matcher(pattern.replace("end(d) <= start(c)", "start(a) <= end(d)"), late_by="end")


def test_an_unlimited_delay() -> None:
    """With `lateness=None` no event is late, and a match that a later event may forbid is withheld until the end."""
    live = matcher(PAPER, lateness=None)
    assert shown(live.process(table([EVENTS[4], *EVENTS[:3]]))) == []
    assert shown(live.finish()) == ["+a1,b1,c1"]


def test_the_plan_as_text() -> None:
    """The text has the conditions on one event and on several, and the orders of joins with their expected costs."""
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
    """Each tree of joins is drawn, from the arriving event to the negations."""
    assert matcher("EVENT SEQ(A a, !D d, B b)", lateness=None).diagram() == (
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
    """Variables named like words of the query text, or with any other characters, are explained, drawn and stored like
    any other.
    """
    odd = IntervalPattern.pal(order="A", end="B").relate("order", "before", "end").where("order.user = `end`.user")
    odd = (
        odd.without('"no"\n#1`', "D", between=("order", "end")).within("1 minute").emitting("realtime").taxonomy("kind")
    )
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


def test_lateness_as_a_number_of_events() -> None:
    """Events that more events have overtaken are late, and are counted; a snapshot continues with the same."""
    rows = [("A", i, i, f"a{i}") for i in (1, 5, 3, 7, 2, 6, 4)]
    pattern = "EVENT PAL(A a) WITHIN 1 hour CONSISTENCY conservative"
    live = matcher(pattern, "2 events")
    found = [one for row in rows[:4] for one in shown(live.process(table([row])))]
    restored = matcher(pattern, "2 events")
    restored.restore(live.snapshot())
    found += [one for row in rows[4:] for one in shown(restored.process(table([row])))]
    assert found == ["+a1", "a2 late", "+a3", "a4 late"]
    assert restored.counts.late == 2
    assert shown(restored.finish()) == ["+a5", "+a6", "+a7"]


def test_a_number_of_events_is_not_a_length_of_time() -> None:
    """Time makes nothing certain there, a number has its limit, and the state of another lateness is refused."""
    live = matcher(lateness="3 events")
    with pytest.raises(SchemaError, match="lateness is a number of events, so only events make something certain"):
        live.advance_time("2024-01-01T00:00:00+00:00")
    with pytest.raises(SchemaError, match=r"lateness: a number of events is at most 100,000,000, got str"):
        matcher(lateness="1,000,000,000 events")
    with pytest.raises(SchemaError, match="lateness: a number of events is not possible with event_id"):
        matcher(lateness="3 events", event_id="id")
    with pytest.raises(SnapshotError):
        matcher(lateness="4 events").restore(live.snapshot())


def test_a_switch_to_earliest_emits_what_is_certain() -> None:
    """At once, as if the pattern had been in that consistency from the start."""
    live = matcher("EVENT PAL(A a before C c) WITHIN 20 seconds CONSISTENCY conservative")
    assert live.process(table([("A", 1, 2, "a"), ("C", 5, 9, "c")])).num_rows == 0
    assert shown(live.switch("earliest")) == ["+a,c"]
    assert live.finish().num_rows == 0
