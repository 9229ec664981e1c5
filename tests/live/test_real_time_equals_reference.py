"""Each row of a matcher with a consistency equals that of the reference."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import SCHEMA, Case, Definition, Row, cases, events, microseconds
from tests.live.test_real_time import OPTIONS, table
from tests.reporting import Log, log_of, sorted_log, states_every
from tests.searching import share

from cepheid import Matcher
from cepheid.kernel.consistency_reference import Arrival, emission_log
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.real_time_reference import Arrived, Found, matches_so_far
from cepheid.lang.consistency import Consistency, End


@share(20)
@given(data=st.data(), case=cases(), lateness=st.sampled_from([1, 3, 9]), every=st.sampled_from([1, 2, 64]))
def test_equals_reference(data: st.DataObject, case: Case, lateness: int, every: int) -> None:
    """Events one by one in any order, and switches anywhere: each step emits the rows that the reference emits."""
    rows = data.draw(st.permutations(data.draw(events())))
    choices = st.sampled_from([Consistency.CONSERVATIVE, Consistency.REALTIME])
    first = data.draw(choices)
    switches = data.draw(st.dictionaries(st.integers(0, max(0, len(rows) - 1)), choices, max_size=3))
    with states_every(every):
        found = by_matcher(case, rows, lateness, first, switches)
    assert found == by_definition(case, rows, lateness, first, switches)


def by_matcher(case: Case, rows: list[Row], lateness: int, first: Consistency, switches: dict[int, Consistency]) -> Log:
    options = {**OPTIONS, "sequence": "id", "lateness": f"{lateness} seconds"}
    live = Matcher(case.pattern, SCHEMA, consistency=first, **options)
    at = {row["id"]: position for position, row in enumerate(rows)}
    return log_of(live, [table([row]) for row in rows], switches, partial(shown, case, at))


def shown(case: Case, at: dict[int, int], row: dict[str, Any]) -> Any:
    if row["kind"] == "late":
        return at[row["event"]["id"]]
    stages = {stage.name: number for number, stage in enumerate(case.pattern.stages)}
    taken = sorted((at[event["id"]], stages[name]) for name, took in row["stages"] for event in took)
    return row["device"], row["found"], taken


def by_definition(
    case: Case, rows: list[Row], lateness: int, first: Consistency, switches: dict[int, Consistency]
) -> Log:
    times = [microseconds(row["at"]) for row in rows]
    arrived = [
        Arrived(row["device"], row["id"], Event(i, time, 0, (row,)))  # type: ignore[arg-type]
        for i, (row, time) in enumerate(zip(rows, times, strict=True))
    ]
    entries = emission_log(
        [Arrival(time, time) for time in times],
        matches_so_far(arrived, lambda: Definition(case)),
        delay=lateness * 1_000_000,
        lateness=End.END,
        consistency=first,
        switches=switches,
    )
    return sorted_log((when, position, sign, named_by_reference(what)) for when, position, sign, what in entries)


def named_by_reference(what: object) -> Any:
    """A match or timeout in the form of `shown`; a late event as its position."""
    if not isinstance(what, Found):
        return what
    kind = "match" if what.deadline is None else "timeout"
    return what.key, kind, sorted((place, stage) for stage, place in what.taken)
