"""Converts found occurrences to flat arrays: their members and the values of their variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import NONE, Ints, Records
from cepheid.kernel.arrays import Events, Flags
from cepheid.kernel.jit import kernel
from cepheid.kernel.occurrences.conditions import outermost
from cepheid.kernel.occurrences.layout import Forest, NodeKind
from cepheid.kernel.occurrences.nodes import list_events, next_bound
from cepheid.kernel.occurrences.values import (
    Derivation,
    Member,
    MemberSet,
    bound,
    delayed,
    is_temporal,
    joined,
    least_of_each,
    recency,
)
from cepheid.lang.occurrences.pattern import Policy


class EmittedOccurrences(NamedTuple):
    """Occurrences in the order of emission: n of them, m members, v variables."""

    start: Ints
    """(n,) microseconds since 1970 UTC."""
    end: Ints
    stop: Ints
    """(n,) where the members of an occurrence end; they begin where those of the previous occurrence end."""
    position: Ints
    """(m,) the position of the event; -1 for a temporal event. The members that a temporal event comes after follow it.
    """
    time: Ints
    delay: Ints
    """(m,) the delay of a temporal event, else 0."""
    depth: Ints
    """(m,) how many temporal events the member is nested in."""
    first: Ints
    """(n, v) the position of the first event of the variable's value, -1 if the variable has no value."""
    first_delay: Ints
    """(n, v) the delay of the value's first member after this event: 0 unless the member is a temporal event."""
    last: Ints
    last_delay: Ints
    is_event: Flags
    """(n, v) whether the variable's value is one event."""
    from_: Ints
    """(n, v) the start of the variable's value; `to` is its end."""
    to: Ints

    def of_variables(self, numbers: Sequence[int]) -> EmittedOccurrences:
        """The same occurrences with only these variables, in this order."""
        names = ("first", "first_delay", "last", "last_delay", "is_event", "from_", "to")
        return self._replace(**{name: getattr(self, name)[:, numbers] for name in names})


def concatenated(parts: Sequence[EmittedOccurrences]) -> EmittedOccurrences:
    """The parts, concatenated; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    counts = np.cumsum([0, *(len(part.position) for part in parts)])
    moved = [part._replace(stop=part.stop + count) for part, count in zip(parts, counts, strict=False)]
    return EmittedOccurrences(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))


def chosen_rows(found: Records, policies: Sequence[Policy], plain: Sequence[bool], reader: Reader) -> Ints:
    """The rows that the roots emit, in order, if operators make all occurrences.

    Each occurrence is emitted once, in its least derivation, ordered by instant, root, start and members. With the
    policy RECENT only the most recent occurrence of an instant is emitted. The occurrences of a `plain` root consist of
    their events alone.
    """
    order: Ints = np.lexsort((found["start"], found["root"], found["instant"]))
    if not len(found):
        return order
    ordered = found[order]
    is_other = (np.diff(ordered["instant"]) != 0) | (np.diff(ordered["root"]) != 0)
    borders = np.flatnonzero(is_other | (np.diff(ordered["start"]) != 0)) + 1
    begins, ends = np.append(0, borders), np.append(borders, len(found))
    roots = ordered["root"][begins]
    recent = np.array([policy is Policy.RECENT for policy in policies])[roots]
    given = ~recent | np.append(is_other, True)[ends - 1]
    kept = np.repeat(given, ends - begins)
    # Occurrences with the same start and end may be equal. If they are not, their members decide which comes first.
    alike = given & (ends - begins > 1)
    listed = order[np.repeat(alike & np.array(plain)[roots], ends - begins)]
    members = dict(zip(listed.tolist(), reader.members(found[listed]), strict=True))
    for run in np.flatnonzero(alike).tolist():
        begin, end = int(begins[run]), int(ends[run])
        rows = order[begin:end].tolist()
        if plain[roots[run]]:
            chosen = _by_members({members[row]: row for row in reversed(rows)}, recent=recent[run])
        else:
            ways = {reader.derivation(int(found["node"][row])): row for row in reversed(rows)}
            chosen = _by_derivation(ways, recent=recent[run])
        order[begin : begin + len(chosen)] = chosen
        kept[begin + len(chosen) : end] = False
    return order[kept]


def _by_members(rows: Mapping[tuple[int, ...], int], *, recent: bool) -> list[int]:
    """As `_by_derivation`, for occurrences that consist of their events alone. Reading derivations would take longer
    than everything else.
    """
    chosen = [max(rows, key=lambda members: members[::-1])] if recent else sorted(rows)
    return [rows[members] for members in chosen]


def _by_derivation(rows: Mapping[Derivation, int], *, recent: bool) -> list[int]:
    """The rows of distinct occurrences with the same start and end, in order. If `recent`, only the row of the most
    recent one.
    """
    least = least_of_each(rows)
    return [rows[derivation] for derivation in ([max(least, key=recency)] if recent else least)]


class Reader:
    """Reads nodes as derivations."""

    def __init__(self, forest: Forest, events: Events) -> None:
        self._forest, self._nodes, self._times = forest, forest.nodes, events.time
        self._read: dict[int, Derivation] = {}

    def members(self, found: Records) -> Iterator[tuple[int, ...]]:
        """The positions of the events of each occurrence, ascending."""
        position, stop = np.zeros(int(sizes_of(self._forest, found).sum()), np.int64), np.zeros(len(found), np.int64)
        list_found(self._forest, found, position, stop)
        listed, stops = position.tolist(), stop.tolist()
        return (tuple(listed[begin:end]) for begin, end in zip([0, *stops], stops, strict=False))

    def derivation(self, node: int) -> Derivation:
        if node not in self._read:
            self._read[node] = self._derivation(node)
        return self._read[node]

    def _derivation(self, node: int) -> Derivation:
        if node < 0:
            time = int(self._times[~node])
            return Derivation(MemberSet(time, time, ((time, ~node),)))
        kind, left, right, number = (int(self._nodes[name][node]) for name in ("kind", "left", "right", "number"))
        inner = self.derivation(left)
        match NodeKind(kind):
            case NodeKind.JOINED:
                return joined(inner, self.derivation(right))
            case NodeKind.BOUND:
                return bound(inner, number)
            case NodeKind.DELAYED:
                return delayed(inner, number)


def emitted_of(derivations: Sequence[Derivation], variables: int) -> EmittedOccurrences:
    """The occurrences of derivations as arrays; they may have temporal events."""
    listed = [list(_listed(one.occurrence.members)) for one in derivations]
    columns = np.array([row for rows in listed for row in rows], np.int64).reshape(-1, 4).T.copy()
    bindings = np.zeros((7, len(derivations), variables), np.int64)
    bindings[0] = bindings[2] = -1
    for row, (_, binding) in enumerate(derivations):
        for variable, occurrence in binding:
            first, last = occurrence.members[0], occurrence.members[-1]
            is_event = first is last and not is_temporal(first)
            times = occurrence.start, occurrence.end
            bindings[:, row, variable] = (*_anchor(first), *_anchor(last), is_event, *times)
    position, time, delay, depth = columns
    return EmittedOccurrences(
        start=np.array([one.occurrence.start for one in derivations], np.int64),
        end=np.array([one.occurrence.end for one in derivations], np.int64),
        stop=np.cumsum([*map(len, listed)], dtype=np.int64),
        position=position,
        time=time,
        delay=delay,
        depth=depth,
        first=bindings[0],
        first_delay=bindings[1],
        last=bindings[2],
        last_delay=bindings[3],
        is_event=bindings[4] == 1,
        from_=bindings[5],
        to=bindings[6],
    )


def _listed(members: Iterable[Member], depth: int = 0) -> Iterator[tuple[int, int, int, int]]:
    for member in members:
        if is_temporal(member):
            time, _, delay, inner = member
            yield -1, time, delay, depth
            yield from _listed(inner, depth + 1)
        else:
            yield member[1], member[0], 0, depth


def _anchor(member: Member) -> tuple[int, int]:
    """The event that a member is, or after which it finally comes: its position, and the member's delay after it."""
    if not is_temporal(member):
        return member[1], 0
    position, delay = _anchor(member[3][-1])
    return position, delay + member[2]


