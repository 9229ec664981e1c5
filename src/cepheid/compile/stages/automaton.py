"""The automaton of a pattern: FlinkCEP's states and edges, as frozen values.

A partial match is in one state. An event moves it along every edge whose guard holds: TAKE adds the event to the
partial match, IGNORE skips the event, PROCEED continues from the target state with the same event, STOP ends the
partial match whatever else holds. If several edges hold, the partial match branches; if none holds, it ends.

The construction is that of FlinkCEP's `NFACompiler`: states are made from the last stage to the first, each linked to
what follows. If a state has several roles (the first turn of a loop, a later turn), it is made once for each role.

There are these additions:

- `longest`: a state in which the trailing loop has enough events is `complete`, instead of proceeding to the final
  state. If the loop is over a group, the states are the same as without `longest`, and `loop` has the group's stages.
- A state that waits for time to pass without the event of a last NOT stage is `pending`.
- Edges have a window, in which an event must come.
- `max_gap` is a window of every state.
- `begin_without` is a guard on the edges of the start state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from itertools import takewhile

from cepheid.compile.stages.guard import ALWAYS, Guard, condition
from cepheid.lang.duration import microseconds
from cepheid.lang.stages.pattern import Contiguity, Pattern, Quantifier, Stage


class Action(Enum):
    """What an edge does with the current event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"
    STOP = "stop"


@dataclass(frozen=True)
class Edge:
    """An edge from the state that holds it to state `target`, which is followed if the guard is met."""

    action: Action
    target: int
    """The next state; for STOP the final state, which is not reached."""
    guard: Guard = ALWAYS
    stage: int | None = None
    """For TAKE, the stage that takes the event."""
    window: int | None = None
    """Microseconds: TAKE only an event that comes less than this after the one taken before it."""
    negation: int | None = None
    """For STOP, the negated stage that forbids the event."""


@dataclass(frozen=True)
class State:
    """Where a partial match stands. The final state has no edges."""

    name: str
    edges: tuple[Edge, ...] = ()
    complete: bool = False
    """A partial match that ends here, or in a state that proceeds here, is a match: see `longest`."""
    pending: bool = False
    """A partial match whose deadline passes here is a match, because the forbidden event has not come."""
    window: int | None = None
    """Microseconds from the event taken last to the deadline. The windows of edges apply as well."""


@dataclass(frozen=True)
class Without:
    """The guard on the start state that `begin_without` sets."""

    condition: int
    """The guard forbids this condition: that an event of `window` or less before fits the condition of this number."""
    window: int
    """Microseconds, inclusive."""


@dataclass(frozen=True)
class Automaton:
    """States by number; `start` is always occupied and every event may leave it by TAKE."""

    states: tuple[State, ...]
    start: int
    final: int
    loop: frozenset[int] = frozenset()
    """With `longest` on a group: its stages. A partial match that would be a match without `longest` is then one only
    if it cannot grow.
    """
    max_gap: int | None = None
    """Microseconds from the event taken last to the deadline, in any state. Other windows apply as well."""
    without: Without | None = None


def leads_to_complete(automaton: Automaton, state: int) -> bool:
    """Whether a partial match that ends in this state, by its deadline or the end of the input, is a match."""
    edges = automaton.states[state].edges
    return automaton.states[state].complete or any(
        leads_to_complete(automaton, edge.target) for edge in edges if edge.action is Action.PROCEED
    )


def waits_in_loop(automaton: Automaton, state: int) -> bool:
    """Whether a partial match in this state may take an event of `Automaton.loop` next."""
    return any(edge.stage in automaton.loop for edge in _takes(automaton, state))


def gap(automaton: Automaton, state: int) -> int | None:
    """Microseconds from the event taken last to the end of a partial match in this state; None: no such limit.

    It ends when none of the events that it waits for can come in time.
    """
    return _shortest(automaton.max_gap, _own_gap(automaton, state))


def _own_gap(automaton: Automaton, state: int) -> int | None:
    limit = automaton.states[state].window
    if limit is not None:
        return limit
    windows = [edge.window for edge in _takes(automaton, state)]
    known = [window for window in windows if window is not None]
    return max(known) if windows and len(known) == len(windows) else None


def _takes(automaton: Automaton, state: int) -> Iterator[Edge]:
    """The TAKE edges of a state, and of all states that it leads to by PROCEED and IGNORE."""
    seen, open_ = {state}, [state]
    while open_:
        for edge in automaton.states[open_.pop()].edges:
            if edge.action is Action.TAKE:
                yield edge
            elif edge.action is not Action.STOP and edge.target not in seen:
                seen.add(edge.target)
                open_.append(edge.target)


