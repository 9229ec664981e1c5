"""Rows without a match, for random patterns with negations: the same in any calls, and nothing else changes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.live.test_any_delivery import counted
from tests.searching import share

from cepheid import CepheidWarning, Matcher, Pattern, PatternError, Skip, detect

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    {"id": pa.int64(), "k": pa.string(), "at": pa.timestamp("us", "UTC"), "x": pa.string(), "v": pa.int64()}
)
OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id"}
ALL = ("matches", "timeouts", "no_match")


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Patterns over letters, with negations between and behind their stages; some compare events with each other."""
    pattern = Pattern.begin("s0", name="random").where("x = 'a'")
    for number in range(1, draw(st.integers(2, 4))):
        if draw(st.booleans()) and not pattern.stages[-1].quantifier.optional:
            forbid = draw(st.sampled_from([pattern.not_followed_by, pattern.not_followed_by, pattern.not_next]))
            pattern = forbid(f"n{number}").where(draw(st.sampled_from(["x = 'n'", "x = 'n'", "v = s0.v"])))
        follow = draw(st.sampled_from([pattern.next, pattern.followed_by, pattern.followed_by_any]))
        pattern = follow(f"s{number}").where(draw(st.sampled_from(["x = 'a'", "x = 'b'", "v = s0.v", "x != 'n'"])))
        if loop := draw(st.sampled_from([None, None, (1, 2), (1, 3)])):
            pattern = pattern.times(*loop)
        pattern = pattern.optional() if draw(st.integers(0, 3)) == 0 else pattern
    window = draw(st.sampled_from([None, "4 seconds", "9 seconds"]))
    pattern = pattern if window is None else pattern.within(window)
    if window is not None and draw(st.booleans()) and not pattern.stages[-1].quantifier.optional:
        pattern = pattern.not_followed_by("last").where("x = 'n'")
    return pattern.skip(draw(st.sampled_from([Skip.no_skip(), Skip.no_skip(), Skip.past_last_event()])))


@st.composite
def events(draw: st.DrawFn) -> list[Mapping[str, Any]]:
    """Events in the order of time; many have the same time."""
    time, rows = FIRST, []
    for number in range(draw(st.integers(6, 16))):
        time += timedelta(seconds=draw(st.sampled_from([0, 1, 1, 2])))
        key, letter = draw(st.sampled_from("pppq")), draw(st.sampled_from("aabbn"))
        rows.append({"id": number, "k": key, "at": time, "x": letter, "v": draw(st.sampled_from([0, 1]))})
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


@share(40)
@given(data=st.data(), pattern=patterns(), rows=events())
def test_any_calls(data: st.DataObject, pattern: Pattern, rows: list[Mapping[str, Any]]) -> None:
    """A matcher gives the rows of `detect`, however the events are cut into calls, and wherever it is restored. Other
    rows are those found without them, where partial matches may be in sets.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CepheidWarning)
            expected = detect(table(rows), pattern, outputs=ALL, **OPTIONS)
            others = detect(table(rows), pattern, outputs=ALL[:2], **OPTIONS)
    except PatternError:
        reject()
    is_other = pa.compute.not_equal(expected["kind"], "no_match")
    assert counted(expected.filter(is_other).drop_columns("cause")) == counted(others)
    live, found = Matcher(pattern, SCHEMA, outputs=ALL, lateness="0 seconds", **OPTIONS), []
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)))) | {0, len(rows)})
    for start, end in pairwise(cuts):
        found.append(live.process(table(rows[start:end])))
        if data.draw(st.booleans()):
            state, live = live.snapshot(), Matcher(pattern, SCHEMA, outputs=ALL, lateness="0 seconds", **OPTIONS)
            live.restore(state)
    found.append(live.finish())
    assert counted(pa.concat_tables(found)) == counted(expected)
    ids = Counter(expected["match_id"].to_pylist())
    assert max(ids.values(), default=1) == 1
