"""Events that one row opens and another one closes, through the public calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any
from warnings import catch_warnings

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.intervals.events import NAMES, Row, interval_pattern, matcher, table

from cepheid.detect import detect
from cepheid.errors import CepheidWarning, EventError, LimitExceeded, PatternError, SchemaError, SnapshotError
from cepheid.intervals import IntervalMatcher
from cepheid.matchers.counts import IntervalCounts
from cepheid.matchers.intervals import rows as reading
from cepheid.matchers.snapshot import from_bytes, to_bytes
from cepheid.plan.limits import Limits
from cepheid.requests.report import Report

CHAIN = "EVENT PAL((A a overlap B b) before C c) WITHIN 1 minute OF STARTS"
ROWS: list[Row] = [
    ("A", 0, None, "a1"),
    ("B", 3, None, "b1"),
    (None, None, 4, "a1"),
    (None, None, 6, "b1"),
    ("C", 9, None, "c1"),
    ("A", 10, 11, "z1"),
    (None, None, 14, "c1"),
]
"""a1 overlaps b1, and c1 comes after both."""


def by_id(pattern: str, lateness: str | None = "5 seconds", **options: Any) -> IntervalMatcher:
    return matcher(pattern, lateness, event_id="id", **({"open_for": "1 hour"} | options))


def told(rows: pa.Table) -> list[tuple[str, ...]]:
    """The kind of each row, and the ids of its events; an event that is still open has an asterisk."""
    variables = [name for name in rows.schema.names if len(name) == 1]
    return [
        (row["kind"], row["event"]["id"])
        if row["kind"] == "late"
        else (row["kind"], *(row[v]["id"] + "*" * (row[v]["ends"] is None) for v in variables))
        for row in rows.to_pylist()
    ]


def each(live: IntervalMatcher, rows: Sequence[Row]) -> list[tuple[int, tuple[str, ...]]]:
    """What each row makes, with the row's number."""
    return [(number, one) for number, row in enumerate(rows) for one in told(live.process(table([row])))]


@pytest.mark.parametrize(
    ("consistency", "expected"),
    [
        ("realtime", [(4, ("insertion", "a1", "b1", "c1*")), (6, ("completion", "a1", "b1", "c1"))]),
        ("earliest", [(4, ("insertion", "a1", "b1", "c1*")), (6, ("completion", "a1", "b1", "c1"))]),
        ("conservative", []),
    ],
)
def test_a_match_comes_as_soon_as_its_relations_are_certain(
    consistency: str, expected: list[tuple[int, tuple[str, ...]]]
) -> None:
    """`(A overlap B) before C` is certain once C has started. A row of kind completion follows with its end, and a
    conservative matcher waits for all ends.
    """
    live = by_id(f"{CHAIN} CONSISTENCY {consistency}")
    assert each(live, ROWS) == expected
    assert told(live.advance_time("1970-01-01T00:00:20")) == [("insertion", "a1", "b1", "c1")] * (not expected)


def test_rows_of_a_match_have_one_id() -> None:
    """Insertion and completion have the match_id that `detect` gives the whole events; match_end is NULL until then."""
    live = by_id(f"{CHAIN} CONSISTENCY earliest")
    first, last = pa.concat_tables([live.process(table([row])) for row in ROWS]).to_pylist()
    assert (first["match_end"], first["detected_at"].timestamp()) == (None, 9)
    assert (last["match_end"].timestamp(), last["detected_at"].timestamp()) == (14, 14)
    whole = [("A", 0, 4, "a1"), ("B", 3, 6, "b1"), ("C", 9, 14, "c1"), ("A", 10, 11, "z1")]
    for rows in (ROWS, whole):
        (match,) = detect(table(rows), interval_pattern(CHAIN), event_id="id", **NAMES).to_pylist()
        assert first["match_id"] == last["match_id"] == match["match_id"]


