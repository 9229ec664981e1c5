"""Matcher.partial_matches: the open partial matches, as rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import SCHEMA as SEARCHED
from tests.hosts.patterns_and_events import Case, cases
from tests.hosts.patterns_and_events import events as searched
from tests.live.events import PAIR, SCHEMA, at, events, matcher
from tests.live.test_any_delivery import table
from tests.searching import share

from cepheid import Matcher, MatcherFailed, Pattern, SchemaError

EXPECTED = pa.schema(
    [
        pa.field("pattern", pa.string(), nullable=False),
        pa.field("k", pa.string()),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("match_start", pa.timestamp("us", "UTC")),
        pa.field("deadline", pa.timestamp("us", "UTC")),
        pa.field("stages", pa.map_(pa.string(), pa.list_(pa.struct([*SCHEMA])))),
    ]
)
LONG = (
    Pattern.begin("a").where("x = 'a'").followed_by_any("b").where("x = 'b'").followed_by("c").where("x = 'c'")
).within("1 hour")


def short(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Key, stage, start, deadline and the ids of the events."""
    return [
        (
            row["k"],
            row["stage"],
            _second(row["match_start"]),
            _second(row["deadline"]),
            [event["id"] for _, taken in row["stages"] for event in taken],
        )
        for row in rows.to_pylist()
    ]


def _second(time: datetime | None) -> float | None:
    return None if time is None else (time - at(0)) / timedelta(seconds=1)


@pytest.mark.parametrize("measures", [None, {"n": "count(b)"}])
def test_rows(measures: dict[str, str] | None) -> None:
    """A row has the pattern, the key, the stage reached, the start, the deadline and the events so far; the columns of
    matches do not change this.
    """
    live = matcher(LONG, outputs=None, measures=measures)
    live.process(events((1, "p", 0, "a"), (2, "q", 1, "a"), (3, "p", 2, "b"), (4, "p", 3, "a")))
    rows = live.partial_matches()
    assert rows.schema == EXPECTED if measures is None else rows.schema.names == EXPECTED.names
    assert set(rows.column("pattern").to_pylist()) == {"pattern"}
    if measures is None:
        assert sorted(short(rows)) == [
            ("p", "a", 0, 3600, [1]),
            ("p", "a", 3, 3603, [4]),
            ("p", "b", 0, 3600, [1, 3]),
            ("q", "a", 1, 3601, [2]),
        ]


def test_nothing_is_open() -> None:
    """Without open partial matches, the listing has its columns and no rows."""
    live = matcher()
    assert live.partial_matches() == EXPECTED.empty_table()
    live.process(events((1, "p", 0, "a"), (2, "p", 1, "b")))
    assert live.partial_matches() == EXPECTED.empty_table()


def test_no_deadline_and_no_time() -> None:
    """Without `within` there is no deadline; in processing order there are no times."""
    endless = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'")
    for time, start in (("at", 0), (None, None)):
        live = matcher(endless, time=time, sequence=None if time is None else "id", lateness=None, outputs="matches")
        live.process(events((1, "p", 0, "a")))
        if time is not None:
            assert short(live.partial_matches()) == []  # the event waits
            live.advance_time(at(0))
        assert short(live.partial_matches()) == [("p", "a", start, None, [1])]


def test_gaps_between_events() -> None:
    """The deadline is the earliest of all limits that apply."""
    pattern = (
        Pattern.begin("a")
        .where("x = 'a'")
        .followed_by("b")
        .where("x = 'b'")
        .within_previous("5 seconds")
        .followed_by("c")
        .where("x = 'c'")
        .within("10 seconds")
    )
    live = matcher(pattern)
    live.process(events((1, "p", 0, "a")))
    assert short(live.partial_matches()) == [("p", "a", 0, 5, [1])]
    live.process(events((2, "p", 4, "b")))
    assert short(live.partial_matches()) == [("p", "b", 0, 10, [1, 2])]


def test_python_functions() -> None:
    """Partial matches of patterns with Python functions are listed in the same way."""
    pattern = Pattern.begin("a").where(lambda event: event["x"] == "a", name="is_a").followed_by("b").where("x = 'b'")
    live = matcher(pattern.within("10 seconds"))
    live.process(events((1, "p", 0, "a"), (2, "q", 1, "a"), (3, "p", 2, "b")))
    assert short(live.partial_matches()) == [("q", "a", 1, 11, [2])]


