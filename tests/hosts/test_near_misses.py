"""Near misses: the starts that match with one change of the pattern, and why they do not match without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.near_patterns import events_of, patterns, rows, without_skip
from tests.searching import share

from cepheid import Pattern, detect, why
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.plan.stages.near.changes import changes_of
from cepheid.requests.request_of import request_of

OPTIONS: dict[str, Any] = {"key": "k", "time": "at"}


def starts_of(table: pa.Table, patterns: Mapping[str, Pattern], as_of: Any) -> dict[str, set[Any]]:
    """The times of the first events of the matches of each pattern."""
    matches = detect(table, patterns, **OPTIONS, as_of=as_of)
    found = {name: set[Any]() for name in patterns}
    for name, start in zip(matches["pattern"].to_pylist(), matches["match_start"].to_pylist(), strict=True):
        found[name].add(start)
    return found


@share(10)
@given(patterns(), rows, st.booleans())
def test_every_suggestion_is_true(pattern: Pattern, given_rows: Any, stops: bool) -> None:
    """With its change, and without skipping, each near miss is the start of a match; without the change it is none. All
    such starts are found, except events that start no partial match without the change. Those that the skip strategy
    then drops are marked.
    """
    table = events_of(given_rows)
    as_of = table["at"][len(table) // 2].as_py() if stops else None
    changes = {str(n): change for n, change in enumerate(changes_of(pattern))}
    off = {name: without_skip(change.pattern) for name, change in changes.items()}
    off["unchanged"] = without_skip(pattern)
    skipping = starts_of(table, {name: change.pattern for name, change in changes.items()} or {"x": pattern}, as_of)
    expected = starts_of(table, off, as_of)
    found = near_misses_in_process(table, request_of(pattern, **OPTIONS, as_of=as_of))
    assert not found.failed
    rows_ = found.table.to_pylist()
    started = starts_of_partial_matches(table, pattern, as_of)
    for name, change in changes.items():
        own = {row["match_start"]: row["lost"] for row in rows_ if row["change"] == change.text}
        assert set(own) == (expected[name] - expected["unchanged"]) & started, change
        assert {start for start, lost in own.items() if lost} == set(own) - skipping[name], change
    assert found.starts == len({row["match_start"] for row in rows_})


def starts_of_partial_matches(table: pa.Table, pattern: Pattern, as_of: Any) -> set[Any]:
    """The times of the events that a partial match of the pattern takes first."""
    found = set[Any]()
    asked = why(table, without_skip(pattern), **OPTIONS, as_of=as_of)
    for key in set(table["k"].to_pylist()):
        steps = asked.trace({"k": key}).steps
        found |= {step.time for step in steps if not step.partial_match and step.outcome.startswith("taken by")}
    return found