def test_real_time_retracts_what_an_end_proves_wrong() -> None:
    """In real time an open end lies after the clock. A closing row with an earlier end shows that it did not;
    `earliest` waits until no row in time can have such an end.
    """
    rows: list[Row] = [("A", 0, None, "a1"), ("B", 1, None, "b1"), (None, None, 6, "a1"), (None, None, 4, "b1")]
    overlap = "EVENT PAL(A a overlap B b) WITHIN 1 minute OF STARTS"
    inserted, retracted = (2, ("insertion", "a1", "b1*")), (3, ("retraction", "a1", "b1*"))
    assert each(by_id(f"{overlap} REALTIME 1"), rows) == [inserted, retracted]
    assert each(by_id(f"{overlap} CONSISTENCY earliest"), rows) == []
    later: list[Row] = [*rows[:3], ("C", 11, 11, "c1"), ("C", 12, 12, "c2"), (None, None, 12, "b1")]
    expected = [(4, ("insertion", "a1", "b1*")), (5, ("completion", "a1", "b1"))]
    assert each(by_id(f"{overlap} CONSISTENCY earliest"), later) == expected


def test_a_switch_to_earliest_emits_what_is_certain() -> None:
    """A conservative matcher waits for the end of c1; `earliest` does not, and need not wait for another row."""
    live = by_id(f"{CHAIN} CONSISTENCY conservative")
    assert each(live, ROWS[:5]) == []
    assert told(live.switch("earliest")) == [("insertion", "a1", "b1", "c1*")]
    assert each(live, ROWS[5:]) == [(1, ("completion", "a1", "b1", "c1"))]


@pytest.mark.parametrize("clause", ["WITHIN 1 minute", "WHERE end(c) > start(c) WITHIN 1 minute OF STARTS"])
def test_what_needs_an_end_waits_for_it(clause: str) -> None:
    """A plain WITHIN, and an end in a condition."""
    live = by_id(f"EVENT PAL((A a overlap B b) before C c) {clause} REALTIME 1")
    assert each(live, ROWS) == [(6, ("insertion", "a1", "b1", "c1"))]


def test_an_open_event_may_forbid() -> None:
    """A match waits while an open event may still forbid it, and comes when it can no longer."""
    pattern = "EVENT PAL(A a, (!D d during_span), C c) RELATE a before c WITHIN 1 minute CONSISTENCY realtime"
    rows: list[Row] = [("A", 0, 1, "a1"), ("D", 2, None, "d1"), ("C", 5, 7, "c1"), (None, None, 9, "d1")]
    assert each(by_id(pattern), rows) == [(2, ("insertion", "a1", "c1"))]
    assert each(by_id(pattern), [*rows[:3], (None, None, 6, "d1")])[-1] == (3, ("retraction", "a1", "c1"))
    earliest = pattern.replace("realtime", "earliest")
    forbidden: list[Row] = [*rows[:3], (None, None, 6, "d1"), ("B", 30, 30, "b1")]
    assert each(by_id(earliest), forbidden) == []
    assert each(by_id(earliest), [*rows, ("B", 30, 30, "b1")]) == [(4, ("insertion", "a1", "c1"))]


def test_late_rows() -> None:
    """An opening row is late by its start and a closing row by its end; it leaves the event open."""
    live = by_id("EVENT PAL(A a) WITHIN 1 minute CONSISTENCY earliest")
    rows: list[Row] = [("A", 0, None, "a1"), ("B", 10, 10, "b1"), (None, None, 4, "a1"), ("A", 4, None, "a2")]
    assert each(live, rows) == [(2, ("late", "a1")), (3, ("late", "a2"))]
    assert each(live, [(None, None, 6, "a1")]) == [(0, ("insertion", "a1"))]
    assert (live.counts.late, live.counts.events) == (2, 5)


def test_an_event_that_is_open_for_too_long() -> None:
    """It is an error, or is dropped and counted, and its matches are retracted; so are events open at the end."""
    with pytest.raises(
        EventError, match=r"an event \(id: 'c1', begins: .*09\+00:00, ends: NULL\) is open for.*longer open_for"
    ):
        each(by_id(CHAIN, open_for="10 seconds"), [*ROWS[:5], ("B", 40, 40, "b2")])
    live = by_id(f"{CHAIN} CONSISTENCY earliest", open_for="10 seconds", nulls="drop")
    inserted, retracted = (4, ("insertion", "a1", "b1", "c1*")), (5, ("retraction", "a1", "b1", "c1*"))
    assert each(live, [*ROWS[:5], ("B", 40, None, "b2")]) == [inserted, retracted]
    assert (live.counts.unclosed, live.counts.matches) == (1, 0)
    assert told(live.finish()) == []
    assert live.counts.unclosed == 2
    for end, kept in ((19, 1), (20, 0)):
        live = by_id("EVENT PAL(C c) CONSISTENCY earliest", open_for="10 seconds", nulls="drop")
        live.process(table([("C", 9, None, "c1"), (None, None, end, "c1")]))
        live.finish()
        assert live.counts.matches == kept


