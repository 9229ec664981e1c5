"""Events that later rows revise and withdraw, through the public calls."""

from __future__ import annotations

from typing import Any
from warnings import catch_warnings

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.intervals.events import NAMES, Row, interval_pattern, matcher, table

from cepheid.detect import detect
from cepheid.errors import CepheidWarning, EventError, SchemaError, SnapshotError
from cepheid.intervals import IntervalMatcher
from cepheid.lang.stages.pattern import Pattern
from cepheid.requests.report import Report

OVERLAP = "EVENT PAL(A a overlap B b) WITHIN 1 minute"
NO_D = "EVENT PAL(A a, (!D d during_span), C c) RELATE a before c WITHIN 1 minute"

Change = tuple[str, Row]


def insertion(*row: Any) -> Change:
    return "insertion", row


def retraction(id_: str, kind: str | None = None, start: int | None = None, end: int | None = None) -> Change:
    return "retraction", (kind, start, end, id_)


def changes(given: list[Change]) -> pa.Table:
    rows = table([row for _, row in given])
    return rows.append_column("change", pa.array([change for change, _ in given], pa.string()))


def revised(pattern: str, lateness: str | None = "5 seconds", **options: Any) -> IntervalMatcher:
    schema = changes([insertion("A", 0, 1, "a")]).schema
    options = {"event_id": "id", "changes": "change", "open_for": "1 hour"} | options
    return IntervalMatcher(interval_pattern(pattern), schema, lateness=lateness, **(NAMES | options))


def emitted(live: IntervalMatcher, *given: Change) -> list[str]:
    """What these changes make, one after the other: + insertion, - retraction, = completion, each with ids and ends."""
    signs = {"insertion": "+", "retraction": "-", "completion": "="}
    found = []
    for change in given:
        for row in live.process(changes([change])).to_pylist():
            if row["kind"] == "late":
                found.append(f"late {row['event']['id']}")
                continue
            events = [row[name] for name in row if len(name) == 1]
            found.append(signs[row["kind"]] + " ".join(f"{e['id']}:{e['ends'].second}" for e in events))
    return found


A, B = insertion("A", 0, 4, "a"), insertion("B", 2, 8, "b")


def test_another_end_is_a_revision() -> None:
    """A match that still holds gets a row of kind completion, one that does not is retracted, a new one is inserted."""
    live = revised(f"{OVERLAP} REALTIME 1")
    assert emitted(live, A, B) == ["+a:4 b:8"]
    assert emitted(live, insertion(None, None, 6, "a")) == ["=a:6 b:8"]
    assert emitted(live, insertion("A", 0, 9, "a")) == ["-a:6 b:8"]
    assert emitted(live, insertion("B", 2, 11, "b")) == ["+a:9 b:11"]
    assert live.counts.matches == 1


def test_what_an_event_forbids_stays_forbidden_when_its_id_is_used_again() -> None:
    """The former event is final; the new one with its id lies elsewhere."""
    given = [insertion("A", 0, 1, "a"), insertion("D", 2, 3, "d"), insertion("C", 4, 5, "c")]
    later = [insertion("B", 90, 91, "b"), insertion("D", 92, 93, "d"), insertion("B", 98, 99, "later")]
    for consistency in ("REALTIME 1", "CONSISTENCY earliest", "CONSISTENCY conservative"):
        live = revised(f"EVENT PAL(A a, (!D d gap), C c) RELATE a before c WITHIN 8 seconds {consistency}")
        assert emitted(live, *given, *later) == []


def test_the_next_event_that_forbids_a_match_is_found_when_one_is_withdrawn() -> None:
    """Only one of several that forbid a match is noted, the one that ends first."""
    given = [insertion("A", 0, 1, "a"), insertion("C", 6, 7, "c")]
    forbidding = [insertion("D", 2, 5, "d1"), insertion("D", 3, 4, "d2"), insertion("D", 3, 5, "d3")]
    live = revised(f"{NO_D} REALTIME 1")
    assert emitted(live, *given, *forbidding) == ["+a:1 c:7", "-a:1 c:7"]
    assert emitted(live, retraction("d2"), retraction("d1"), insertion(None, None, 9, "d3")) == ["+a:1 c:7"]
    assert emitted(live, insertion(None, None, 4, "d3")) == ["-a:1 c:7"]


