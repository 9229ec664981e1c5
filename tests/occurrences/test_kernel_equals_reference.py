"""The kernel gives what the reference gives, event by event, and stores little where that is promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.kernel.arrays import FOREVER, NO_TIME, Visits
from cepheid.kernel.occurrences.idle import forget_keys
from cepheid.kernel.occurrences.kernel import OccurrenceKernel
from cepheid.kernel.reference_events import Event
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import Operator
from occurrences.running import arrays_of, by_kernel, by_reference, kernel_of, one_visit, rows, spans
from occurrences.strategies import events_of_key, many_events, tables, windowed_tables

CONTEXTS = [policy for policy in Policy if policy.is_context]


@settings(max_examples=400)
@given(tables(conditions=True), events_of_key)
def test_all_occurrences(operators: list[Operator], events: list[Event]) -> None:
    """With the unrestricted policy the kernel emits every occurrence once, in order, with its least variables."""
    assert rows(by_kernel(operators, events, Policy.UNRESTRICTED)) == rows(
        by_reference(operators, events, Policy.UNRESTRICTED)
    )


@settings(max_examples=200)
@given(tables(conditions=True), events_of_key)
def test_recent_of_all(operators: list[Operator], events: list[Event]) -> None:
    """With conditions, the recent occurrences are chosen after all occurrences are found."""
    assert rows(by_kernel(operators, events, Policy.RECENT)) == rows(by_reference(operators, events, Policy.RECENT))


@settings(max_examples=400)
@given(tables(), events_of_key)
def test_recent_by_operator(operators: list[Operator], events: list[Event]) -> None:
    """If the recent occurrences are chosen at every operator, starts and ends are those of the reference, and each row
    is an occurrence.
    """
    recent = by_kernel(operators, events, Policy.RECENT, by_operator=True)
    assert spans(recent) == spans(by_reference(operators, events, Policy.RECENT))
    assert {row[:3] for row in rows(recent)} <= {
        row[:3] for row in rows(by_reference(operators, events, Policy.UNRESTRICTED))
    }


@settings(max_examples=200)
@given(windowed_tables(), many_events)
def test_windows(operators: list[Operator], events: list[Event]) -> None:
    """Events that an operator forgets because of a window are not missing from the result, with either policy."""
    everything = by_reference(operators, events, Policy.UNRESTRICTED)
    assert rows(by_kernel(operators, events, Policy.UNRESTRICTED)) == rows(everything)
    recent = by_kernel(operators, events, Policy.RECENT, by_operator=True)
    latest: dict[int, int] = {}
    for end, start in spans(everything):
        latest[end] = max(latest.get(end, -1), start)
    assert spans(recent) == [*latest.items()]


@pytest.mark.parametrize("policy", CONTEXTS)
@settings(max_examples=100)
@given(tables(contexts=True), events_of_key)
def test_contexts(policy: Policy, operators: list[Operator], events: list[Event]) -> None:
    """In Snoop's contexts the kernel emits the same occurrences in the same order as the reference."""
    single = [Event(e.position, e.time, e.mask & -e.mask, e.values) for e in events]
    assert rows(by_kernel(operators, single, policy)) == rows(by_reference(operators, single, policy))


@settings(max_examples=150)
@given(tables(conditions=True), events_of_key, st.integers(-1, 14))
def test_time_stops(operators: list[Operator], events: list[Event], until: int) -> None:
    """If time stops at a given point, temporal events after that point have not happened."""
    seen = [event for event in events if event.time <= until]
    found = by_kernel(operators, seen, Policy.UNRESTRICTED, until=until)
    assert rows(found) == rows(by_reference(operators, seen, Policy.UNRESTRICTED, until))


def merged(several: list[list[Operator]]) -> tuple[list[Operator], list[int]]:
    """All operators in one table, equal ones once, and the roots of the patterns."""
    together: list[Operator] = []
    roots = []
    for operators in several:
        places: list[int] = []
        for one in operators:
            left, right = (places[row] if row >= 0 else -1 for row in (one.left, one.right))
            moved = Operator(one.kind, left, right, one.number, one.script)
            if moved not in together:
                together.append(moved)
            places.append(together.index(moved))
        roots.append(places[-1])
    return together, roots