def test_rows_that_cannot_be_used() -> None:
    """Without an id, with that of another event, or closing what is not open."""
    rows: list[Row] = [
        ("A", 0, None, None),
        ("A", 0, None, "a1"),
        ("A", 1, None, "a1"),
        (None, None, 3, "a2"),
        ("A", None, None, "a3"),
        ("A", 4, 3, "a4"),
        (None, None, 5, "a1"),
        ("A", 0, 5, "a1"),
    ]
    live = by_id("EVENT PAL(A a) CONSISTENCY earliest", nulls="drop")
    assert each(live, rows) == [(1, ("insertion", "a1*")), (6, ("completion", "a1"))]
    counts = live.counts
    assert (counts.null_ids, counts.repeated, counts.null_times, counts.reversed, counts.matches) == (1, 3, 1, 1, 1)
    messages = [
        r"row 1, counted from 0 \(id: NULL, begins: 1970-01-01 00:00:00\+00:00, ends: NULL\) has no id",
        r"row 1, counted from 0 \(id: 'a2', begins: NULL, ends: .*00:03\+00:00\) has an end and no start, and closes",
        r"row 1, counted from 0 \(id: 'a3', .*\) has neither start nor end",
        r"row 1, counted from 0 \(id: 'a4', .*\) has an event that ends before it starts",
    ]
    for row, message in zip((rows[0], *rows[3:6]), messages, strict=True):
        with pytest.raises(EventError, match=f"{message}.* give nulls='drop'"):
            by_id(CHAIN).process(table([("Z", 0, 1, "z"), row]))


def test_tables_with_opening_and_closing_rows() -> None:
    """`detect` joins the two rows of an event, in any order; events without both are an error or counted."""
    pattern = interval_pattern(CHAIN)
    assert len(detect(table(ROWS[::-1]), pattern, event_id="id", **NAMES)) == 1
    broken = [*ROWS[:6], ("A", 0, None, "a1"), ("B", 1, 2, None)]
    with pytest.raises(EventError, match=r"1 event is opened and no row closes it \(id: 'c1'\); 1 row has no id"):
        detect(table(broken), pattern, event_id="id", **NAMES)
    report = Report()
    detect(table(broken), pattern, event_id="id", nulls="drop", report=report, **NAMES)
    assert report.counts == IntervalCounts(events=8, unclosed=1, null_ids=1, repeated=1)
    with pytest.warns(
        CepheidWarning,
        match="dropped: 1 event that no row closes and 1 row without an id and 1 row whose id is repeated or not open",
    ):
        detect(table(broken), pattern, event_id="id", nulls="drop", **NAMES)


def test_messages_about_ids_name_rows() -> None:
    """The first rows of each fault, and what is wrong with them."""
    rows: list[Row] = [("A", 0, 1, "a"), ("A", 2, None, None), ("A", 3, 4, "a"), (None, None, 9, "c"), ("A", 5, 6, "a")]
    with pytest.raises(EventError) as caught:
        detect(table(rows), interval_pattern("EVENT PAL(A a)"), event_id="id", **NAMES)
    assert str(caught.value) == (
        "1 row has no id (id is NULL): row 1, counted from 0; 2 rows have the id of an event that is there already "
        "(id): row 2 ('a'), row 4 ('a'), counted from 0; 1 row has an end and no start, and no open event (id): "
        "row 3 ('c'), counted from 0. "
        'Drop such rows before, or with nulls="drop", which counts them in the report'
    )


def test_a_closing_row_before_the_start_is_named_as_such() -> None:
    """The message is about the row with the wrong end, and not about an event that no row closes."""
    rows: list[Row] = [("A", 5, None, "a"), (None, None, 3, "a"), ("A", 6, None, "b"), ("B", 0, 1, "c")]
    with pytest.raises(EventError) as caught:
        detect(table(rows), interval_pattern("EVENT PAL(A a)"), event_id="id", **NAMES)
    assert str(caught.value).startswith(
        "1 event is opened and no row closes it (id: 'b'); 1 row closes an event before its start (id): row 1 ('a'), "
        "counted from 0. "
    )