def build_automaton(pattern: Pattern) -> Automaton:
    """The automaton of `pattern`, which has been checked (`cepheid.plan.stages.build`)."""
    numbers = _numbered(pattern)
    final = _Node("final")
    first = _Sequence(numbers, final).entry(pattern.stages, final)
    without = _without(pattern, numbers)
    if without is not None:
        earlier = condition(without.condition)
        first.edges = [replace(edge, guard=edge.guard & ~earlier) for edge in first.edges]
    last = pattern.stages[-1]
    longest = last.leaves if last.group and last.quantifier.longest else ()
    return replace(
        _frozen(first, final),
        loop=frozenset(numbers.stages[id(stage)] for stage in longest),
        max_gap=_microseconds(pattern.gap),
        without=without,
    )


def _without(pattern: Pattern, numbers: _Numbers) -> Without | None:
    if pattern.without is None:
        return None
    return Without(len(numbers.stages) + len(numbers.untils), microseconds(pattern.without.window))


@dataclass(eq=False)
class _Node:
    """A state under construction. States of a loop refer to each other, so nodes change until all are made."""

    name: str
    edges: list[_Link] = field(default_factory=list)
    complete: bool = False
    pending: bool = False
    window: int | None = None

    def take(self, target: _Node, guard: Guard, stage: int, window: int | None) -> None:
        self.edges.append(_Link(Action.TAKE, target, guard, stage, window))

    def ignore(self, target: _Node, guard: Guard) -> None:
        self.edges.append(_Link(Action.IGNORE, target, guard))

    def proceed(self, target: _Node, guard: Guard = ALWAYS) -> None:
        self.edges.append(_Link(Action.PROCEED, target, guard))

    def stop(self, guards: Mapping[int, Guard]) -> None:
        """Stops at the events that negated stages forbid; there is a guard for each of the stages."""
        for stage, guard in guards.items():
            self.edges.append(_Link(Action.STOP, self, guard, negation=stage))

    def copy(self) -> _Node:
        """A copy of the state; edges to itself lead to the copy."""
        copy = _Node(self.name, [], self.complete, self.pending, self.window)
        copy.edges = [replace(edge, target=copy if edge.target is self else edge.target) for edge in self.edges]
        return copy


@dataclass(frozen=True, eq=False)
class _Link:
    action: Action
    target: _Node
    guard: Guard
    stage: int | None = None
    window: int | None = None
    negation: int | None = None


@dataclass(frozen=True)
class _Numbers:
    """The numbers of a pattern's conditions: first those of the stages, then those that end loops."""

    stages: dict[int, int]
    """By `id` of the stage, because equal stages may be in several groups."""
    untils: dict[int, int]


def _numbered(pattern: Pattern) -> _Numbers:
    leaves = pattern.leaves
    return _Numbers(
        {id(stage): number for number, stage in enumerate(leaves)},
        {id(stage): len(leaves) + number for number, stage in enumerate(pattern.loops_until)},
    )


@dataclass(frozen=True)
class _Sequence:
    """Makes the states of a sequence of stages: the whole pattern, or a turn of a group."""

    numbers: _Numbers
    final: _Node
    group: Stage | None = None
    head: Contiguity = Contiguity.STRICT
    """How the first event of the first stage follows what comes before the sequence."""
    unless: Guard = ALWAYS
    """A guard for every event: the event does not end the loop that has this sequence as a turn."""
    skippable: bool = False
    """Whether the sequence is the first turn of an optional group."""
    head_window: int | None = None
    window: int | None = None
    """The longest gap before the sequence's first event (`head_window`) and before every other event (`window`), in
    microseconds.
    """

    def entry(self, stages: Sequence[Stage], sink: _Node) -> _Node:
        """The state that waits for the first event of the stages. The last stage's state leads to `sink`."""
        for index in reversed(range(len(stages))):
            stage, following = stages[index], stages[index + 1 :]
            if stage.contiguity is Contiguity.NOT_FOLLOWED_BY:
                sink = self._absent(stage, sink)
            elif stage.contiguity is Contiguity.NOT_NEXT:
                sink = self._not_next(stage, sink)
            else:
                nots = takewhile(lambda other: other.contiguity is Contiguity.NOT_FOLLOWED_BY, following)
                sink = _Step(self, stage, index == 0, self._forbidden(nots), sink).entry()
        return sink

    def condition(self, stage: Stage) -> Guard:
        """The guard that the stage takes the event; for a negated stage, that the event is forbidden."""
        return self.unless & condition(self.numbers.stages[id(stage)])

    def _forbidden(self, negated: Iterable[Stage]) -> dict[int, Guard]:
        """For each of the negated stages, the guard that it forbids the event."""
        return {self.numbers.stages[id(stage)]: self.condition(stage) for stage in negated}

    def until(self, stage: Stage) -> Guard | None:
        return None if stage.until is None else condition(self.numbers.untils[id(stage)])

    def _not_next(self, stage: Stage, sink: _Node) -> _Node:
        matches, state = self.condition(stage), _Node(stage.name)
        if sink is self.final:  # another event must come
            state.ignore(sink, ~matches)
        else:
            state.proceed(sink, ~matches)
        state.stop(self._forbidden([stage]))
        return state

    def _absent(self, stage: Stage, sink: _Node) -> _Node:
        """The sink, with an edge that stops at forbidden events on all states in which no event has been taken yet."""
        if sink is self.final:
            sink = _Node(stage.name, pending=True, window=_microseconds(stage.window))
            sink.ignore(sink, self.unless)
        return _guarded(sink, self._forbidden([stage]), {})


