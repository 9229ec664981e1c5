"""A Matcher finds the same occurrences in arriving events as `detect` finds in all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid import (
    CepheidWarning,
    LimitExceeded,
    Limits,
    Matcher,
    OccurrencePattern,
    PatternError,
    SnapshotError,
    detect,
)
from occurrences.shop import at, shop, spans

pytestmark = pytest.mark.filterwarnings("ignore:a matcher keeps what is open")

COLUMNS = shop([]).schema
PATTERNS = [
    ("(A; B) - C", "recent"),
    ("((A & B)_3s; C) - (A; A)", "recent"),
    ("A + 2s; (B | C)", "recent"),
    ("(?a:A; ?b:B)[a.price = b.price] -[c.price > a.price] ?c:C", "unrestricted"),
    ("(?a:A; ?b:(B + 1s))_5s[end(b) - start(a) > INTERVAL '2' SECOND]", "unrestricted"),
    ("A; B; C", "chronicle"),
    ("A & (B; C)", "cumulative"),
]


def pattern(text: str, policy: str | None = None) -> OccurrencePattern:
    made = OccurrencePattern.of(text).taxonomy("type")
    return made if policy is None else made.policy(policy)


def matcher(text: str, policy: str | None = None, **arguments: Any) -> Matcher:
    return Matcher(pattern(text, policy), COLUMNS, time="at", **arguments)


def sorted_rows(tables: Sequence[pa.Table]) -> list[dict[str, Any]]:
    """The rows ordered by key and end; rows with the same end are ordered by id."""
    rows = pa.concat_tables(tables).to_pylist()
    return sorted(rows, key=lambda row: (row["user"], row["match_end"], row["match_id"]))


events = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from("ABC"), st.sampled_from("uv"), st.integers(0, 2)),
    max_size=14,
    unique_by=lambda row: row[:3],
).map(sorted)


@pytest.mark.parametrize(("text", "policy"), PATTERNS)
@settings(max_examples=8, deadline=None)
@given(rows=events, data=st.data())
def test_any_split(text: str, policy: str, rows: list[Any], data: st.DataObject) -> None:
    """However events are split into batches, and with a snapshot between any two batches, a matcher finds what `detect`
    finds.
    """
    arguments: dict[str, Any] = {"key": "user", "sequence": "type"}
    expected = detect(shop(rows), pattern(text, policy), time="at", **arguments)
    live = matcher(text, policy, lateness="0 seconds", **arguments)
    found, begin = [], 0
    for end in sorted({*data.draw(st.lists(st.integers(0, len(rows)), max_size=4)), len(rows)}):
        found.append(live.process(shop(rows[begin:end])))
        if data.draw(st.booleans()):
            snapshot = live.snapshot()
            live = matcher(text, policy, lateness="0 seconds", **arguments)
            live.restore(snapshot)
        begin = end
    found.append(live.finish())
    assert sorted_rows(found) == sorted_rows([expected])
    assert live.counts.matches == expected.num_rows
    assert live.counts.open_partial_matches == 0


@settings(max_examples=8, deadline=None)
@given(rows=events, random=st.randoms(use_true_random=False))
def test_any_order_within_the_lateness(rows: list[Any], random: Any) -> None:
    """Events that arrive within the lateness are matched as if they had arrived in order."""
    text = "(A; B) - (C + 1s)"
    expected = detect(shop(rows), pattern(text, "recent"), time="at", key="user")
    late = sorted(rows, key=lambda row: row[0] + random.randint(0, 3))
    live = matcher(text, key="user", lateness="3 seconds")
    found = [live.process(shop([row])) for row in late] + [live.finish()]
    assert sorted_rows(found) == sorted_rows([expected])
    assert live.counts.late == 0


def test_the_recent_policy_is_the_default() -> None:
    """A Matcher finds the recent occurrences by default; `detect` in a table finds all."""
    rows = [(1, "A", "u", 1), (2, "A", "u", 1), (3, "B", "u", 1)]
    live = matcher("A; B")
    live.process(shop(rows))
    assert spans(live.finish().to_pylist()) == [(2, 3)]
    assert spans(detect(shop(rows), pattern("A; B"), time="at").to_pylist()) == [(1, 3), (2, 3)]
    with pytest.warns(CepheidWarning, match="policy 'recent' with the condition"):
        matcher("(?a:A; ?b:B)[a.price = b.price]")


def test_time_is_advanced() -> None:
    """An occurrence is emitted when the watermark is after its end; a temporal event too, without any further event."""
    live = matcher("A + 2s")
    assert live.process(shop([(1, "A", "u", 1)])).num_rows == 0
    assert live.advance_time(at(2)).num_rows == 0
    assert live.counts.open_partial_matches == 1
    assert spans(live.advance_time(at(3)).to_pylist()) == [(3, 3)]
    assert live.process(shop([(3, "A", "u", 1)])).num_rows == 0
    assert live.counts.late == 1


def test_late_events_are_rows() -> None:
    """With "late" among the outputs, a late event is a row, and rows of matches have their kind."""
    arguments: dict[str, Any] = {"lateness": "3 seconds", "key": "user", "columns": ["price"]}
    live = matcher("?a:A; B", outputs=("matches", "late"), **arguments)
    rows = live.process(shop([(1, "A", "u", 1), (2, "B", "u", 2), (9, "C", "u", 3)])).to_pylist()
    assert [(row["kind"], row["pattern"], row["a"]["price"], row["event"]) for row in rows] == [
        ("match", "pattern", 1, None)
    ]
    (late,) = live.process(shop([(2, "B", "v", 5), (8, "B", "v", 6)])).to_pylist()
    messages = {
        name: value for name, value in late.items() if value is not None and name not in ("match_id", "detected_at")
    }
    assert messages == {"kind": "late", "pattern": "pattern", "user": "v", "event": {"price": 5, "type": "B"}}
    assert at(5) < late["detected_at"] < at(6)
    again = matcher("?a:A; B", outputs="late", measures={"n": "a.price"}, **arguments)
    again.process(shop([(1, "A", "u", 1), (2, "B", "u", 2), (9, "C", "u", 3)]))
    (row,) = again.process(shop([(2, "B", "v", 5)])).to_pylist()
    assert (row["match_id"], row["n"], [*row][-2:]) == (late["match_id"], None, ["n", "event"])
    assert (again.counts.matches, again.counts.late) == (1, 1)


@pytest.mark.parametrize("consistency", [None, "realtime"])
def test_equal_late_events_have_different_ids(consistency: str | None) -> None:
    """Equal late events have different ids: within one call, in later calls, and after a snapshot."""
    arguments: dict[str, Any] = {"outputs": "late", "lateness": "1 second", "consistency": consistency}
    live = matcher("A; B", **arguments)
    live.process(shop([(9, "A", "u", 1)]))
    late, other = shop([(1, "A", "u", 1)]), shop([(1, "B", "u", 1)])
    ids = [*live.process(pa.concat_tables([late, other, late])).column("match_id").to_pylist()]
    state = live.snapshot()
    for _ in range(2):
        ids += live.process(late).column("match_id").to_pylist()
    assert len({*ids}) == len(ids) == 5
    again = matcher("A; B", **arguments)
    again.restore(state)
    assert again.process(late).column("match_id").to_pylist() == ids[3:4]


def test_measures() -> None:
    """Measures are SQL over variables; they take the place of the variables and events."""
    live = matcher("?a:A; ?b:B", measures={"sum": "a.price + b.price"})
    live.process(shop([(1, "A", "u", 1), (2, "B", "u", 2)]))
    (row,) = live.finish().to_pylist()
    assert row["sum"] == 3


def test_limits() -> None:
    """Exceeding a limit is an error, or the occurrences with the earliest start are dropped and counted."""
    rows = shop([(second, "A", "u", second) for second in range(30)])
    live = matcher("A; A", "unrestricted", limits=Limits(max_partial_matches=10))
    live.process(rows)
    with pytest.raises(LimitExceeded, match="a key keeps more than 10 occurrences open"):
        live.finish()
    live = matcher("A; A", "unrestricted", limits=Limits(max_partial_matches=10, on_limit="drop"))
    live.process(rows)
    assert live.finish().num_rows == sum(range(10)) + 20 * 10
    assert live.counts.dropped_partial_matches == 20
    live = matcher("A; A", "unrestricted", limits=Limits(max_matches_per_event=5, on_limit="drop"))
    live.process(rows)
    found = live.finish().to_pylist()
    assert len(found) == sum(range(5)) + 25 * 5
    assert spans(found)[-5:] == [(second, 29) for second in range(24, 29)]
    assert live.counts.dropped_matches == 30 * 29 // 2 - len(found)


@pytest.mark.parametrize("text", ["(A; A)_3s", "((A & A) - (B; B))_3s", "(A; A)_3s | (B; C)_3s"])
def test_what_is_too_old_counts_for_no_limit(text: str) -> None:
    """Occurrences outside their window are forgotten before a limit is checked, for every operator."""
    rows = shop([(second, "B", "u", second) for second in range(3)] + [(n, "A", "u", n) for n in range(3, 12)])
    live = matcher(text, "unrestricted", limits=Limits(max_partial_matches=7))
    live.process(rows)
    expected = detect(rows, pattern(text, "unrestricted"), time="at").num_rows
    assert live.finish().num_rows == expected > 20
    live = matcher(text, "unrestricted", limits=Limits(max_partial_matches=2))
    live.process(rows)
    with pytest.raises(LimitExceeded, match="a key keeps more than 2 occurrences open"):
        live.finish()


@pytest.mark.parametrize("consistency", [None, "realtime"])
@pytest.mark.parametrize("policy", ["recent", "unrestricted"])
def test_many_events_are_forgotten(policy: str, consistency: str | None) -> None:
    """The stored state does not grow with the number of events, nor with keys that are closed or receive no more
    events.
    """
    live = matcher("((A; B) - C)_9s", policy, key="user", lateness="0 seconds", consistency=consistency)
    sizes, open_ = [], []
    for begin in range(0, 24_000, 3_000):
        numbers = range(begin, begin + 3_000)
        live.process(shop([(second, "AB"[second % 2], f"u{second // 3}", 1) for second in numbers]))
        open_.append(live.counts.open_partial_matches)
        sizes.append(len(live.snapshot()))
    assert live.counts.matches > 5_000
    assert max(sizes[1:]) < 2 * min(sizes[1:])
    assert max(open_) < 6_000
    live.advance_time(at(24_100))
    live.snapshot()
    assert live.counts.open_partial_matches == 0


def test_idle_keys() -> None:
    """A key is dropped when the window around its stored occurrences has ended; a key without a window is retained."""
    live = matcher("(A; B)_9s | (C; C)", key="user", lateness="0 seconds")
    live.process(shop([(1, "A", "u", 1), (2, "C", "v", 1), (4, "A", "w", 1)]))
    left = []
    for second in (9, 10, 12, 13):
        live.advance_time(at(second))
        left.append(live.counts.open_partial_matches)
    assert left == [3, 2, 2, 1]


@pytest.mark.parametrize(
    ("text", "policy", "warned"),
    [
        ("A; B", "unrestricted", "that a future event may be joined with. Bound them with within(…), or take the "),
        ("(A; B)_5s", "chronicle", "that no other has used up, as in a context within(…) drops none. Take the "),
        ("A & B", "continuous", "that no other has used up"),
    ],
)
def test_what_grows_is_warned_of(text: str, policy: str, warned: str) -> None:
    """If the state of one key can grow without bound, a warning says what to do, and the state does grow."""
    with pytest.warns(CepheidWarning, match="a matcher keeps what is open: all occurrences " + re.escape(warned)):
        live = matcher(text, policy, key="user", lateness="0 seconds")
    assert open_after_many(live) > 100


@pytest.mark.filterwarnings("error:a matcher keeps what is open")
@pytest.mark.parametrize(
    ("text", "policy"),
    [("A; B", None), ("(A; B)_5s", "unrestricted"), ("A - B", "unrestricted"), ("A; B", "snoop_recent")],
)
def test_what_does_not_grow(text: str, policy: str | None) -> None:
    """If the state is bounded, there is no warning."""
    assert open_after_many(matcher(text, policy, key="user", lateness="0 seconds")) < 10


def open_after_many(live: Matcher) -> int:
    """The number of open occurrences after many events that complete nothing, and some time without events."""
    live.process(shop([(second, "A", "u", 1) for second in range(200)]))
    live.advance_time(at(1_000))
    live.snapshot()
    return live.counts.open_partial_matches


def test_a_policy_that_is_recent_already() -> None:
    """The warning does not advise the recent policy if it is already set and a condition over several events makes it
    store all occurrences.
    """
    with pytest.warns(CepheidWarning) as caught:
        matcher("(?a:A; ?b:B)[a.price = b.price]", "recent")
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 2
    assert messages[1] == (
        "a matcher keeps what is open: all occurrences that a future event may be joined with. "
        "Bound them with within(…)"
    )


def test_refusals() -> None:
    """Invalid arguments are refused with a clear message."""
    live = matcher("A; B")
    with pytest.raises(PatternError, match="partial_matches: a pattern of occurrences has no stages"):
        live.partial_matches()
    with pytest.raises(SnapshotError, match=re.escape('occurrence was "(A; B)" and is "(A; C)"')):
        matcher("A; C").restore(live.snapshot())
    with pytest.raises(SnapshotError, match=re.escape('policy was "recent" and is "chronicle"')):
        matcher("A; B", "chronicle").restore(live.snapshot())