@settings(max_examples=100)
@given(st.lists(tables(conditions=True), min_size=2, max_size=3), events_of_key)
def test_several_roots(several: list[list[Operator]], events: list[Event]) -> None:
    """Several patterns in one table give what each pattern gives alone."""
    together, roots = merged(several)
    kernel = kernel_of(together, Policy.UNRESTRICTED, roots=roots)
    found = kernel.run(arrays_of(events), one_visit(len(events), FOREVER))
    width = kernel.variables
    for operators, own in zip(several, found, strict=True):
        alone = [row[:3] for row in rows(by_reference(operators, events, Policy.UNRESTRICTED))]
        assert [row[:3] for row in rows(own)] == alone
        assert own.first.shape == (len(alone), width)


@pytest.mark.parametrize("policy", Policy)
@settings(max_examples=60)
@given(st.data())
def test_any_visits(policy: Policy, data: st.DataObject) -> None:
    """Events of several keys may be interleaved and cut into any number of calls, and events may be forgotten between
    calls: each key gives what it gives alone.
    """
    of_context = policy.is_context
    operators = data.draw(tables(contexts=of_context, conditions=not of_context))
    keys = data.draw(st.lists(events_of_key, min_size=1, max_size=3))
    if of_context:
        keys = [[Event(e.position, e.time, e.mask & -e.mask, e.values) for e in events] for events in keys]
    kernel = kernel_of(operators, policy)
    got: list[list[object]] = [[] for _ in keys]
    held: list[tuple[int, Event]] = []
    since = 0
    for time in sorted({*data.draw(st.lists(st.integers(0, 9), max_size=3)), FOREVER}):
        for key, events in enumerate(keys):
            held += [(key, event) for event in events if since <= event.time < time]
            arrays = arrays_of([event for _, event in held])
            (found,) = kernel.run(arrays, one_visit(len(held), time - 1 if time < FOREVER else time, key=key))
            places = [event.position for _, event in held]
            got[key] += [_placed(row, places) for row in rows(found)]
            held = [held[position] for position in forget(kernel, len(held))]
        since = time
    for key, events in enumerate(keys):
        assert got[key] == rows(by_reference(operators, events, policy))


def _placed(row: object, places: list[int]) -> object:
    """The row with the positions that its events have within the key."""
    end, start, members, variables = row  # type: ignore[misc]
    members = tuple((t, places[p] if p >= 0 else p, *rest) for t, p, *rest in members)
    bound = tuple(
        (places[first] if first >= 0 else first, a, places[last] if last >= 0 else last, b, one)
        for first, a, last, b, one in variables
    )
    return end, start, members, bound


def forget(kernel: OccurrenceKernel, count: int) -> list[int]:
    """Makes the kernel drop all events that it no longer needs. Returns the former positions of the others."""
    held = np.zeros(count, np.int32)
    kernel.mark(held)
    positions = np.flatnonzero(held)
    held[positions] = np.arange(len(positions))
    kernel.place(held, len(positions))
    return positions.tolist()


LEAVES = [Operator(Kind.LEAF, number=0), Operator(Kind.LEAF, number=1), Operator(Kind.LEAF, number=2)]


def most_stored(operators: list[Operator], policy: Policy, masks: list[int], *, by_operator: bool = False) -> int:
    """The largest number of occurrences that is stored after any event."""
    kernel = kernel_of(operators, policy, by_operator=by_operator)
    events = arrays_of([Event(position, position, mask, ()) for position, mask in enumerate(masks)])
    remembered = 0
    for end in range(1, len(masks)):
        kernel.run(events, one_visit(end, NO_TIME))
        remembered = max(remembered, kernel.remembered)
    return remembered


@pytest.mark.parametrize(
    ("operators", "most"),
    [
        ([*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.WITHOUT, 3, 2)], 1),
        ([*LEAVES, Operator(Kind.BOTH, 0, 1)], 2),
        ([*LEAVES, Operator(Kind.BOTH, 1, 2), Operator(Kind.WITHIN, 3, number=10), Operator(Kind.THEN, 0, 4)], 13),
        ([*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.THEN, 3, 2)], 2),
    ],
)
def test_recent_stores_little(operators: list[Operator], most: int) -> None:
    """With the recent policy a bounded number of occurrences is stored, however many events there are."""
    masks = [1 << position * 7 % 3 for position in range(3_000)]
    assert most_stored(operators, Policy.RECENT, masks, by_operator=True) <= most


