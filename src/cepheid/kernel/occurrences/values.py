"""Occurrences as Python values: sets of members, with a start and an end, and the values of their variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from cepheid.kernel.reference_events import Event
from cepheid.kernel.scripts.python_functions import Value
from cepheid.kernel.scripts.reference import evaluate
from cepheid.plan.conditions.script import Script

Member: TypeAlias = tuple[Any, ...]
"""An event is (time, position). A temporal event is (time, -1, delay, members of the occurrence that it comes after).
Times are in microseconds. So members sort by time and, at one time, by position.
"""


class MemberSet(NamedTuple):
    """Members in ascending order, each once; sets are ordered by end, start and members."""

    end: int
    start: int
    members: tuple[Member, ...]


Binding: TypeAlias = tuple[tuple[int, MemberSet], ...]
"""The number and the value of each variable, ascending by number."""


class Derivation(NamedTuple):
    """One way in which an occurrence comes about."""

    occurrence: MemberSet
    binding: Binding = ()


Events: TypeAlias = Mapping[int, Event]
"""Events by position."""


def of_event(event: Event) -> Derivation:
    return Derivation(MemberSet(event.time, event.time, ((event.time, event.position),)))


def is_temporal(member: Member) -> bool:
    return len(member) > 2


def joined(left: Derivation, right: Derivation) -> Derivation:
    """The occurrence that joins both."""
    a, b = left.occurrence, right.occurrence
    members = tuple(sorted({*a.members, *b.members}))
    both = MemberSet(max(a.end, b.end), min(a.start, b.start), members)
    return Derivation(both, tuple(sorted((*left.binding, *right.binding))))


def delayed(derivation: Derivation, delay: int) -> Derivation:
    """The temporal event `delay` microseconds after the end."""
    time = derivation.occurrence.end + delay
    return Derivation(MemberSet(time, time, ((time, -1, delay, derivation.occurrence.members),)), derivation.binding)


def bound(derivation: Derivation, variable: int) -> Derivation:
    return Derivation(derivation.occurrence, tuple(sorted((*derivation.binding, (variable, derivation.occurrence)))))


def events_in(members: Iterable[Member]) -> Iterator[int]:
    """The positions of the events among the members, and of the events that temporal events come after."""
    for member in members:
        if is_temporal(member):
            yield from events_in(member[3])
        else:
            yield member[1]


def events_of(derivation: Derivation) -> Iterator[int]:
    """The positions of the events in an occurrence and in its variables; some more than once."""
    yield from events_in(derivation.occurrence.members)
    for _, occurrence in derivation.binding:
        yield from events_in(occurrence.members)


def recency(derivation: Derivation) -> tuple[int, list[Member]]:
    """The sort key of the recent policy: the start, then the latest members. The policy prefers the greatest."""
    return derivation.occurrence.start, sorted(derivation.occurrence.members, reverse=True)


def least_of_each(derivations: Iterable[Derivation]) -> list[Derivation]:
    """Each occurrence once, in order, in its least derivation: the one whose variables have the earliest members."""
    least: dict[MemberSet, Derivation] = {}
    for derivation in sorted(derivations):
        least.setdefault(derivation.occurrence, derivation)
    return list(least.values())


def single_events(
    binding: Iterable[tuple[int, MemberSet]], variables: Iterable[tuple[str, int]]
) -> dict[str, int] | None:
    """The position of the event of each of these variables (name and number) that is bound; None if one of them is
    bound to something else than a single event.
    """
    bound, found = dict(binding), dict[str, int]()
    for name, number in variables:
        if number not in bound:
            continue
        member, *others = bound[number].members
        if others or is_temporal(member):
            return None
        found[name] = member[1]
    return found


class _Row(NamedTuple):
    values: tuple[Value, ...]


def holds(script: Script, binding: Iterable[tuple[int, MemberSet]], events: Events, time_value: int | None) -> bool:
    """Whether the script is true (not false, and not unknown) for the values of the variables.

    A variable that is one event has the event's values. Any other variable has two rows, its start and its end, in
    which only the value of number `time_value` is set.
    """
    taken = [(variable, row) for variable, occurrence in binding for row in _rows(occurrence, events, time_value)]
    return evaluate(script, taken, ()) is True


def _rows(occurrence: MemberSet, events: Events, time_value: int | None) -> list[_Row]:
    first, last = occurrence.members[0], occurrence.members[-1]
    if first is last and not is_temporal(first):
        return [_Row(events[first[1]].values)]
    if time_value is None:
        return []
    return [_Row(_only_time(member, events, time_value)) for member in (first, last)]


def _only_time(member: Member, events: Events, time_value: int) -> tuple[Value, ...]:
    """The values of a member, with all but its time set to None. The time comes from the lifted column, which may have
    no zone.
    """
    if is_temporal(member):
        _, _, delay, members = member
        values = _only_time(members[-1], events, time_value)
        time = values[time_value] + delay
    else:
        values = events[member[1]].values
        time = values[time_value]
    return tuple(time if number == time_value else None for number in range(len(values)))