@dataclass
class _Step:
    """Makes the states of one stage or group, linked to the state `sink` that comes after it."""

    sequence: _Sequence
    stage: Stage
    leads: bool
    """Whether the stage is the first of its sequence."""
    nots: Mapping[int, Guard]
    """The guards that an event is forbidden after the stage, by the negated stage."""
    sink: _Node

    def entry(self) -> _Node:
        """The state that waits for the stage's first event."""
        least, most = self.quantifier.minimum, self.quantifier.maximum
        self.unfavoured = self.sink.copy() if self.sink.edges else self.sink
        if self.quantifier.greedy and least != most:
            self._favour()
        after = self._looping() if most is None else self.sink
        for _ in range(least, most or least):
            after = self._turn(after, self.sink)
        for _ in range(least - 1):
            after = self._turn(after, None)
        return self._once(after, self.sink if self.quantifier.optional else None, first=True)

    @property
    def quantifier(self) -> Quantifier:
        return self.stage.quantifier

    @property
    def _take(self) -> Guard:
        """The guard that the stage takes the event: its condition holds and the event does not end its loop."""
        until = self.sequence.until(self.stage)
        takes = self.sequence.condition(self.stage)
        return takes if until is None else takes & ~until

    def _favour(self) -> None:
        """Changes the state after a greedy loop, so that it takes no event that the loop could take."""
        takes = self.sequence.condition(self.stage) if self.quantifier.maximum is None else self._take
        self.sink.edges = [replace(edge, guard=edge.guard & ~takes) for edge in self.sink.edges]

    def _turn(self, after: _Node, leave: _Node | None) -> _Node:
        """The state between two turns of the loop."""
        state = self._once(after, leave, first=False)
        state.stop(self.nots)
        return state

    def _once(self, after: _Node, leave: _Node | None, *, first: bool) -> _Node:
        """A state for one turn, which leads to `after`. If `leave` is given, it may also lead there without a turn."""
        if self.stage.group:
            state = self._group(after, first=first)
            if leave is not None:
                state.proceed(leave, self.sequence.unless)
            return state
        state, take, number = _Node(self.stage.name), self._take, self._number
        window = self._window(first=first)
        if self._is_plain:
            state.window, window = window, None
        state.take(after, take, number, window)
        if leave is not None:
            self._leave(state, leave)
        passing = self._passing(first=first)
        if passing is not None:
            waiting = state
            if leave is not None or (self.leads and self.sequence.skippable):
                # A state with a way out must not use it after it has ignored an event, because the way out was offered
                # before that event. So IGNORE leads to a duplicate without the way out.
                waiting = _Node(f"{self.stage.name} waiting", complete=self.quantifier.longest)
                waiting.take(after, take, number, window)
                waiting.ignore(waiting, passing)
            state.ignore(waiting, passing)
        return state

    def _looping(self) -> _Node:
        """A state that takes any number of further events or turns, and may be left at any time."""
        if self.stage.group:
            again = _Node("again")
            state = self._group(again, first=False)
            state.proceed(self.sink, self.sequence.unless)
            again.proceed(state, self.sequence.unless)
            return again
        state, window = _Node(f"{self.stage.name}[…]"), self._window(first=False)
        self._leave(state, self.sink)
        state.take(state, self._take, self._number, window)
        state.stop(self.nots)
        passing = self._passing(first=False)
        if passing is not None:
            waiting = _Node(f"{self.stage.name}[…] waiting", complete=self.quantifier.longest)
            waiting.take(state, self._take, self._number, window)
            waiting.ignore(waiting, passing)
            waiting.stop(self.nots)
            state.ignore(waiting, passing)
        return state

    def _leave(self, state: _Node, leave: _Node) -> None:
        if self.quantifier.longest:
            state.complete = True
            return
        until = self.sequence.until(self.stage)
        if until is None or not self.quantifier.greedy:
            state.proceed(leave, self.sequence.unless)
            return
        # The event that ends a greedy loop is offered to what comes after it, even if the loop could take the event.
        state.proceed(self.unfavoured, self.sequence.unless & until)
        state.proceed(leave, self.sequence.unless & ~until)

    def _passing(self, *, first: bool) -> Guard | None:
        """The guard of the events that are ignored while the stage waits for one; None: no event is ignored."""
        if first:
            contiguity = self.sequence.head if self.leads else self.stage.contiguity
        elif self.leads and self.sequence.group is not None:
            contiguity = _inner(self.sequence.group.quantifier)  # as in FlinkCEP
        else:
            contiguity = _inner(self.quantifier)
        if contiguity is Contiguity.STRICT:
            return None
        passing = self.sequence.unless
        if contiguity is Contiguity.RELAXED:
            passing &= ~condition(self._number)
        until = self.sequence.until(self.stage)
        return passing if first or until is None else passing & ~until

    @property
    def _number(self) -> int:
        return self.sequence.numbers.stages[id(self.stage)]

    def _window(self, *, first: bool) -> int | None:
        """The longest gap before an event of the stage, in microseconds."""
        sequence = self.sequence
        around = sequence.head_window if first and self.leads else sequence.window
        loop = None if first else _microseconds(self.quantifier.window)
        return _shortest(_microseconds(self.stage.window), loop, around)

    @property
    def _is_plain(self) -> bool:
        """Whether the stage takes exactly one event, outside groups. As in FlinkCEP, its window then belongs to the
        state that waits for the event. The window does not count where the event is taken on the way out of the
        previous stage.
        """
        return self.stage.quantifier == Quantifier() and self.sequence.group is None

    def _group(self, after: _Node, *, first: bool) -> _Node:
        until = self.sequence.until(self.stage)
        turn = replace(
            self.sequence,
            group=self.stage,
            head=self.stage.contiguity if first else _inner(self.quantifier),
            skippable=first and self.quantifier.optional,
            unless=ALWAYS if until is None else ~until,  # as in FlinkCEP, the until of the innermost group
            head_window=self._window(first=first),
            window=self._window(first=False),
        )
        return turn.entry(self.stage.group, after)


