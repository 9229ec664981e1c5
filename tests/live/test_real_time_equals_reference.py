"""Each row of a matcher with a consistency, against the definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import SCHEMA, Case, Definition, Row, cases, events, microseconds
from tests.live.test_real_time import OPTIONS, table
from tests.searching import share

from cepheid import Matcher
from cepheid.forks import KeyStates
from cepheid.kernel.consistency_reference import Arrival, told
from cepheid.kernel.real_time_reference import Arrived, Found, matches_so_far
from cepheid.kernel.reference import Event
from cepheid.lang.interval_values import Consistency, End

NAMES = {Consistency.CONSERVATIVE: "conservative", Consistency.REALTIME: "realtime"}
SIGNS = {"insertion": "+", "retraction": "-", "late": "late"}


@share(20)
@given(data=st.data(), case=cases(), lateness=st.sampled_from([1, 3, 9]), every=st.sampled_from([1, 2, 64]))
def test_equals_reference(data: st.DataObject, case: Case, lateness: int, every: int) -> None:
    """Events one by one in any order, and switches anywhere: what is told at each is what the definition tells."""
    rows = data.draw(st.permutations(data.draw(events())))
    choices = st.sampled_from([*NAMES])
    first = data.draw(choices)
    switches = data.draw(st.dictionaries(st.integers(0, max(0, len(rows) - 1)), choices, max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyStates, "every", every)
        found = by_matcher(case, rows, lateness, first, switches)
    assert found == by_definition(case, rows, lateness, first, switches)


Log = dict[tuple[str, int], list[tuple[str, Any]]]
"""What is told by a switch before an event, at an event, and at the end; by its position."""


def by_matcher(case: Case, rows: list[Row], lateness: int, first: Consistency, switches: dict[int, Consistency]) -> Log:
    options = {**OPTIONS, "sequence": "id", "lateness": f"{lateness} seconds"}
    live = Matcher(case.pattern, SCHEMA, consistency=NAMES[first], **options)
    log: Log = {}
    for position, row in enumerate(rows):
        if position in switches:
            log["switch", position] = live.switch(NAMES[switches[position]]).to_pylist()
        log["arrive", position] = live.process(table([row])).to_pylist()
    log["eos", len(rows)] = live.finish().to_pylist()
    at = {row["id"]: position for position, row in enumerate(rows)}
    return {when: sorted(shown(case, row, at) for row in told) for when, told in log.items() if told}


def shown(case: Case, row: dict[str, Any], at: dict[int, int]) -> tuple[str, Any]:
    if row["kind"] == "late":
        return "late", at[row["event"]["id"]]
    stages = {stage.name: number for number, stage in enumerate(case.pattern.stages)}
    taken = sorted((at[event["id"]], stages[name]) for name, took in row["stages"] for event in took)
    return SIGNS[row["kind"]], (row["device"], row["found"], taken)


def by_definition(
    case: Case, rows: list[Row], lateness: int, first: Consistency, switches: dict[int, Consistency]
) -> Log:
    times = [microseconds(row["at"]) for row in rows]
    arrived = [
        Arrived(row["device"], row["id"], Event(i, time, 0, (row,)))  # type: ignore[arg-type]
        for i, (row, time) in enumerate(zip(rows, times, strict=True))
    ]
    log: Log = {}
    for when, position, sign, what in told(
        [Arrival(time, time) for time in times],
        matches_so_far(arrived, lambda: Definition(case)),
        delay=lateness * 1_000_000,
        lateness=End.END,
        consistency=first,
        switches=switches,
    ):
        log.setdefault((when, position), []).append((sign, named(what)))
    return {when: sorted(rows) for when, rows in log.items()}


def named(what: object) -> Any:
    """A match or timeout as `shown` has it; a late event is its position."""
    if not isinstance(what, Found):
        return what
    kind = "match" if what.deadline is None else "timeout"
    return what.key, kind, sorted((place, stage) for stage, place in what.taken)
