"""Matchers in real time: after each call, the net result is what detect finds in the events accepted so far."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Row, cases, events
from tests.reporting import drawn_states
from tests.searching import share

from cepheid import CepheidWarning, Matcher, Pattern, Skip, detect

SECOND = timedelta(seconds=1)
OPTIONS = {"key": "device", "time": "at", "outputs": ("matches", "timeouts", "late")}


def _rises(row: Mapping[str, Any], matched: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    return (row["n"] or 0) >= (matched["s0"][-1]["n"] or 0)


A, B, C = "kind = 'a'", "kind = 'b'", "n >= 2"
PATTERNS = [
    Pattern.begin("s0").where(A).followed_by_any("s1").where(B).followed_by_any("s2").where(C).within("6 seconds"),
    Pattern.begin("s0").where(A).followed_by("s1").where(B).one_or_more().greedy().followed_by("s2").where(C),
    Pattern.begin("s0").where(A).not_followed_by("s1").where(B).within("3 seconds"),
    Pattern.begin("s0").where(A).not_next("s1").where(B).followed_by("s2").where(C),
    Pattern.begin("s0").where(A).followed_by("s1").where(B).within_previous("2 seconds").within("5 seconds"),
    Pattern.begin("s0").where(A).next("s1").where("n >= s0.n").one_or_more().consecutive().longest(),
    Pattern.begin("s0")
    .where(A)
    .followed_by(Pattern.begin("s1").where(B).followed_by("s2").where(C))
    .one_or_more()
    .longest()
    .within("9 seconds"),
    Pattern.begin("s0").where(A).followed_by("s1").where(_rises).within("4 seconds"),
    Pattern.begin("s0").where(C).one_or_more().allow_combinations().followed_by("s1").where(B).within("5 seconds"),
]
SKIPS = [
    Skip.no_skip(),
    Skip.to_next(),
    Skip.past_last_event(),
    Skip.to_first("s0"),
    Skip.to_last("s0"),
]
patterns = st.builds(
    Pattern.skip, st.sampled_from(PATTERNS) | cases().map(lambda case: case.pattern), st.sampled_from(SKIPS)
)


@dataclass
class Sink:
    """A store whose key is the match id."""

    there: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: list[int] = field(default_factory=list)

    def take(self, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            match_id = row["found"], row["match_id"]
            match row["kind"]:
                case "insertion":
                    assert not self.there[match_id]
                    self.there[match_id] = 1
                case "retraction":
                    assert self.there[match_id]
                    del self.there[match_id]
                case _:
                    self.late.append(row["event"]["id"])


def found(rows: Sequence[Row], pattern: Pattern, as_of: datetime | None, options: Mapping[str, Any]) -> Counter[Any]:
    """The same counts for the rows that detect finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        wanted = detect(table(rows), pattern, as_of=as_of, **{**options, "outputs": ("matches", "timeouts")})
    return Counter((row["kind"], row["match_id"]) for row in wanted.to_pylist())


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


@share(20)
@given(data=st.data(), pattern=patterns, lateness=st.sampled_from([None, 0, 2, 5, 40]), in_sequence=st.booleans())
def test_after_each_call(*, data: st.DataObject, pattern: Pattern, lateness: int | None, in_sequence: bool) -> None:
    """Whatever the order of arrival, the insertions minus the retractions are what detect finds in all accepted events
    up to the current time. Matchers that are switched, or restored from snapshots, give the same result in the end.
    """
    with drawn_states(data):
        check(data, pattern, lateness, in_sequence=in_sequence)


def check(data: st.DataObject, pattern: Pattern, lateness: int | None, *, in_sequence: bool) -> None:
    rows = data.draw(st.permutations(data.draw(events(ties=True))))
    options = {**OPTIONS, "sequence": "id" if in_sequence else None}
    length = None if lateness is None else f"{lateness} seconds"
    live, plain = (Matcher(pattern, SCHEMA, lateness=length, consistency=c, **options) for c in ("realtime", None))
    sink, accepted, clock, at_once = Sink(), list[Row](), FIRST - SECOND, True
    certain, late = Counter[Any](), list[int]()
    while rows:
        size = data.draw(st.integers(1, 4))
        batch, rows = rows[:size], rows[size:]
        sink.take(live.process(table(batch)))
        for row in plain.process(table(batch)).to_pylist():
            late += [row["event"]["id"]] if row["kind"] == "late" else []
            certain[row["kind"], row["match_id"]] += row["kind"] != "late"
        accepted += [row for row in batch if row["id"] not in late]
        clock = max([clock, *(row["at"] for row in batch)])
        if data.draw(st.integers(0, 4)) == 0:
            time = clock + data.draw(st.integers(-9, 3)) * SECOND
            sink.take(live.advance_time(time))
            certain.update((row["kind"], row["match_id"]) for row in plain.advance_time(time).to_pylist())
            clock = max(clock, time)
        assert sink.late == late
        if at_once:
            assert sink.there == found(accepted, pattern, clock, options)
        if data.draw(st.integers(0, 5)) == 0:
            state, counts = live.snapshot(), live.counts
            if data.draw(st.booleans()):
                live = Matcher(pattern, SCHEMA, lateness=length, consistency="conservative", **options)
                live.restore(state)
            assert live.counts == counts
        if data.draw(st.integers(0, 5)) == 0:
            at_once = not at_once
            sink.take(live.switch("realtime" if at_once else "conservative"))
    sink.take(live.finish())
    assert sink.there == found(accepted, pattern, None, options)
    assert live.counts.open_partial_matches == 0
    certain.update((row["kind"], row["match_id"]) for row in plain.finish().to_pylist())
    assert sink.there == +certain