def test_a_withdrawn_event_is_in_no_match_and_forbids_none() -> None:
    """Its id may be used again at once."""
    live = revised(f"{NO_D} REALTIME 1")
    given = [insertion("A", 0, 1, "a"), insertion("C", 5, 7, "c"), insertion("D", 3, 4, "d")]
    assert emitted(live, *given) == ["+a:1 c:7", "-a:1 c:7"]
    assert emitted(live, retraction("d")) == ["+a:1 c:7"]
    assert emitted(live, retraction("c"), insertion("C", 6, 8, "c")) == ["-a:1 c:7", "+a:1 c:8"]


def test_the_earliest_match_comes_when_no_row_can_undo_it() -> None:
    """None of its events can be withdrawn, and it holds whatever ends they get. A later end is a completion."""
    given = [A, B, insertion("Z", 9, 9, "z"), insertion("Z", 9, 10, "y"), insertion("B", None, 12, "b")]
    live = revised(f"{OVERLAP} OF STARTS CONSISTENCY earliest")
    assert [emitted(live, one) for one in given] == [[], [], [], ["+a:4 b:8"], ["=a:4 b:12"]]
    with pytest.warns(CepheidWarning, match="stored for ever where lateness is measured at ends"):
        by_end = revised(f"{OVERLAP} OF STARTS CONSISTENCY earliest", late_by="end")
    rest = [insertion("Z", 9, 17, "x"), insertion("Z", 17, 18, "w")]
    assert [emitted(by_end, one) for one in [*given, *rest]] == [*[[]] * 6, ["+a:4 b:12"]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [(insertion("D", None, 8, "d"), ["+a:1 c:7"]), (retraction("d"), ["+a:1 c:7"]), (insertion("Z", 8, 8, "x"), [])],
)
@pytest.mark.parametrize("first", ["earliest", "conservative"])
def test_the_earliest_match_depends_on_negated_events(change: Change, expected: list[str], first: str) -> None:
    """An event forbids a match until it is revised or withdrawn; the match comes when neither can happen any more. It
    does so, too, if the matcher was of another consistency first.
    """
    live = revised(f"EVENT PAL(A a, (!D d gap), C c) RELATE a before c WITHIN 1 minute OF STARTS CONSISTENCY {first}")
    given = [insertion("A", 0, 1, "a"), insertion("C", 5, 7, "c"), insertion("D", 3, 4, "d"), change]
    assert emitted(live, *given, insertion("Z", 9, 10, "z")) == []
    if first != "earliest":
        live.switch("earliest")
    assert emitted(live, insertion("Z", 9, 11, "y")) == expected
    assert emitted(live, insertion("Z", 20, 30, "w")) == []


@pytest.mark.parametrize("consistency", ["earliest", "conservative"])
def test_without_real_time_a_match_waits_until_no_row_can_change_it(consistency: str) -> None:
    """It comes when the lateness has passed since its end, and is never retracted. With WITHIN any other end could
    undo it.
    """
    live = revised(f"{OVERLAP} CONSISTENCY {consistency}")
    given = [A, B, insertion("Z", 9, 13, "z"), insertion("B", None, 9, "b"), insertion("Z", 9, 14, "y")]
    assert emitted(live, *given) == []
    assert emitted(live, insertion("Z", 9, 15, "x")) == ["+a:4 b:9"]


