"""What an event does to all starts of a class: plain Python, run once for each class and kind of event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cepheid.compile.arrays import Records
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.tables import FINAL, IGNORED, STOPPED
from cepheid.kernel.stages.observed.fates import Fate
from cepheid.kernel.stages.observed.tally import Stop


class Place(NamedTuple):
    """Where partial matches are that differ in nothing that matters to what becomes of their start."""

    state: int
    reached: int
    """The last of the pattern's stages that has taken an event; -1 before the first."""


@dataclass(frozen=True)
class StartClass:
    """All that may still happen to a start, and what has become of it so far."""

    places: frozenset[Place]
    """Those of its open partial matches."""
    taken: frozenset[int] = frozenset()
    """The stages that have taken an event of one of its partial matches."""
    matched: bool = False
    stop: Stop | None = None
    """The end that counts of the partial matches that have ended, if no open one has come as far: it will end later."""

    @property
    def reached(self) -> int:
        """The furthest that an open partial match has come."""
        return max((place.reached for place in self.places), default=-1)

    def ended(self, fate: Fate) -> Stop | None:
        """What becomes of a start whose open partial matches all end so; None: it has a match."""
        if self.matched:
            return None
        return self.stop or Stop(self.reached, fate, None)


class Moves:
    """Moves classes of a pattern whose partial matches are stored in sets."""

    def __init__(self, compiled: CompiledPattern) -> None:
        tables = compiled.tables
        self.first = StartClass(frozenset([Place(int(tables.settings["start"][0]), -1)]))
        """The class of what has not started."""
        self._wake: list[int] = tables.states["wake"].tolist()
        self._edges = [_edges(tables.edges[state["edges"] : state["edges_end"]]) for state in tables.states]
        self._first_until, self._untils = compiled.untils.first, compiled.untils.masks.tolist()

    def wake(self, one: StartClass) -> int:
        """Truth bits: an event without any of them does not move the class."""
        wake = 0
        for place in one.places:
            wake |= self._wake[place.state]
        return wake

    def after(self, before: StartClass, word: int) -> StartClass | None:
        """The class after an event with these truth bits; None: it starts nothing."""
        places, taken, matched, stops = set[Place](), set(before.taken), before.matched, list[Stop]()
        for place in before.places:
            if not word & self._wake[place.state]:
                places.add(place)
                continue
            successors, stages, completes = self._moved(place, word)
            places |= successors
            taken |= stages
            matched |= completes
            if not successors and not completes:
                stops.append(self._stop(place, word))
        if before is self.first and not taken:
            return None
        stop = None if matched else _furthest(before.stop, stops)
        after = StartClass(frozenset(places), frozenset(taken), matched)
        return after if stop is None or stop.reached <= after.reached else _with_stop(after, stop)

    def _moved(self, place: Place, word: int) -> tuple[set[Place], set[int], bool]:
        """Where a partial match goes on, the stages that take the event, and whether it makes a match."""
        followed = [edge for edge in self._edges[place.state] if _follows(edge, word)]
        stopped = any(edge.target == STOPPED for edge in followed)
        successors, stages, completes = set[Place](), set[int](), False
        for edge in followed:
            goes_on = edge.target not in (FINAL, STOPPED) and not stopped
            is_first = place.reached < 0
            if edge.target == STOPPED or (edge.stage == IGNORED and is_first):
                continue
            completes |= bool(edge.completes)
            if edge.stage != IGNORED and (goes_on or edge.completes):
                stages.add(edge.stage)
            if goes_on:
                successors.add(Place(edge.target, place.reached if edge.stage == IGNORED else edge.stage))
        return successors, stages, completes

    def _stop(self, place: Place, word: int) -> Stop:
        """Why a partial match does not go on."""
        for edge in self._edges[place.state]:
            if edge.target == STOPPED and _follows(edge, word):
                return Stop(place.reached, Fate.FORBIDDEN, edge.negation)
        for loop, mask in enumerate(self._untils[place.state]):
            if word & mask:
                return Stop(place.reached, Fate.UNTIL, self._first_until + loop)
        return Stop(place.reached, Fate.BROKEN, None)


class _Edge(NamedTuple):
    """The fields of EDGE that matter to sets."""

    require: int
    forbid: int
    target: int
    stage: int
    completes: int
    negation: int


def _edges(edges: Records) -> list[_Edge]:
    return [_Edge(*(int(edge[name]) for name in _Edge._fields)) for edge in edges]


def _follows(edge: _Edge, word: int) -> bool:
    return word & edge.require == edge.require and word & edge.forbid == 0


def _furthest(before: Stop | None, stops: Iterable[Stop]) -> Stop | None:
    """The end that counts, of an earlier one and of those at one event."""
    last = max(stops, key=_rank, default=None)
    if before is None or last is None:
        return before or last
    return last if last.reached >= before.reached else before


def _rank(stop: Stop) -> tuple[int, int, int]:
    return stop.reached, -stop.fate.code, -1 if stop.by is None else -stop.by


def _with_stop(one: StartClass, stop: Stop) -> StartClass:
    return StartClass(one.places, one.taken, one.matched, stop)