def test_events_that_end_before_they_start_are_named() -> None:
    """They are named by their ids, and together with other faults."""
    rows: list[Row] = [("A", 1, 2, "a"), ("A", 5, 3, "b")]
    with pytest.raises(EventError, match=r"1 that ends before it starts \('ends' is before 'begins'\) in event 'b'\."):
        detect(table(rows), interval_pattern("EVENT PAL(A a)"), event_id="id", **NAMES)
    with pytest.raises(EventError, match=r"\(id: 'c'\); 1 row ends before it starts \(id\): row 1 \('b'\), counted"):
        detect(table([*rows, ("A", 6, None, "c")]), interval_pattern("EVENT PAL(A a)"), event_id="id", **NAMES)


def test_the_start_of_a_closing_row_does_not_count() -> None:
    """An event has the start of the row that opens it, whatever start the row that closes it has."""
    rows: list[Row] = [("A", 1, None, "a"), ("A", 9, 4, "a")]
    live = by_id("EVENT PAL(A a) CONSISTENCY earliest")
    assert each(live, rows) == [(0, ("insertion", "a*")), (1, ("completion", "a"))]
    assert len(detect(table(rows), interval_pattern("EVENT PAL(A a)"), event_id="id", **NAMES)) == 1


def test_an_event_that_is_open_for_too_long_in_one_call_is_named() -> None:
    """Both of its rows, or its opening and a later row, come in one call."""
    for last in ((None, None, 12, "a"), ("B", 40, 40, "b")):
        with pytest.raises(
            EventError, match=r"an event \(id: 'a', begins: 1970-01-01 00:00:00\+00:00, ends: NULL\) is"
        ):
            by_id(CHAIN, open_for="10 seconds").process(table([("A", 0, None, "a"), last]))
    with pytest.raises(SchemaError, match="open_for: a length of time must be positive, got '0 seconds'"):
        by_id(CHAIN, open_for="0 seconds")


@given(
    rows=st.lists(st.tuples(st.sampled_from("ABD"), st.integers(0, 9), st.integers(0, 5)), max_size=12),
    second=st.integers(0, 15),
    consistency=st.sampled_from(["earliest", "realtime", "conservative"]),
)
def test_as_of_a_time_the_events_count_that_have_ended(
    rows: list[tuple[str, int, int]], second: int, consistency: str
) -> None:
    """Opening and closing rows give the rows that the whole events give as of the same time."""
    whole = [(kind, start, start + length, f"e{i}") for i, (kind, start, length) in enumerate(rows)]
    parts = [(kind, start, None, id_) for kind, start, _, id_ in whole] + [
        (None, None, end, id_) for *_, end, id_ in whole
    ]
    pattern = interval_pattern(f"EVENT PAL(A a before B b, !D d) WITHIN 6 seconds CONSISTENCY {consistency}")
    with catch_warnings(action="ignore"):
        found, expected = (
            detect(
                table([*given, ("Z", 0, 0, "z")]),
                pattern,
                event_id="id",
                as_of=f"1970-01-01T00:00:{second:02}Z",
                **NAMES,
            )
            for given in (parts, whole)
        )
    assert found == expected


def test_rows_of_events_are_opening_rows_with_their_ends() -> None:
    """`rows_per="event"` gives each event once, with the number of its opening row. Closing rows are in none."""
    options: dict[str, Any] = {"event_id": "id", "rows_per": "event"} | NAMES
    found = detect(table(ROWS), interval_pattern(CHAIN), unmatched=True, **options).to_pylist()
    assert [(row["row_number"], row["stage"], row["id"], row["ends"].second) for row in found] == [
        (0, "a", "a1", 4),
        (1, "b", "b1", 6),
        (4, "c", "c1", 14),
        (5, None, "z1", 11),
    ]


def test_closing_rows_are_no_unmatched_events() -> None:
    """Up to a time, rows of later times are no events of their own either."""
    options: dict[str, Any] = {"event_id": "id", "rows_per": "event"} | NAMES
    found = detect(table(ROWS), interval_pattern(CHAIN), unmatched=True, as_of="1970-01-01T00:00:05Z", **options)
    assert found["begins"].null_count == 0
    assert sorted(found["row_number"].to_pylist()) == [0, 1, 4, 5]