def test_late_changes() -> None:
    """A revision is late if one of both ends is, a withdrawal if its event would be. Late rows are emitted and counted,
    and change nothing.
    """
    live = revised(f"{OVERLAP} REALTIME 1")
    emitted(live, A, B, insertion("Z", 11, 12, "z"))
    assert emitted(live, insertion("B", 2, 6, "b")) == ["late b"]
    assert emitted(live, insertion("A", 0, 7, "a")) == ["late a"]
    assert emitted(live, retraction("b")) == ["late b"]
    assert emitted(live, retraction("a", "A", 0, 4)) == ["late a"]
    assert emitted(live, insertion("B", 2, 7, "b")) == ["=a:4 b:7"]
    assert (live.counts.late, live.counts.matches) == (4, 1)
    by_end = revised(f"{OVERLAP} REALTIME 1", late_by="end")
    emitted(by_end, A, B, insertion("Z", 11, 12, "z"))
    assert emitted(by_end, retraction("b")) == ["-a:4 b:8"]


def test_rows_of_one_event_stay_in_their_order() -> None:
    """Within one call too: the last row of an event says what it is."""
    live = revised(f"{OVERLAP} REALTIME 1", "1 minute")
    given = [A, B, insertion("A", 0, 3, "a"), retraction("b"), insertion("B", 2, 5, "b"), insertion("A", 0, 9, "x")]
    rows = live.process(changes(given)).to_pylist()
    final = {row["match_id"]: row for row in rows}
    assert [(row["kind"], row["a"]["ends"].second) for row in final.values()] == [("insertion", 3)]


def test_open_events_are_revised_and_withdrawn() -> None:
    """The row that closes an event is no revision; further ones are. An open event may be withdrawn."""
    live = revised(f"{OVERLAP} OF STARTS REALTIME 1")
    assert live.process(changes([A, insertion("B", 2, None, "b")]))["kind"].to_pylist() == ["insertion"]
    assert emitted(live, insertion(None, None, 6, "b"), insertion(None, None, 7, "b")) == ["=a:4 b:6", "=a:4 b:7"]
    live.process(changes([insertion("A", 6, None, "o")]))
    assert emitted(live, retraction("o"), insertion("A", 6, 7, "o")) == []
    assert live.counts.unclosed == 0


def test_rows_that_change_nothing_are_refused() -> None:
    """A row that repeats an event, moves its start, or withdraws what is not there; and other words in the column."""
    wrong = {
        r"row 0, counted from 0 \(id: 'b', begins: .*\) repeats an event": B,
        r"row 0, counted from 0 \(id: 'b', .*\) gives an event another start, and does not withdraw it": insertion(
            "B", 3, 8, "b"
        ),
        r"row 0, counted from 0 \(id: 'b', .*\) has an event that ends before it starts": insertion("B", None, 1, "b"),
        r"row 0, counted from 0 \(id: 'x', .*\) withdraws an event that is not there": retraction("x"),
        r"row 0, counted from 0: the column 'change' of changes has 'delete'\. It may be 'insertion', 'completion'": (
            "delete",
            B[1],
        ),
    }
    for message, change in wrong.items():
        live = revised(OVERLAP)
        live.process(changes([A, B]))
        with pytest.raises(EventError, match=message):
            live.process(changes([change]))
    dropping = revised(OVERLAP, nulls="drop")
    assert emitted(dropping, A, B, B, insertion("B", 3, 8, "b"), retraction("x")) == []
    assert dropping.counts.repeated == 3


def test_matches_are_events_of_another_matcher() -> None:
    """What a matcher emits, another one takes as events that are inserted, closed and withdrawn."""
    first = revised(f"{OVERLAP} REALTIME 1")
    given = [first.process(changes([one])) for one in (A, B, insertion("B", 2, 9, "b"), insertion("A", 0, 20, "a"))]
    pair = interval_pattern("EVENT PAL(pattern m) REALTIME 1").taxonomy("pattern")
    options: dict[str, Any] = {"time": ("match_start", "match_end"), "event_id": "match_id", "changes": "kind"}
    second = IntervalMatcher(pair, given[0], lateness=None, **options)
    made = [[row["kind"] for row in second.process(rows).to_pylist()] for rows in given]
    assert made == [[], ["insertion"], ["completion"], ["retraction"]]


