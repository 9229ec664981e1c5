"""The definition of events that are known by their start: all completions of the open ends, each with plain Python.

Rows arrive one by one. An opening row has no end, a closing row gives an open event its end, and a whole row has both.
An open event may still end at any time from its start on; when the clock has passed, not before the clock minus the
delay, as a closing row with an earlier end would be late. A match is *certain* from a time on if it holds whatever the
open ends turn out to be, none of them before that time. What reads an open end in SQL waits for it.

Real time emits what is certain from the clock on, and retracts it if a later row proves it wrong. The other
consistencies emit what is certain from the clock minus the delay on, if no event that is not late could forbid it.

Where rows revise events, a row may give an event that has ended another end, or withdraw an event. A revision is late
if the earlier of both ends is, and a withdrawal if the event itself would be. Then a conservative matcher also waits
until the events of a match can no longer be revised. The earliest one waits until none can be withdrawn, and until the
match holds whatever other ends they and negated events get.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from cepheid.kernel.consistency_reference import ALWAYS, NEVER, Life, LogEntry, inserted, may_be_emitted
from cepheid.kernel.intervals.reference import Interval, Match, life, matches
from cepheid.lang.consistency import Consistency, End
from cepheid.plan.intervals.ends import reads_end
from cepheid.plan.intervals.plan import IntervalPlan

_FAR = 1 << 50
"""Microseconds after all times."""


class Row(NamedTuple):
    """An arrival: an event's number, and what its row has."""

    event: int
    has_start: bool
    has_end: bool
    same_as: int | None = None
    """The number of the event's first row, if another row of the same event came before. Both differ only in the end.
    """
    withdraws: bool = False

    @property
    def first(self) -> int:
        return self.event if self.same_as is None else self.same_as


@dataclass(frozen=True)
class _Accepted:
    """What the accepted rows say."""

    plan: IntervalPlan
    events: Sequence[Interval]
    """The whole events. Only what the rows of `opened` and `closed` tell is read."""
    opened: frozenset[int]
    """Events whose end is not known."""
    closed: frozenset[int]

    def certain(self, ends_from: float) -> dict[Match, Life]:
        """The matches that hold in every completion with open ends from this time on, as numbers of events; each with
        the latest times of all completions.
        """
        there = sorted(self.opened | self.closed)
        found: dict[Match, Life] | None = None
        for ends in product(*(self._ends(number, ends_from) for number in there)):
            events = [self._completed(number, end) for number, end in zip(there, ends, strict=True)]
            now = {match: life(self.plan, match, events, self.lateness) for match in matches(self.plan, events)}
            found = now if found is None else {m: _later(now[m], other) for m, other in found.items() if m in now}
        placed = {tuple(there[i] for i in match): life_ for match, life_ in (found or {}).items()}
        return {match: life_ for match, life_ in placed.items() if not self._waits(match)}

    lateness: End = End.START

    def _ends(self, number: int, ends_from: float) -> list[int]:
        """One end of each kind that an event may have: around each known time, and after all."""
        event = self.events[number]
        if number in self.closed:
            return [event.end]
        known = {self.events[i].start for i in self.opened | self.closed} | {self.events[i].end for i in self.closed}
        least = max(event.start, int(max(ends_from, -_FAR)))
        count = len(self.opened)
        near = {time + i for time in (*known, least, _FAR) for i in range(-1, count + 1)}
        return sorted(time for time in near if time >= least)

    def _completed(self, number: int, end: int) -> Interval:
        event = self.events[number]
        if number in self.closed:
            return event
        reads = reads_end(self.plan)
        return event._replace(end=end, mask=event.mask & ~reads.bits)

    def _waits(self, match: Match) -> bool:
        """Whether a condition of the match reads an end that is not known."""
        values = reads_end(self.plan).scripts
        return any(
            match[variable] in self.opened
            for script, variables in zip(self.plan.scripts, values, strict=True)
            for variable in variables
        )


def _later(one: Life, other: Life) -> Life:
    return Life(max(one.end, other.end), max(one.forbidden_until, other.forbidden_until))