def test_what_is_refused() -> None:
    """Without `event_id` a NULL end is an error as before, and so are arguments that do not fit."""
    with pytest.raises(EventError, match="without a time"):
        matcher(CHAIN).process(table(ROWS))
    with pytest.raises(SchemaError, match=r"event_id: no column named 'ids'\. Did you mean 'id'"):
        matcher(CHAIN, event_id="ids")
    with pytest.raises(SchemaError, match="event_id: 'begins' is the column of an event's start; name the one that"):
        matcher(CHAIN, event_id="begins")
    with pytest.raises(SchemaError, match="event_id: 'ends' is the column of an event's end; name the one that"):
        detect(table(ROWS), interval_pattern(CHAIN), event_id="ends", **NAMES)
    with pytest.raises(SchemaError, match="open_for: events are open only where rows open them"):
        matcher(CHAIN, open_for="1 hour")
    with pytest.raises(SchemaError, match="changes: rows change the event that has their id"):
        matcher(CHAIN, changes="kind")
    with pytest.raises(SchemaError, match=r"changes: no column named 'kinds'\. Did you mean 'kind'"):
        matcher(CHAIN, event_id="id", changes="kinds")
    with pytest.raises(SchemaError, match="changes: the column 'begins' is of texts, not timestamp"):
        matcher(CHAIN, event_id="id", changes="begins")
    twice = pa.table([*table(ROWS).columns, table(ROWS).column("kind")], [*table(ROWS).column_names, "kind"])
    with pytest.raises(SchemaError, match="'kind'"):
        detect(twice, interval_pattern(CHAIN), event_id="id", changes="kind", **NAMES)
    with pytest.raises(SchemaError, match="open_for: events are open only where rows may still close them"):
        detect(table(ROWS), interval_pattern(CHAIN), event_id="id", open_for="1 hour", **NAMES)
    reads = "EVENT PAL(A a, (!D d gap WHERE end(d) > end(a)), B b) WITHIN 1 minute"
    with pytest.raises(
        PatternError, match="the condition of the negation of 'd' reads an end, which open events do no"
    ):
        by_id(reads)
    with pytest.warns(CepheidWarning, match=r"events that no row closes are stored for ever\. Give open_for"):
        by_id(CHAIN, open_for=None)


def test_snapshots_go_on() -> None:
    """A restored matcher emits what the original one emits: open events, their other columns, and matches are there."""
    pattern = CHAIN.replace("WITHIN", "WHERE c.user = 'u' WITHIN") + " CONSISTENCY earliest"
    rows = [(*row, "u") for row in ROWS]
    for stop in range(1, len(rows)):
        one, other = (by_id(pattern, columns=["id", "ends"]) for _ in range(2))
        one.process(table(rows[:stop]))
        other.restore(one.snapshot())
        assert other.counts == one.counts
        assert other.process(table(rows[stop:])) == one.process(table(rows[stop:]))
    with pytest.raises(SnapshotError, match="event_id"):
        matcher(pattern, "5 seconds", columns=["id", "ends"]).restore(one.snapshot())


def test_a_snapshot_has_no_ids_of_final_events() -> None:
    """It does not grow with the events that no row can change and that are not needed; those of late rows stay."""
    live = by_id("EVENT PAL(A a overlap B b) WITHIN 5 seconds OF STARTS", "2 seconds", nulls="drop")
    live.process(table([("A", n, n + 1, f"{n}") for n in range(100)]))
    few = len(live.snapshot())
    live.process(table([("A", n, n + 1, f"{n}") for n in range(100, 5_000)]))
    assert len(live.snapshot()) < 1.1 * few
    live.process(table([("A", 4_999, 5_000, "4999"), ("A", 4_998, 5_001, "5")]))
    assert live.counts.repeated == 1


def test_an_id_is_not_used_again_while_its_event_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A match that is emitted and waits for an end keeps its events, however many ids are forgotten."""
    monkeypatch.setattr(reading, "_MOST_CLOSED", 0)
    pattern = "EVENT SEQ(A a, B b) WITHIN 2 days OF STARTS REALTIME 1"
    live = by_id(pattern, "1 minute", open_for="2 days", nulls="drop")
    first: list[Row] = [("A", 0, 5, "x"), ("B", 10, None, "y"), *(("C", i, i, f"c{i}") for i in range(1000, 1100))]
    assert told(live.process(table(first))) == [("insertion", "x", "y*")]
    assert told(live.process(table([("A", 90_000, None, "x"), (None, None, 90_002, "y")]))) == [
        ("completion", "x", "y")
    ]
    assert live.counts.repeated == 1
    live.snapshot()


def test_the_limit_counts_matches() -> None:
    """An event that was open when it was joined counts once, and the message names the user's limit."""
    pattern = "EVENT PAL(A a, B b, C c, D d) RELATE d during a, d during b, d during c WITHIN 1 minute OF STARTS"
    live = by_id(pattern, "50 seconds", limits=Limits(max_matches_per_event=1))
    opening: list[Row] = [(kind, 0, None, kind) for kind in "ABC"]
    live.process(table([*opening, *((None, None, 40, kind) for kind in "ABC")]))
    live.process(table([("D", 2, 3, "d1")]))
    live.process(table([("A", 0, 30, "A2")]))
    with pytest.raises(
        LimitExceeded, match=r"more than 1 matches \(max_matches_per_event\)\. Give the .* raise the limit$"
    ):
        live.process(table([("D", 4, 5, "d2")]))