@settings(max_examples=60)
@given(
    story=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.none() | st.integers(0, 6)), max_size=14),
    consistency=st.sampled_from(["realtime", "earliest", "conservative"]),
    cut=st.integers(0, 14),
)
def test_what_is_left_is_what_detect_finds_in_the_final_events(
    story: list[tuple[str, int, int | None]], consistency: str, cut: int
) -> None:
    """Insertions without their retractions, also with a snapshot in between. A length of None withdraws the event."""
    live = revised(f"{NO_D} CONSISTENCY {consistency}", None)
    kinds, now = dict(zip("abcd", "ADCA", strict=True)), dict[str, Row]()
    left: set[str] = set()
    for number, (id_, start, length) in enumerate(story):
        if number == cut:
            other = revised(f"{NO_D} CONSISTENCY {consistency}", None)
            other.restore(live.snapshot())
            live = other
        if length is None:
            if id_ not in now:
                continue
            change = retraction(id_)
            del now[id_]
        else:
            begins = now[id_][1] if id_ in now else start
            row = (kinds[id_], begins, begins + length, id_)
            if now.get(id_) == row:
                continue
            change, now[id_] = insertion(*row), row
        left = _applied(left, live.process(changes([change])))
    left = _applied(left, live.finish())
    found = detect(table([*now.values(), ("Z", 0, 1, "z")]), interval_pattern(NO_D), event_id="id", **NAMES)
    assert left == set(found["match_id"].to_pylist())


def _applied(left: set[str], rows: pa.Table) -> set[str]:
    """The match_ids of what is left after these rows."""
    for row in rows.to_pylist():
        assert (row["kind"] == "insertion") != (row["match_id"] in left)
        left = left - {row["match_id"]} if row["kind"] == "retraction" else left | {row["match_id"]}
    return left


def detected(pattern: str, given: list[Change], **options: Any) -> pa.Table:
    """What detect finds in a table of these changes."""
    options = {"event_id": "id", "changes": "change"} | NAMES | options
    return detect(changes(given), interval_pattern(pattern), **options)


TIMES = st.none() | st.integers(0, 9)
STORIES = st.lists(
    st.tuples(
        st.sampled_from(["insertion", "insertion", "completion", "retraction"]),
        st.tuples(st.sampled_from("ADC"), TIMES, TIMES, st.none() | st.sampled_from("abcde")),
    ),
    max_size=16,
)


@settings(max_examples=60)
@given(given_=STORIES, consistency=st.sampled_from(["realtime", "conservative"]), cut=st.integers(0, 16))
def test_a_table_of_changes_has_what_is_left_of_them(given_: list[Change], consistency: str, cut: int) -> None:
    """Rows of any kind, faulty ones too: the matches are those that a live matcher has left, and the counts its own."""
    live = revised(f"{NO_D} CONSISTENCY {consistency}", None, nulls="drop", open_for=None)
    left, report, first = set[str](), Report(), [insertion("Z", 0, 0, "y"), insertion("Z", 0, 0, "z")]
    with catch_warnings(action="ignore"):
        for other, part in zip(first, (given_[:cut], given_[cut:]), strict=True):
            left = _applied(left, live.process(changes([other, *part])))
        left = _applied(left, live.finish())
        found = detected(NO_D, [*first, *given_], nulls="drop", report=report)
    assert set(found["match_id"].to_pylist()) == left
    names = ("events", "null_times", "null_ids", "reversed", "repeated", "unclosed", "matches")
    assert [getattr(report.counts, name) for name in names] == [getattr(live.counts, name) for name in names]


CHANGED = [
    A,
    insertion("B", 2, None, "b"),
    insertion("A", 1, 5, "gone"),
    insertion(None, None, 6, "b"),
    retraction("gone"),
    insertion("A", 0, 5, "a"),
]


def test_rows_of_events_are_first_rows_with_last_ends() -> None:
    """Revisions, withdrawals and withdrawn events are no unmatched events either; all other columns are the first's."""
    options: dict[str, Any] = {"rows_per": "event", "unmatched": True, "columns": ["id", "ends"]}
    found = detected(OVERLAP, [*CHANGED, insertion("Z", 8, 9, "z")], **options).to_pylist()
    assert [(row["row_number"], row["stage"], row["id"], row["ends"].second) for row in found] == [
        (0, "a", "a", 5),
        (1, "b", "b", 6),
        (6, None, "z", 9),
    ]


