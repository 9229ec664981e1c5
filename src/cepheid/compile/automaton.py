"""The automaton of a pattern: FlinkCEP's states and edges, as frozen values.

A partial match is in one state. An event moves it along every edge whose guard holds: TAKE adds the event to the
partial match, IGNORE passes the event over, PROCEED looks on from the target state with the same event. Several edges
may hold, then the partial match branches; where none holds, it ends. The construction is that of FlinkCEP's
`NFACompiler` (states are made from the last stage to the first, each linked to what follows), with one addition for
`longest`: a state in which the trailing loop has enough events is `complete` instead of proceeding to the final
state, and a partial match that ends there is a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cepheid.lang.pattern import Contiguity, Pattern, Stage


class Action(Enum):
    """What an edge does with the current event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


@dataclass(frozen=True)
class Demand:
    """A guard asks that the condition of stage `stage` is true or, negated, that it is not true (false or unknown)."""

    stage: int
    negated: bool = False


@dataclass(frozen=True)
class Edge:
    """From the state that holds it to state `target`, if all demands of the guard are met."""

    action: Action
    target: int
    guard: tuple[Demand, ...] = ()


@dataclass(frozen=True)
class State:
    """Where a partial match stands: it waits for an event of stage `stage`. The final state has no stage and no
    edges.
    """

    name: str
    stage: int | None
    edges: tuple[Edge, ...]
    complete: bool = False
    """A partial match that ends here (by an event, its deadline or the end of the input) is a match: see `longest`."""


@dataclass(frozen=True)
class Automaton:
    """States by number; `start` is always occupied and every event may leave it by TAKE."""

    states: tuple[State, ...]
    start: int
    final: int


def build_automaton(pattern: Pattern) -> Automaton:
    """The automaton of `pattern`, which has been checked (`cepheid.plan.build`)."""
    assembly = _Assembly()
    final = assembly.add(State("final", None, ()))
    following = final
    for index in reversed(range(len(pattern.stages))):
        following = _Link(assembly, pattern.stages[index], index, following, starts=index == 0).entry()
    return Automaton(tuple(assembly.states), start=following, final=final)


class _Assembly:
    """States made so far; a state that refers to itself is added first and given its edges afterwards."""

    def __init__(self) -> None:
        self.states: list[State] = []

    def add(self, state: State) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def reserve(self) -> int:
        return self.add(State("reserved", None, ()))

    def fill(self, number: int, state: State) -> None:
        self.states[number] = state


class _Link:
    """Makes the states of one stage, linked to the state `following` that comes after it."""

    def __init__(self, assembly: _Assembly, stage: Stage, index: int, following: int, *, starts: bool) -> None:
        self.assembly = assembly
        self.stage = stage
        self.index = index
        self.following = following
        self.outer = Contiguity.STRICT if starts else stage.contiguity
        self.inner = Contiguity.STRICT if stage.quantifier.consecutive else Contiguity.RELAXED

    def entry(self) -> int:
        """The state that waits for the stage's first event."""
        quantifier = self.stage.quantifier
        following = self.following if quantifier.maximum is not None else self._looping()
        if quantifier.maximum is not None:
            for taken in reversed(range(quantifier.minimum, quantifier.maximum)):
                following = self._single(f"{self.stage.name}[{taken + 1}]", following, self.inner, may_leave=True)
        for taken in reversed(range(1, quantifier.minimum)):
            following = self._single(f"{self.stage.name}[{taken + 1}]", following, self.inner, may_leave=False)
        return self._single(self.stage.name, following, self.outer, may_leave=quantifier.optional)

    def _looping(self) -> int:
        """A state that takes any number of further events, and may be left at any time."""
        number = self.assembly.reserve()
        edges = [*self._leave(), Edge(Action.TAKE, number, (Demand(self.index),))]
        if self.inner is not Contiguity.STRICT:
            edges.append(self._ignore(self._waiting(number, f"{self.stage.name}[…] waiting", self.inner), self.inner))
        self.assembly.fill(number, State(f"{self.stage.name}[…]", self.index, tuple(edges), complete=self._longest))
        return number

    def _single(self, name: str, taken: int, contiguity: Contiguity, *, may_leave: bool) -> int:
        """A state that takes one event to state `taken`, and may be left without it if `may_leave`."""
        number = self.assembly.reserve()
        edges = [Edge(Action.TAKE, taken, (Demand(self.index),))]
        if may_leave:
            edges += self._leave()
        if contiguity is not Contiguity.STRICT:
            # A state that may be left must not be left after an event was passed over (the way out was offered
            # before it), so passing over leads to a twin without that edge.
            target = self._waiting(taken, f"{name} waiting", contiguity) if may_leave else number
            edges.append(self._ignore(target, contiguity))
        self.assembly.fill(number, State(name, self.index, tuple(edges), complete=may_leave and self._longest))
        return number

    def _waiting(self, taken: int, name: str, contiguity: Contiguity) -> int:
        number = self.assembly.reserve()
        edges = (Edge(Action.TAKE, taken, (Demand(self.index),)), self._ignore(number, contiguity))
        self.assembly.fill(number, State(name, self.index, edges, complete=self._longest))
        return number

    def _ignore(self, target: int, contiguity: Contiguity) -> Edge:
        guard = (Demand(self.index, negated=True),) if contiguity is Contiguity.RELAXED else ()
        return Edge(Action.IGNORE, target, guard)

    def _leave(self) -> list[Edge]:
        return [] if self._longest else [Edge(Action.PROCEED, self.following)]

    @property
    def _longest(self) -> bool:
        return self.stage.quantifier.longest