STORIES: list[list[Row]] = [
    [("A", None, 5, "x", "u"), ("A", 10, None, "x", "u"), ("A", None, 20, "x", "u")],
    [("A", 10, None, "x", "u"), ("A", None, None, "x", "u"), ("A", None, 20, "x", "u")],
    [("A", 10, None, "x", "u"), ("A", None, 5, "x", "u"), ("A", None, 20, "x", "u")],
    [("A", 0, 5, "x", "u"), ("A", 10, None, "x", "u"), ("A", None, 20, "x", "u")],
]
TIME = st.none() | st.integers(0, 6)
IDS = st.sampled_from(["x", "y", None])
USERS = st.sampled_from(["u", "u", "u", None])


@given(rows=st.lists(st.tuples(st.just("A"), TIME, TIME, IDS, USERS), min_size=1, max_size=6))
@example(rows=STORIES[0])
@example(rows=STORIES[1])
@example(rows=STORIES[2])
@example(rows=STORIES[3])
def test_tables_have_the_events_that_the_live_matcher_finds(rows: list[Row]) -> None:
    """`detect` and the matcher drop and count the same rows, whatever is wrong with them."""
    pattern, report = interval_pattern("EVENT PAL(A a)"), Report()
    with catch_warnings(action="ignore"):
        found = detect(table(rows), pattern, event_id="id", key="user", nulls="drop", report=report, **NAMES)
        live = matcher(pattern, None, event_id="id", key="user", nulls="drop")
    emitted = live.process(table(rows)).to_pylist() + live.finish().to_pylist()
    assert {(row["a"]["id"], row["a"]["begins"], row["a"]["ends"]) for row in emitted} == {
        (row["a"]["id"], row["a"]["begins"], row["a"]["ends"]) for row in found.to_pylist()
    }
    names = ("null_keys", "null_times", "null_ids", "reversed", "repeated", "unclosed")
    assert [getattr(report.counts, name) for name in names] == [getattr(live.counts, name) for name in names]


@pytest.mark.parametrize("number", [float("inf"), "5", 1.7, 2**70])
def test_a_refused_snapshot_changes_nothing(number: object) -> None:
    """A number in the header that is none: the matcher goes on as if nothing had been restored."""
    live = by_id(f"{CHAIN} CONSISTENCY earliest")
    live.process(table(ROWS[:4]))
    before = live.snapshot()
    snapshot = from_bytes(before)
    header = snapshot.header | {"kept": snapshot.header["kept"] | {"matches": number}}
    with pytest.raises(SnapshotError, match="parts of the wrong kind"):
        live.restore(to_bytes(snapshot._replace(header=header)))
    with pytest.raises(SnapshotError, match="its open events"):
        live.restore(
            to_bytes(snapshot._replace(batches=snapshot.batches | {"opening_rows": table(ROWS[:1]).to_batches()[0]}))
        )
    assert live.snapshot() == before
    assert each(live, ROWS[4:]) == [(0, ("insertion", "a1", "b1", "c1*")), (2, ("completion", "a1", "b1", "c1"))]