def _inner(quantifier: Quantifier) -> Contiguity:
    """How the events or turns of a loop follow each other."""
    if quantifier.consecutive:
        return Contiguity.STRICT
    return Contiguity.RELAXED_ANY if quantifier.combinations else Contiguity.RELAXED


def _guarded(state: _Node, forbidden: Mapping[int, Guard], copies: dict[_Node, _Node]) -> _Node:
    """Copies the state and every state that it leads to before an event is taken. A forbidden event stops the
    copies.
    """
    if state in copies:
        return copies[state]
    guarded = copies[state] = _Node(state.name, [], state.complete, state.pending, state.window)
    for edge in state.edges:
        stays = edge.action in (Action.IGNORE, Action.PROCEED) and edge.target.edges
        guarded.edges.append(replace(edge, target=_guarded(edge.target, forbidden, copies) if stays else edge.target))
    guarded.stop(forbidden)
    return guarded


def _frozen(first: _Node, final: _Node) -> Automaton:
    """The reachable states, numbered."""
    nodes = [final, first]
    for node in nodes:
        nodes += dict.fromkeys(edge.target for edge in node.edges if edge.target not in nodes)
    numbers = {node: number for number, node in enumerate(nodes)}
    states = []
    for node in nodes:
        edges = [_edge(link, numbers, final) for link in node.edges if link.guard.terms]
        states.append(State(node.name, tuple(edges), node.complete, _leads_to_pending(node), node.window))
    return Automaton(tuple(states), start=numbers[first], final=numbers[final])


def _edge(link: _Link, numbers: dict[_Node, int], final: _Node) -> Edge:
    target = final if link.action is Action.STOP else link.target
    return Edge(link.action, numbers[target], link.guard, link.stage, link.window, link.negation)


def _leads_to_pending(node: _Node) -> bool:
    """Whether a partial match in this state is a match when its deadline passes."""
    return node.pending or any(_leads_to_pending(e.target) for e in node.edges if e.action is Action.PROCEED)


def _microseconds(length: timedelta | None) -> int | None:
    return None if length is None else microseconds(length)


def _shortest(*windows: int | None) -> int | None:
    return min((window for window in windows if window is not None), default=None)