def open_log(
    plan: IntervalPlan,
    events: Sequence[Interval],
    rows: Sequence[Row],
    *,
    delay: float,
    lateness: End,
    consistency: Consistency,
    switches: Mapping[int, Consistency] | None = None,
    open_for: float = NEVER,
    revises: bool = False,
) -> Iterator[LogEntry]:
    """Yields what is emitted, in order. The signs are those of `emission_log`, and = for an end of an emitted match
    that has become known or was revised. Matches are those of the first rows of their events.
    """
    known = _Accepted(plan, events, frozenset(), frozenset(), lateness)
    first = {row.event: row.first for row in rows}
    clock: float = ALWAYS
    out: dict[Match, None] = {}

    def of_first_rows(found: Iterable[Match]) -> list[Match]:
        return [tuple(first[number] for number in match) for match in found]

    def emitted() -> list[Match]:
        return of_first_rows(_emitted(known, clock, delay, consistency, revises=revises))

    for position, row in enumerate(rows):
        if switches and position in switches:
            consistency = switches[position]
            yield from inserted("switch", position, emitted(), out)
        event = events[row.event]
        former = next((number for number in known.opened | known.closed if first[number] == row.first), None)
        closes = row.has_end and former in known.opened
        if former is None and (row.withdraws or not row.has_start):
            continue  # its opening row was late, or the event was open for too long or withdrawn
        if former in known.closed and not row.withdraws and events[former].end == event.end:
            continue  # nothing is revised
        if _lateness_time(row, known, former, lateness) + delay < clock:
            yield LogEntry("arrive", position, "late", row.first)
            continue
        known = _without(known, set() if former is None else {former})
        if not row.withdraws:
            clock = max(clock, event.end if row.has_end else event.start)
            known = _with_row(known, row)
        if closes and not row.withdraws and event.end - event.start > open_for:
            known = _without(known, {row.event})
        known = _without(known, {i for i in known.opened if events[i].start + open_for < clock - delay})
        now = of_first_rows(known.certain(clock + 1))
        for match in [match for match in out if match not in now]:
            del out[match]
            yield LogEntry("arrive", position, "-", match)
        if former is not None:
            yield from (LogEntry("arrive", position, "=", match) for match in out if row.first in match)
        yield from inserted("arrive", position, emitted(), out)
    now = of_first_rows(_without(known, set(known.opened)).certain(NEVER))
    for match in [match for match in out if match not in now]:
        del out[match]
        yield LogEntry("eos", len(rows), "-", match)
    yield from inserted("eos", len(rows), now, out)


def _lateness_time(row: Row, known: _Accepted, former: int | None, lateness: End) -> float:
    """The time by which the row is late; `former` is the event as it is known."""
    event = known.events[row.event]
    if former is None:
        return event.end if row.has_end and lateness is End.END else event.start
    if row.withdraws:
        if lateness is End.START:
            return event.start
        return NEVER if former in known.opened else known.events[former].end
    return event.end if former in known.opened else min(event.end, known.events[former].end)


def _emitted(
    known: _Accepted, clock: float, delay: float, consistency: Consistency, *, revises: bool = False
) -> list[Match]:
    """The matches that the consistency lets be emitted."""
    if consistency is Consistency.REALTIME:
        return [*known.certain(clock + 1)]
    if revises and consistency is Consistency.EARLIEST:
        return _settled(known, clock - delay)
    found = known.certain(clock - delay)
    whole = [match for match in found if consistency is Consistency.EARLIEST or not known.opened.intersection(match)]
    return [match for match in whole if may_be_emitted(found[match], clock - delay, consistency)]


def _settled(known: _Accepted, horizon: float) -> list[Match]:
    """The matches that no row in time can change. An event that ends at the horizon or later may get any end from then
    on, as an open one. Whether one negated event forbids a match does not depend on others.
    """

    def may_be_withdrawn(number: int) -> bool:
        if known.lateness is End.START:
            return known.events[number].start >= horizon
        return number in known.opened or known.events[number].end >= horizon

    found = []
    there = known.opened | known.closed
    for match in known.certain(horizon):
        if any(map(may_be_withdrawn, match)):
            continue
        parts = [_revisable(known, {*match, *one}, horizon).certain(horizon) for one in ((), *((n,) for n in there))]
        if all(match in part and may_be_emitted(part[match], horizon, Consistency.EARLIEST) for part in parts):
            found.append(match)
    return found


def _revisable(known: _Accepted, numbers: set[int], horizon: float) -> _Accepted:
    """Only these events; those that a row in time can revise are open."""
    fixed = {number for number in known.closed & numbers if known.events[number].end < horizon}
    return _Accepted(known.plan, known.events, frozenset(numbers - fixed), frozenset(fixed), known.lateness)


def _with_row(known: _Accepted, row: Row) -> _Accepted:
    number = frozenset({row.event})
    if not row.has_end:
        return _Accepted(known.plan, known.events, known.opened | number, known.closed, known.lateness)
    return _Accepted(known.plan, known.events, known.opened - number, known.closed | number, known.lateness)


def _without(known: _Accepted, numbers: set[int]) -> _Accepted:
    return _Accepted(known.plan, known.events, known.opened - numbers, known.closed - numbers, known.lateness)