@pytest.mark.parametrize("consistency", ["earliest", "realtime", "conservative"])
def test_the_net_output_is_that_of_the_whole_events(consistency: str) -> None:
    """At the end, the matches inserted and not retracted are those that `detect` finds in the events that were not
    late, with the same ids, in any division into calls; little is held.
    """
    random = Random(consistency)
    rows: list[tuple[float, Row]] = []
    for i in range(1500):
        kind, start = random.choice("AABBCD"), i // 4 + random.randrange(6)
        end, user, name = start + random.randrange(12), random.choice("uv"), f"e{i}"
        delay = random.choice([0, 0, 3])
        rows += [(start + delay, (kind, start, None, name, user)), (end + delay + 0.5, (kind, None, end, name, user))]
    arriving = [row for _, row in sorted(rows, key=lambda one: one[0])]
    pattern = (
        f"EVENT PAL((A a overlap B b) (!D d gap) before C c) WITHIN 12 seconds OF STARTS CONSISTENCY {consistency}"
    )
    live = by_id(pattern, "8 seconds", key="user", open_for="1 minute")
    calls = [live.process(table(arriving[first : first + 30])) for first in range(0, len(arriving), 30)]
    live.snapshot()
    assert live.counts.held < 400
    emitted = pa.concat_tables([*calls, live.finish()])
    left = Counter[str]()
    for row in emitted.select(["kind", "match_id"]).to_pylist():
        left[row["match_id"]] += {"insertion": 1, "retraction": -1, "completion": 0}[row["kind"]]
    expected = detect(table(arriving), interval_pattern(pattern), key="user", event_id="id", **NAMES)
    assert live.counts.late == 0
    assert sorted(left.elements()) == sorted(expected.column("match_id").to_pylist())
    assert live.counts.matches == len(expected) > 200
    assert ("completion" in emitted.column("kind").to_pylist()) == (consistency != "conservative")


USED_AGAIN = "EVENT PAL(A a before B b) WITHIN 1 minute OF STARTS"


def after_a_final_event(*first: Any, **options: Any) -> IntervalMatcher:
    """A matcher that has forgotten the event x, which is final."""
    live = by_id(USED_AGAIN, **options)
    live.process(table([("A", 0, 1, "x", *first), ("A", 1000, 1001, "z", "u")]))
    live.snapshot()
    return live


def test_an_id_that_is_used_again_is_stored_once() -> None:
    """A matcher restored from a snapshot goes on with an event that has the id of a final one."""
    live, restored = after_a_final_event(), by_id(USED_AGAIN)
    live.process(table([("A", 2000, None, "x")]))
    restored.restore(live.snapshot())
    rest: list[Row] = [(None, None, 2003, "x"), ("B", 2010, 2011, "y"), ("A", 2100, 2101, "w")]
    expected = each(live, rest)
    assert each(restored, rest) == expected
    assert expected == [(2, ("insertion", "x", "y"))]


def test_an_id_whose_former_event_had_no_key() -> None:
    """The new event has a key, and is matched."""
    live = after_a_final_event(None, nulls="drop", key="user")
    live.process(table([("A", 2000, None, "x", "u"), (None, None, 2003, "x", "u"), ("B", 2010, 2011, "y", "u")]))
    assert told(live.process(table([("A", 2100, 2101, "w", "u")]))) == [("insertion", "x", "y")]
    assert live.counts.null_keys == 1


@pytest.mark.parametrize("consistency", ["earliest", "realtime", "conservative"])
def test_an_id_can_be_used_again_whether_or_not_there_was_a_snapshot(consistency: str) -> None:
    """What is in memory but final does not count; the new event is matched, and the former matches stay."""
    first: list[Row] = [("A", 0, 1, "x"), ("B", 3, 4, "y"), ("A", 1000, 1001, "z")]
    again: list[Row] = [("A", 1002, None, "x"), (None, None, 1003, "x"), ("B", 1010, 1011, "y"), ("Z", 1100, 1100, "w")]
    found = []
    for snapshots in (False, True):
        live = by_id(f"{USED_AGAIN} CONSISTENCY {consistency}")
        calls = [live.process(table(first))]
        if snapshots:
            live.snapshot()
        calls += [live.process(table(again)), live.finish()]
        found.append([told(rows) for rows in calls])
    assert found[0] == found[1]
    assert sorted(one for rows in found[0] for one in rows) == [
        ("insertion", "x", "y"),
        ("insertion", "x", "y"),
        ("insertion", "z", "y"),
    ]


def test_closing_rows_of_pandas_without_starts() -> None:
    """A column of NaT alone has no zone in pandas; it fits the column of starts."""
    live = by_id("EVENT PAL(A a) WITHIN 1 minute OF STARTS CONSISTENCY conservative")
    live.process(table([("A", 0, None, "a")]))
    closing = table([(None, None, 5, "a")]).to_pandas().assign(begins=pd.NaT)
    assert closing["begins"].dtype.kind == "M"
    assert closing["begins"].dt.tz is None
    live.process(closing)
    assert told(live.finish()) == [("insertion", "a")]
