"""`detect` finds for patterns with knowledge what the definition finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.intervals.running import ENGINE
from tests.searching import share

from cepheid import Matcher, Occurrence, OccurrencePattern, Policy, detect, event
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.kernel.occurrences.reference import reference_occurrences
from cepheid.kernel.occurrences.session_reference import Known, Said
from cepheid.kernel.occurrences.values import events_in, is_temporal
from cepheid.kernel.reference_events import Event
from cepheid.knowledge.events.facts import EventFacts
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.knowledge import Knowledge
from cepheid.lang.semantic import semantic
from cepheid.requests.request_of import request_of
from occurrences.shop import at

pytestmark = [
    pytest.mark.filterwarnings("ignore:policy 'recent' with the condition"),
    pytest.mark.filterwarnings("ignore:a matcher keeps what is open"),
]

SECOND = 1_000_000
KNOWN = Knowledge.read(
    """
    @prefix : <http://shop.example/> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Read rdfs:subClassOf :Event . :Write rdfs:subClassOf :Event . :Vip rdfs:subClassOf :Person .
    :by a owl:ObjectProperty ; rdfs:range :Person ; rdfs:domain :Event .
    :friend a owl:SymmetricProperty , owl:TransitiveProperty .
    :ByVip owl:onProperty :by ; owl:someValuesFrom :Vip . :ByVip rdfs:subClassOf :Important .
    :Important a owl:Class . :p1 :friend :p2 . :p3 a :Vip . :p1 owl:differentFrom :p2 .
    """,
    prefixes={"": "http://shop.example/", "owl": "http://www.w3.org/2002/07/owl#"},
)
MAPPING = EventMapping("iri", turtle="facts")
TYPES = ["Read", "Write", "Event", "Important", "Mine"]
STATEMENTS = [
    "{e} a :Read .",
    "{e} a :Write .",
    "{e} :by :p1 .",
    "{e} :by :p2 .",
    "{e} :by :p3 .",
    "{e} :by [ a :Vip ] .",
    ":p1 a :Vip .",
    ":p2 :friend :p3 .",
    ":p1 owl:sameAs :p3 .",
    "{e} owl:differentFrom :e0 .",
    ":Write rdfs:subClassOf :Important .",
]
FILTERS = [
    "by(?v0, ?x) ∧ Vip(?x)",
    "by(?v0, ?x) ∧ by(?v1, ?x)",
    "by(?v0, ?x) ∧ friend(?x, ?y) ∧ by(?v1, ?y)",
    "differentFrom(?v0, ?v1)",
    "sameAs(?v0, ?v0)",
    "Read(?other) ∧ by(?other, p1)",
    "Important(?v1)",
]


class Row(NamedTuple):
    time: int
    """Seconds."""
    user: str
    statements: tuple[str, ...]


rows = st.lists(
    st.builds(
        Row,
        st.integers(0, 5),
        st.sampled_from(["ann", "bob"]),
        st.lists(st.sampled_from(STATEMENTS), max_size=3, unique=True).map(tuple),
    ),
    max_size=7,
).map(sorted)
lengths = st.integers(0, 3).map(lambda seconds: timedelta(seconds=seconds))
filters = st.sampled_from(FILTERS).map(semantic)


@st.composite
def expressions(draw: st.DrawFn) -> Occurrence:
    """An expression of a few leaves, of which the first ones are bound to v0 and v1."""
    leaves = [event(type_) for type_ in draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))]
    parts = [leaf.named(f"v{number}") if number < 2 else leaf for number, leaf in enumerate(leaves)]
    if draw(st.booleans()) and len(parts) > 2:
        parts[0] = (leaves[0] & leaves[2]).named("v0")  # two events are no individual
    while len(parts) > 1:
        at_ = draw(st.integers(0, len(parts) - 2))
        parts[at_ : at_ + 2] = [combined(draw, parts[at_], parts[at_ + 1])]
        parts[at_] = changed(draw, parts[at_])
    return changed(draw, parts[0])


def combined(draw: st.DrawFn, left: Occurrence, right: Occurrence) -> Occurrence:
    match draw(st.sampled_from([">>", "&", "|", "-", "minus_if"])):
        case ">>":
            return left >> right
        case "&":
            return left & right
        case "|":
            return left | right
        case "-":
            return left - right
    return left.minus_if(right, draw(filters))


def changed(draw: st.DrawFn, of: Occurrence) -> Occurrence:
    match draw(st.sampled_from(["", "", "filter", "filter", "within", "plus"])):
        case "filter":
            return of.where(draw(filters))
        case "within":
            return of.within(draw(lengths))
        case "plus":
            return of.plus(draw(lengths))
    return of


def table(given_: Sequence[Row]) -> pa.Table:
    return pa.table(
        {
            "number": pa.array(range(len(given_)), pa.int64()),
            "at": pa.array([at(row.time) for row in given_], pa.timestamp("us", "UTC")),
            "user": pa.array([row.user for row in given_], pa.string()),
            "iri": pa.array([f"http://shop.example/e{number}" for number in range(len(given_))], pa.string()),
            "facts": pa.array(
                ["\n".join(row.statements).format(e=f":e{number}") for number, row in enumerate(given_)], pa.string()
            ),
        }
    )


@share(50)
@given(expressions(), rows)
def test_equals_reference(expression: Occurrence, given_: list[Row]) -> None:
    """The same occurrences, with the unrestricted policy and with the recent one."""
    pattern = OccurrencePattern.of(expression, knowledge=KNOWN, mapping=MAPPING)
    pattern = pattern.restrict("Mine", "Event", semantic("by(?e, ?p) ∧ friend(?p, p1)"), variable="e")
    for policy in (Policy.UNRESTRICTED, Policy.RECENT):
        assert by_detect(pattern.policy(policy), given_) == by_definition(pattern.policy(policy), given_)


@share(30)
@given(
    expressions(),
    rows.flatmap(lambda found: st.permutations(range(len(found))).map(lambda order: (found, order))),
    st.sampled_from([None, "conservative", "realtime"]),
    st.integers(0, 6),
)
def test_live(
    expression: Occurrence, arriving: tuple[list[Row], list[int]], consistency: str | None, stored: int
) -> None:
    """A Matcher to which events come one by one, in any order, and which is stored and restored in between."""
    given_, order = arriving
    pattern = OccurrencePattern.of(expression, knowledge=KNOWN, mapping=MAPPING)
    pattern = pattern.restrict("Mine", "Event", semantic("by(?e, ?p) ∧ friend(?p, p1)"), variable="e")
    pattern = pattern.policy(Policy.UNRESTRICTED)
    events = table(given_)

    def matcher() -> Matcher:
        options: dict[str, Any] = {"key": "user", "time": "at", "sequence": "number", "columns": ["number"]}
        return Matcher(pattern, events.schema, lateness="1 hour", consistency=consistency, **options)

    live, found = matcher(), list[dict[str, Any]]()
    for count, number in enumerate(order):
        if count == stored:
            data = live.snapshot()
            live = matcher()
            live.restore(data)
        found += live.process(events.slice(number, 1)).to_pylist()
    found += live.finish().to_pylist()
    taken_back = {row["match_id"] for row in found if row.get("kind") == "retraction"}
    assert occurred([row for row in found if row["match_id"] not in taken_back]) == by_detect(pattern, given_)


Occurred = tuple[str, int, int, tuple[int, ...]]
"""User, end, start (seconds) and the numbers of the events, also those before delays."""


def by_detect(pattern: OccurrencePattern, given_: Sequence[Row]) -> list[Occurred]:
    options = {"key": "user", "time": "at", "sequence": "number", "columns": ["number"]}
    return occurred(detect(table(given_), pattern, **options).to_pylist())


def occurred(found: Sequence[Mapping[str, Any]]) -> list[Occurred]:
    return sorted(
        (
            row["user"],
            (row["match_end"] - at(0)) // timedelta(seconds=1),
            (row["match_start"] - at(0)) // timedelta(seconds=1),
            tuple(sorted(one["number"] for one in row["events"] if one["number"] is not None)),
        )
        for row in found
    )


def by_definition(pattern: OccurrencePattern, given_: Sequence[Row]) -> list[Occurred]:
    request = request_of(pattern, time="at", key="user", sequence="number")
    plan = plans_in_process(table([]).schema, request, ENGINE).only
    columns = {name: table(given_).column(name).combine_chunks() for name in ("iri", "facts")}
    read = EventFacts(MAPPING, KNOWN.prefixes).read(columns, lambda _: {})
    found = []
    for user in sorted({row.user for row in given_}):
        own = [number for number, row in enumerate(given_) if row.user == user]
        said = {number: Said(read[number][0], given_[number].time * SECOND, read[number][1]) for number in own}
        events = [Event(number, given_[number].time * SECOND, 0, ()) for number in own]
        known = Known(KNOWN, said)
        for one in reference_occurrences(plan.operators, plan.root, plan.policy, events, known=known):
            end, start, members = one.occurrence
            numbers = tuple(sorted(_numbers(members)))
            found.append((user, end // SECOND, start // SECOND, numbers))
    return sorted(found)


def _numbers(members: Sequence[tuple[object, ...]]) -> list[int]:
    assert all(is_temporal(member) or len(member) == 2 for member in members)
    return [*events_in(members)]