def test_what_ended_just_before_a_bounded_right_side() -> None:
    """An occurrence of the left side that ended before the earliest start of a possible right side is stored, and so
    are all later ones.
    """
    operators = [*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.WITHIN, 3, number=1), Operator(Kind.THEN, 2, 4)]
    events = [Event(0, 1, 4, ()), Event(1, 3, 1 | 4, ()), Event(2, 4, 2, ())]
    assert spans(by_kernel(operators, events, Policy.RECENT, by_operator=True)) == [(4, 1)]


def test_windows_bound_what_is_stored() -> None:
    """With the unrestricted policy, a window around the operators bounds what is stored."""
    operators = [*LEAVES, Operator(Kind.BOTH, 0, 1), Operator(Kind.WITHIN, 3, number=20)]
    assert most_stored(operators, Policy.UNRESTRICTED, [1 << position % 2 for position in range(3_000)]) < 100


def test_equal_operators_are_evaluated_once() -> None:
    """An operator that stands in several expressions is evaluated once per instant."""
    pair = [*LEAVES, Operator(Kind.THEN, 0, 1)]
    alone = kernel_of(pair, Policy.UNRESTRICTED)
    shared = kernel_of([*pair, Operator(Kind.WITHOUT, 3, 2)], Policy.UNRESTRICTED, roots=(3, 4, 3))
    events = arrays_of([Event(i, i, 1 << i % 2, ()) for i in range(100)])
    for kernel in (alone, shared):
        kernel.run(events, one_visit(100, FOREVER))
    assert alone.evaluated == 200
    assert shared.evaluated == 250  # minus, for each of 50 pairs


def test_lists_grow_as_needed() -> None:
    """The kernel's lists and its output grow as needed, however many occurrences end at one instant."""
    operators = [*LEAVES, Operator(Kind.BOTH, 0, 1), Operator(Kind.DELAYED, 3, number=1), Operator(Kind.EITHER, 3, 4)]
    events = [Event(i, i // 40, 1 + i % 2, ()) for i in range(120)]
    assert len(by_kernel(operators, events, Policy.UNRESTRICTED).start) == 2 * 60 * 60
    one = [Operator(Kind.LEAF, number=0)]
    times = np.repeat(np.arange(2), 50_000)
    many = arrays_of([])._replace(time=times, mask=np.ones_like(times))
    (found,) = kernel_of(one, Policy.UNRESTRICTED).run(many, one_visit(len(times), FOREVER))
    assert len(found.start) == 100_000


def test_keys_are_forgotten_in_one_way() -> None:
    """Forgetting a key between calls has the same effect as a visit that closes it: nothing is open, and the lists keep
    their capacity.
    """
    operators = [*LEAVES, Operator(Kind.THEN, 0, 1), Operator(Kind.WITHOUT, 3, 2)]
    events = arrays_of([Event(i, i, 1 << i % 3, ()) for i in range(30)])
    closed, forgotten = (kernel_of(operators, Policy.UNRESTRICTED) for _ in range(2))
    closed.run(events, one_visit(30, FOREVER, closes=True))
    forgotten.run(events, one_visit(30, FOREVER))
    assert forgotten.remembered > 0
    forget_keys(forgotten, np.zeros(1, np.int32))
    assert forgotten.remembered == 0
    assert np.array_equal(forgotten.forest.keys[:1], closed.forest.keys[:1])
    assert np.array_equal(forgotten.forest.lists, closed.forest.lists)
    assert forgotten.forest.lists["capacity"].any()


def test_a_number_of_a_key_is_used_again() -> None:
    """When the number of a key is reused, the state of the previous key is gone."""
    operators = [*LEAVES, Operator(Kind.WITHOUT, 0, 1)]
    kernel = kernel_of(operators, Policy.UNRESTRICTED)
    events = arrays_of([Event(0, 5, 2, ()), Event(1, 5, 1, ())])
    visits = Visits(np.zeros(2, np.int32), np.array([1, 2]), np.array([5, 5]), np.zeros(2, np.bool_))
    (found,) = kernel.run(events, visits)
    assert spans(found) == [(5, 5)]