def test_errors_of_a_table_of_changes() -> None:
    """They name the row with its id and times, or the event; and what cannot be asked for."""
    for message, change in {
        r"row 6, counted from 0 \(id: 'a', begins: 1970-.*00:00:02\+00:00, ends: .*\) gives an event another start": (
            "A",
            2,
            9,
            "a",
        ),
        r"row 6, counted from 0 \(id: NULL, .*\) has no id\. Leave such rows out, or give nulls='drop'": (
            "A",
            2,
            9,
            None,
        ),
        r"^1 event is opened and no row closes it \(id: 'c'\)\. Drop such rows before": ("A", 7, None, "c"),
    }.items():
        with pytest.raises(EventError, match=message):
            detected(OVERLAP, [*CHANGED, insertion(*change)])
    with pytest.raises(EventError, match="row 6, counted from 0: the column 'change' of changes has 'late'"):
        detected(OVERLAP, [*CHANGED, ("late", B[1])])
    with pytest.raises(SchemaError, match=r"changes: no column named 'changed'\. Did you mean 'change'"):
        detected(OVERLAP, CHANGED, changes="changed")
    with pytest.raises(SchemaError, match="changes: rows change the event that has their id: name the column of ids"):
        detected(OVERLAP, CHANGED, event_id=None)
    with pytest.raises(SchemaError, match="changes: a row that withdraws an event has no time of its own, which as_of"):
        detected(OVERLAP, CHANGED, as_of="1970-01-01T00:00:05Z")
    with pytest.raises(SchemaError, match="changes: rows change intervals; leave it out of stages"):
        detect(changes(CHANGED), Pattern.begin("a"), time="begins", changes="change")


def test_keys_and_kinds_of_tables() -> None:
    """An event has the key of its first row; tables of pandas and lazy frames of polars are taken, too."""
    table_ = changes(CHANGED)
    keyed = table_.set_column(
        table_.schema.get_field_index("user"), "user", pa.array(["u", "u", None, None, None, None], pa.string())
    )
    options: dict[str, Any] = {"event_id": "id", "changes": "change", "key": "user"} | NAMES
    pattern = interval_pattern(OVERLAP)
    (row,) = detect(keyed, pattern, **options).to_pylist()
    assert (row["user"], row["a"]["ends"].second, row["b"]["ends"].second) == ("u", 5, 6)
    assert detect(keyed.to_pandas(), pattern, **options)["match_id"].tolist() == [row["match_id"]]
    lazily = detect(pl.from_arrow(keyed).lazy(), pattern, **options)  # type: ignore[union-attr]
    assert lazily.collect()["match_id"].to_list() == [row["match_id"]]


def test_a_snapshot_is_of_a_matcher_with_the_same_changes() -> None:
    """A matcher without `changes` refuses it, and the first rows of revisable events are in it."""
    live = revised(f"{OVERLAP} REALTIME 1")
    emitted(live, A, B)
    other = revised(f"{OVERLAP} REALTIME 1")
    other.restore(live.snapshot())
    assert other.counts == live.counts
    assert emitted(other, insertion(None, None, 7, "b")) == ["=a:4 b:7"]
    with pytest.raises(SnapshotError, match="changes"):
        matcher(f"{OVERLAP} REALTIME 1", "5 seconds", event_id="id", open_for="1 hour").restore(live.snapshot())


def test_memory_is_bounded_by_window_and_lateness() -> None:
    """Events that no row in time can revise and no match can contain are forgotten."""
    live = revised(f"{OVERLAP} REALTIME 1")
    for start in range(0, 1000, 10):
        live.process(
            changes([insertion("A", start, start + 4, f"a{start}"), insertion("B", start + 2, start + 8, f"b{start}")])
        )
    live.snapshot()
    assert live.counts.held <= 2 * 8
    assert live.counts.open_matches <= 2
