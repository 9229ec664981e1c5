"""Each row of a Matcher of occurrences with a consistency, compared with the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.intervals.running import ENGINE
from tests.reporting import Log, log_of, sorted_log, states_every
from tests.searching import share

from cepheid import Matcher, OccurrencePattern, Policy
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.kernel.consistency_reference import NEVER, Arrival, Life, emission_log
from cepheid.kernel.occurrences.reference import reference_occurrences
from cepheid.kernel.occurrences.values import Derivation, Member
from cepheid.kernel.reference_events import Event
from cepheid.lang.consistency import Consistency, End
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.requests.request_of import request_of
from occurrences.shop import at, shop
from occurrences.strategies import Row, expressions, few_rows, shop_rows, with_variables

pytestmark = pytest.mark.filterwarnings("ignore:a matcher keeps what is open")

SECOND = timedelta(seconds=1)
CHOICES = st.sampled_from([Consistency.CONSERVATIVE, Consistency.REALTIME])


def arriving(rows: st.SearchStrategy[list[Row]]) -> st.SearchStrategy[list[Row]]:
    """The rows in any order, without duplicates."""
    return rows.map(lambda rows: list({row[:3]: row for row in rows}.values())).flatmap(st.permutations)


@share(20)
@given(
    rows=arriving(shop_rows),
    expression=expressions,
    lateness=st.sampled_from([0, 1, 3, 9]),
    every=st.sampled_from([1, 2, 64]),
    data=st.data(),
)
def test_equals_reference(
    rows: list[Row], expression: OccurrencePattern, lateness: int, every: int, data: st.DataObject
) -> None:
    """Events arrive one by one in any order, with switches anywhere: at each event the matcher emits what the reference
    emits.
    """
    check(rows, expression, lateness, every, data)


@share(50)
@given(rows=arriving(few_rows), expression=with_variables, every=st.sampled_from([1, 2, 64]), data=st.data())
def test_variables(rows: list[Row], expression: OccurrencePattern, every: int, data: st.DataObject) -> None:
    """The same with the variables of the rows, where no event is late."""
    check(rows, expression, 9, every, data)


def check(rows: list[Row], expression: OccurrencePattern, lateness: int, every: int, data: st.DataObject) -> None:
    pattern = expression.taxonomy("type").policy(Policy.UNRESTRICTED)
    first = data.draw(CHOICES)
    switches = data.draw(st.dictionaries(st.integers(0, max(0, len(rows) - 1)), CHOICES, max_size=3))
    with states_every(every):
        found = by_matcher(pattern, rows, lateness, first, switches)
    assert found == by_definition(pattern, rows, lateness, first, switches)


def by_matcher(
    pattern: OccurrencePattern,
    rows: Sequence[Row],
    lateness: int,
    first: Consistency,
    switches: Mapping[int, Consistency],
) -> Log:
    options: dict[str, Any] = {"key": "user", "time": "at", "sequence": "type", "lateness": lateness * SECOND}
    live = Matcher(pattern, shop([]), consistency=first, **options)
    return log_of(live, [shop([row]) for row in rows], switches, shown)


def shown(row: Mapping[str, Any]) -> str:
    """The user of a row, its events, and the events of its variables; for a late event its second and type."""
    if row["kind"] == "late":
        return str((row["user"], second(row["event"]["at"]), row["event"]["type"]))
    events = [(second(one["time"]), one["type"], one.get("delay"), one.get("depth", 0)) for one in row["events"]]
    variables = {name: event and (second(event["at"]), event["type"]) for name, event in row.items() if name[0] == "v"}
    return str((row["user"], events, variables))


def second(time: datetime) -> int:
    return (time - at(0)) // SECOND


def by_definition(
    pattern: OccurrencePattern,
    rows: Sequence[Row],
    lateness: int,
    first: Consistency,
    switches: Mapping[int, Consistency],
) -> Log:
    plan = plans_in_process(shop([]).schema, request_of(pattern, time="at", key="user", sequence="type"), ENGINE).only
    masks = ENGINE.evaluate(shop([*rows]), bits=plan.bits, values=plan.values).masks[0].tolist()

    def matches(accepted: Sequence[int], clock: float) -> Mapping[str, Life]:
        found = {}
        for user in {rows[position][2] for position in accepted}:
            own = sorted((position for position in accepted if rows[position][2] == user), key=rows.__getitem__)
            events = [Event(i, rows[position][0], masks[position], ()) for i, position in enumerate(own)]
            until = None if clock == NEVER else int(clock)
            for one in reference_occurrences(operators, plan.root, Policy.UNRESTRICTED, events, until=until):
                types = [rows[position][1] for position in own]
                members, end = [*_members(one.occurrence.members, types)], one.occurrence.end
                found[str((user, members, _variables(plan, one, types)))] = Life(end, end)
        return found

    operators = [
        replace(one, number=one.number // 1_000_000) if one.kind in (Kind.WITHIN, Kind.DELAYED) else one
        for one in plan.operators
    ]
    entries = emission_log(
        [Arrival(row[0], row[0]) for row in rows],
        matches,
        delay=lateness,
        lateness=End.END,
        consistency=first,
        switches=switches,
    )
    late = [str((user, time, type_)) for time, type_, user, _ in rows]
    return sorted_log(
        (when, position, sign, late[position] if sign == "late" else str(match))
        for when, position, sign, match in entries
    )


def _variables(plan: OccurrencePlan, one: Derivation, types: Sequence[str]) -> dict[str, Any]:
    """The time and type of the event of each variable that is visible outside."""
    events = {number: occurrence.members[0] for number, occurrence in one.binding}
    return {
        variable.name: (events[number][0], types[events[number][1]]) if number in events else None
        for number, variable in enumerate(plan.variables)
        if variable.in_output
    }


def _members(members: Sequence[Member], types: Sequence[str], depth: int = 0) -> Iterator[tuple[Any, ...]]:
    """The members as the rows have them: events, and temporal events before the events to which their delay applies."""
    for time, position, *delayed in members:
        yield time, types[position] if not delayed else None, delayed[0] * SECOND if delayed else None, depth
        if delayed:
            yield from _members(delayed[1], types, depth + 1)