@pytest.mark.parametrize("contiguity", ["followed_by", "followed_by_any"])
def test_expired_partial_matches(contiguity: str) -> None:
    """A partial match whose deadline has passed is not listed, although sets keep it until the whole key has
    expired.
    """
    pattern = getattr(Pattern.begin("a").where("x = 'a'"), contiguity)("b").where("x = 'b'").within("10 seconds")
    live = matcher(pattern, outputs="matches")
    live.process(events((1, "p", 0, "a"), (2, "p", 5, "a")))
    live.advance_time(at(12))
    assert short(live.partial_matches()) == [("p", "a", 5, 15, [2])]


@pytest.mark.parametrize("outputs", ["matches", ["matches", "timeouts"]])
def test_most(outputs: Any) -> None:
    """At most `most` partial matches of each key are listed, those that started last: one set may stand for
    millions.
    """
    pattern = LONG if outputs == "matches" else PAIR
    live = matcher(pattern, outputs=outputs)
    rows = [(i, "p", i / 1000, "a") for i in range(3000)]
    if pattern is LONG:
        rows += [(i, "p", i / 1000, "b") for i in range(3000, 6000)]
    live.process(events(*rows, (9000, "q", 9, "a")))
    listed = short(live.partial_matches(most=2))
    assert [row[2] for row in listed] == ([2.999, 2.999, 9] if pattern is LONG else [2.998, 2.999, 9])
    assert len(live.partial_matches()) == 1001
    if pattern is LONG:
        assert live.counts.open_partial_matches > 9_000_000


def test_errors() -> None:
    """The errors: an invalid number, a key column with the name of a column of the listing, and a matcher that has
    failed.
    """
    live = matcher()
    for most in (0, True, 1.5):
        with pytest.raises(SchemaError) as caught:
            live.partial_matches(most=most)  # type: ignore[arg-type]
        assert str(caught.value) == f"most: a whole number from 1 is expected, got {most!r}"
    renamed = pa.schema([("stage", pa.string()), *SCHEMA])
    with pytest.raises(SchemaError) as caught:
        Matcher(PAIR, renamed, key="stage", time="at").partial_matches()
    message = "open partial matches have a column 'stage', and so has the key. Rename the column of the events"
    assert str(caught.value) == message
    failing = matcher(Pattern.begin("a").next("b").where("id / (id - a.id) > 0"))
    with pytest.raises(Exception, match="division"):
        failing.process(events((1, "p", 0, "a"), (1, "p", 1, "b")))
    with pytest.raises(MatcherFailed, match="failed half-way in an earlier call"):
        failing.partial_matches()


@share(20)
@given(data=st.data(), case=cases(), in_sets=st.booleans())
def test_listing_changes_nothing(*, data: st.DataObject, case: Case, in_sets: bool) -> None:
    """A matcher whose partial matches are listed finds what another one finds. It counts as many open partial matches
    as it lists, or more where branches have the same events. A restored matcher lists the same.
    """
    options: dict[str, Any] = {"key": "device", "time": "at", "sequence": "id", "lateness": "0 seconds"}
    options["outputs"] = "matches" if in_sets else ("matches", "timeouts")
    rows = sorted(data.draw(searched()), key=lambda row: (row["at"], row["device"], row["id"]))
    inspected, other = (Matcher(case.pattern, SEARCHED, **options) for _ in range(2))
    for row in rows:
        batch = table([row])
        assert _shown(inspected.process(batch)) == _shown(other.process(batch))
        listed = inspected.partial_matches()
        assert len(listed) <= inspected.counts.open_partial_matches
        assert (len(listed) == 0) == (inspected.counts.open_partial_matches == 0)
        if data.draw(st.booleans()):
            inspected.restore(inspected.snapshot())
            assert _shown(inspected.partial_matches()) == _shown(listed)
    assert _shown(inspected.finish()) == _shown(other.finish())
    assert inspected.partial_matches().num_rows == 0


def _shown(rows: pa.Table) -> list[str]:
    """The rows in any order, as text, so that NaN equals itself."""
    return sorted(map(repr, rows.to_pylist()))