def emitted_from(forest: Forest, events: Events, chosen: Records, variables: int) -> EmittedOccurrences:
    """The chosen occurrences as arrays; they have no temporal events. `Forest.members` has room for any of them."""
    most = int(sizes_of(forest, chosen).sum())
    position, stop = np.zeros(most, np.int64), np.zeros(len(chosen), np.int64)
    first, last = (np.full((len(chosen), variables), -1, np.int64) for _ in range(2))
    list_found(forest, chosen, position, stop)
    if variables:
        list_variables(forest, events, chosen, first, last)
    position = position[: stop[-1] if len(stop) else 0]
    nothing, none = np.zeros(len(position), np.int64), np.zeros(first.shape, np.int64)
    return EmittedOccurrences(
        start=chosen["start"],
        end=chosen["end"],
        stop=stop,
        position=position,
        time=events.time[position],
        delay=nothing,
        depth=nothing,
        first=first,
        first_delay=none,
        last=last,
        last_delay=none,
        is_event=(first == last) & (first >= 0),
        from_=events.time[first],
        to=events.time[last],
    )


def sizes_of(forest: Forest, found: Records) -> Ints:
    """The number of events of each occurrence; shared events count more than once."""
    sizes: Ints = np.where(found["node"] < 0, 1, forest.nodes["size"][np.maximum(found["node"], 0)])
    return sizes


@kernel
def list_found(forest: Forest, chosen: Records, position: Ints, stop: Ints) -> None:
    """Writes the events of each occurrence, one after the other, and where they end."""
    written = 0
    for row in range(len(chosen)):
        count = list_events(forest.nodes, chosen[row].node, forest.members, 0)
        for i in range(count):
            position[written + i] = forest.members[i]
        written += count
        stop[row] = written


@kernel
def list_variables(forest: Forest, events: Events, chosen: Records, first: Ints, last: Ints) -> None:
    """Writes the first and the last event of each variable."""
    nodes, stack = forest.nodes, forest.members
    bottom = len(stack) // 2  # the front is for `outermost`
    for row in range(len(chosen)):
        stack[bottom] = chosen[row].node
        bound, top = next_bound(nodes, stack, bottom, bottom + 1)
        while bound != NONE:
            variable, node = nodes[bound].number, nodes[bound].left
            first[row, variable] = ~outermost(forest, events, node, True)
            last[row, variable] = ~outermost(forest, events, node, False)
            bound, top = next_bound(nodes, stack, bottom, top)
