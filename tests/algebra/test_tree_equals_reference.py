"""The tree gives what the definition gives, event by event, and remembers little where it says so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algebra.strategies import TIME_VALUE, events_of_key, many_events, tables, windowed_tables
from cepheid.kernel.algebra_occurrence import Derivation
from cepheid.kernel.algebra_reference import reference_occurrences
from cepheid.kernel.algebra_tree import UNBOUNDED, Tree
from cepheid.kernel.reference import Event
from cepheid.lang.algebra import Policy
from cepheid.plan.algebra import Kind, Operator

CONTEXTS = [policy for policy in Policy if policy.is_context]


def told(
    operators: Sequence[Operator],
    events: Sequence[Event],
    policy: Policy,
    *,
    by_operator: bool = False,
    until: int = UNBOUNDED,
) -> list[Derivation]:
    """What a tree gives, in its order."""
    tree = Tree(operators, [len(operators) - 1], policy, by_operator=by_operator, time_value=TIME_VALUE)
    found = []
    for event in events:
        found += [one for instant in tree.process(event) for one in instant[0]]
    return found + [one for instant in tree.advance_time(until) for one in instant[0]]


def defined(
    operators: Sequence[Operator], events: Sequence[Event], policy: Policy, until: int | None = None
) -> list[Derivation]:
    return reference_occurrences(operators, len(operators) - 1, policy, events, time_value=TIME_VALUE, until=until)


@settings(max_examples=400)
@given(tables(conditions=True), events_of_key)
def test_all_occurrences(operators: list[Operator], events: list[Event]) -> None:
    """Without a policy the tree gives every occurrence once, in order, with its least variables."""
    assert told(operators, events, Policy.UNRESTRICTED) == defined(operators, events, Policy.UNRESTRICTED)


@settings(max_examples=200)
@given(tables(conditions=True), events_of_key)
def test_recent_of_all(operators: list[Operator], events: list[Event]) -> None:
    """With conditions the recent occurrences are chosen once all are found."""
    assert told(operators, events, Policy.RECENT) == defined(operators, events, Policy.RECENT)


@settings(max_examples=400)
@given(tables(), events_of_key)
def test_recent_by_operator(operators: list[Operator], events: list[Event]) -> None:
    """Chosen at every operator, the recent occurrences have the same starts and ends, and are occurrences."""
    recent = told(operators, events, Policy.RECENT, by_operator=True)
    expected = defined(operators, events, Policy.RECENT)
    assert [one.occurrence[:2] for one in recent] == [one.occurrence[:2] for one in expected]
    assert {one.occurrence for one in recent} <= {
        one.occurrence for one in defined(operators, events, Policy.UNRESTRICTED)
    }


@settings(max_examples=200)
@given(windowed_tables(), many_events)
def test_windows(operators: list[Operator], events: list[Event]) -> None:
    """What a window lets an operator forget is missed by nothing, with either policy."""
    everything = defined(operators, events, Policy.UNRESTRICTED)
    assert told(operators, events, Policy.UNRESTRICTED) == everything
    recent = told(operators, events, Policy.RECENT, by_operator=True)
    latest: dict[int, int] = {}
    for one in everything:
        latest[one.occurrence.end] = max(latest.get(one.occurrence.end, -1), one.occurrence.start)
    assert [one.occurrence[:2] for one in recent] == [*latest.items()]


@pytest.mark.parametrize("policy", CONTEXTS)
@settings(max_examples=100)
@given(tables(contexts=True), events_of_key)
def test_contexts(policy: Policy, operators: list[Operator], events: list[Event]) -> None:
    """In Snoop's contexts, too, and in the order of emission."""
    single = [Event(e.position, e.time, e.mask & -e.mask, e.values) for e in events]
    assert told(operators, single, policy) == defined(operators, single, policy)


@settings(max_examples=150)
@given(tables(conditions=True), events_of_key, st.integers(-1, 14))
def test_time_stands(operators: list[Operator], events: list[Event], until: int) -> None:
    """Where time stands, temporal events behind it have not happened."""
    seen = [event for event in events if event.time <= until]
    assert told(operators, seen, Policy.UNRESTRICTED, until=until) == defined(
        operators, seen, Policy.UNRESTRICTED, until
    )


@settings(max_examples=100)
@given(st.lists(tables(conditions=True), min_size=2, max_size=3), events_of_key)
def test_several_roots(several: list[list[Operator]], events: list[Event]) -> None:
    """Several patterns in one tree give what each gives alone."""
    rows: list[Operator] = []
    roots = []
    for operators in several:
        places: list[int] = []
        for one in operators:
            left, right = (places[row] if row >= 0 else -1 for row in (one.left, one.right))
            moved = Operator(one.kind, left, right, one.number, one.script)
            if moved not in rows:
                rows.append(moved)
            places.append(rows.index(moved))
        roots.append(places[-1])
    tree = Tree(rows, roots, Policy.UNRESTRICTED, time_value=TIME_VALUE)
    instants = [instant for event in events for instant in tree.process(event)] + tree.advance_time(UNBOUNDED)
    for number, operators in enumerate(several):
        alone = told(operators, events, Policy.UNRESTRICTED)
        assert [one for instant in instants for one in instant[number]] == alone


LEAVES = [Operator(Kind.LEAF, number=0), Operator(Kind.LEAF, number=1), Operator(Kind.LEAF, number=2)]


@pytest.mark.parametrize(
    ("operators", "most"),
    [
        ([*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.WITHOUT, 3, 2)], 1),
        ([*LEAVES, Operator(Kind.BOTH, 0, 1)], 2),
        ([*LEAVES, Operator(Kind.BOTH, 1, 2), Operator(Kind.WITHIN, 3, number=10), Operator(Kind.THEN, 0, 4)], 13),
        ([*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.THEN, 3, 2)], 2),
    ],
)
def test_recent_remembers_little(operators: list[Operator], most: int) -> None:
    """With the recent policy a tree remembers a bounded number of occurrences, however many events there are."""
    tree = Tree(operators, [len(operators) - 1], Policy.RECENT, by_operator=True)
    remembered = 0
    for position in range(3_000):
        tree.process(Event(position, position, 1 << position * 7 % 3, ()))
        remembered = max(remembered, tree.remembered)
    assert remembered <= most


def test_what_ended_just_before_a_bounded_right_side() -> None:
    """Of the left side one that ended before the earliest start of what may still come is kept, and all behind it."""
    operators = [*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.WITHIN, 3, number=1), Operator(Kind.THEN, 2, 4)]
    events = [Event(0, 1, 4, ()), Event(1, 3, 1 | 4, ()), Event(2, 4, 2, ())]
    recent = told(operators, events, Policy.RECENT, by_operator=True)
    assert [one.occurrence[:2] for one in recent] == [(4, 1)]


def test_windows_bound_what_is_remembered() -> None:
    """Without the recent policy a window around the operators does."""
    operators = [*LEAVES, Operator(Kind.BOTH, 0, 1), Operator(Kind.WITHIN, 3, number=20)]
    tree = Tree(operators, [4], Policy.UNRESTRICTED)
    for position in range(3_000):
        tree.process(Event(position, position, 1 << position % 2, ()))
    assert tree.remembered < 100
