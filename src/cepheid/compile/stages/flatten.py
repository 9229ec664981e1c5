"""The automaton without PROCEED edges, and with its guards as masks.

PROCEED edges are followed here, once, so that at run time an event follows a single edge to each new state. A guard is
two masks over one word of truth bits per event and partial match: the bits that must be set and the bits that must not.
The word's low bits are the event's mask of lifted conditions. Scripts set the bits above, and the highest bit is always
set (`ALWAYS`). A guard with several terms becomes several edges; at most one of them holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cepheid.compile.arrays import NONE
from cepheid.compile.stages.automaton import Action, Automaton, Edge, gap, leads_to_complete, waits_in_loop
from cepheid.compile.stages.guard import ALWAYS as HOLDS
from cepheid.compile.stages.guard import NEVER, Demand, Guard, any_of
from cepheid.compile.stages.tables import ALWAYS, FINAL, IGNORED, STOPPED
from cepheid.plan.stages.plan import Plan


@dataclass(frozen=True)
class FlatEdge:
    """A TAKE, IGNORE or STOP edge with its guard as masks."""

    target: int
    stage: int
    require: int
    forbid: int
    completes: bool
    leaves: bool
    after: int
    window: int
    negation: int


class TruthBits:
    """Which truth bits the condition of each stage reads, and which scripts set them."""

    def __init__(self, plan: Plan) -> None:
        self.conditions = plan.conditions
        self.scripted = [i for i, condition in enumerate(plan.conditions) if condition.script is not None]
        self.script_values = [s for c in plan.conditions if (s := c.script) is not None]
        self.script_bits = [len(plan.bits) + i for i in range(len(self.scripted))]
        self.without = None if plan.pattern.without is None else len(plan.conditions) - 1
        """The condition of `begin_without`."""
        self.kept_out = len(plan.bits) + len(self.scripted)
        """The bit that guards read in place of that condition: whether an earlier event meets it."""

    def of_stage(self, stage: int) -> int | None:
        """The bit that says whether the condition of `stage` is true; None: it is always true."""
        if stage == self.without:
            return self.kept_out
        if stage in self.scripted:
            return self.script_bits[self.scripted.index(stage)]
        return self.conditions[stage].bit

    def waking(self, stage: int) -> int:
        """A mask of the bit without which the condition of `stage` is not true."""
        bit = self.conditions[stage].bit
        return 1 << (ALWAYS if bit is None else bit)

    def deciding(self, stage: int) -> int:
        """A mask of the bit that says whether the condition of `stage` is true."""
        bit = self.of_stage(stage)
        return 1 << (ALWAYS if bit is None else bit)

    def masks(self, term: frozenset[Demand]) -> tuple[int, int] | None:
        """The masks of bits that a guard's term requires and forbids; None if the term can never hold."""
        require = forbid = 0
        for demand in term:
            bit = self.of_stage(demand.condition)
            if demand.negated:
                forbid |= 1 << (ALWAYS if bit is None else bit)
            elif bit is not None:
                require |= 1 << bit
        never = require & forbid or forbid >> ALWAYS
        return None if never else (require, forbid)


@dataclass(frozen=True)
class FlatAutomaton:
    """An automaton without PROCEED edges. Each state has its edges, and the truth bits that can change a partial match
    in it (`wake`).
    """

    automaton: Automaton
    edges: list[list[FlatEdge]]
    wake: list[int]
    demands: list[frozenset[int] | None]
    """For each state the conditions that can change a partial match in it: an event for which none of them is true
    changes nothing. None: any event can change it.
    """
    changing: list[int]
    """For each state the truth bits of these conditions, those that scripts set among them."""


def flatten(automaton: Automaton, bits: TruthBits) -> FlatAutomaton:
    numbers = range(len(automaton.states))
    followed = [[*followed_edges(automaton, number, HOLDS)] for number in numbers]
    edges = [
        [
            flat
            for edge, after in (*((edge, NONE) for edge in followed[i]), *_breaking(automaton, i))
            for flat in _flat_edges(automaton, edge, after, bits)
        ]
        for i in numbers
    ]
    demands = [_demands(number, automaton, followed, edges) for number in numbers]
    wake = [1 << ALWAYS if each is None else union(map(bits.waking, each)) for each in demands]
    taken = frozenset(edge.stage for edge in followed[automaton.start] if edge.stage is not None)
    wake[automaton.start] = union(map(bits.waking, taken))
    asked = [taken if number == automaton.start else demands[number] for number in numbers]
    changing = [1 << ALWAYS if each is None else union(map(bits.deciding, each)) for each in asked]
    return FlatAutomaton(automaton, edges, wake, demands, changing)


def followed_edges(automaton: Automaton, number: int, guard: Guard) -> Iterator[Edge]:
    """The edges, except PROCEED, of a state and of the states it proceeds to; each also demands `guard`."""
    for edge in automaton.states[number].edges:
        both = guard & edge.guard
        if edge.action is Action.PROCEED:
            yield from followed_edges(automaton, edge.target, both)
        else:
            yield replace(edge, guard=both)


def conditions_read(automaton: Automaton, number: int, bits: TruthBits) -> frozenset[int]:
    """The conditions that the edges of a state, and of the states it proceeds to, demand or forbid. Edges that can
    never be followed read nothing.
    """
    terms = (term for edge in followed_edges(automaton, number, HOLDS) for term in edge.guard.terms)
    return frozenset(demand.condition for term in terms if bits.masks(term) is not None for demand in term)


def _breaking(automaton: Automaton, number: int) -> Iterator[tuple[Edge, int]]:
    """Edges for the events that end a partial match in a complete state (the state, or one that it proceeds to). Each
    comes with the time after which it is followed, because other events end it once the window of an edge has passed.
    """
    windows = {edge.window for edge in followed_edges(automaton, number, HOLDS)}
    deadline = gap(automaton, number)
    steps = sorted(w for w in windows if w is not None and (deadline is None or w < deadline))
    for after, before in zip([NONE, *steps], [*steps, None], strict=True):
        guard = any_of(_breaks(automaton, number, HOLDS, after))
        if guard.terms:
            yield Edge(Action.IGNORE, automaton.final, guard, window=before), after


def _breaks(automaton: Automaton, number: int, guard: Guard, after: int) -> Iterator[Guard]:
    """The guards that end a partial match in a complete state, given `guard`: none of the edges holds that may still be
    followed once `after` microseconds have passed.
    """
    if automaton.states[number].complete:
        edges = followed_edges(automaton, number, HOLDS)
        yield guard & ~any_of(edge.guard for edge in edges if edge.window is None or edge.window > after)
    for edge in automaton.states[number].edges:
        if edge.action is Action.PROCEED:
            yield from _breaks(automaton, edge.target, guard & edge.guard, after)


def _flat_edges(automaton: Automaton, edge: Edge, after: int, bits: TruthBits) -> Iterator[FlatEdge]:
    target = FINAL if edge.target == automaton.final else edge.target
    stage = IGNORED if edge.stage is None else edge.stage
    if edge.action is Action.STOP:
        target = stage = STOPPED
    leaves = bool(automaton.loop) and not _stays(automaton, edge)
    completing = (
        HOLDS if target == FINAL else completing_guard(automaton, edge.target) if edge.stage is not None else NEVER
    )
    for guard, completes in ((edge.guard & completing, True), (edge.guard & ~completing, False)):
        for require, forbid in filter(None, map(bits.masks, guard.terms)):
            window = NONE if edge.window is None else edge.window
            negation = NONE if edge.negation is None else edge.negation
            yield FlatEdge(target, stage, require, forbid, completes, leaves, after, window, negation)


def _stays(automaton: Automaton, edge: Edge) -> bool:
    """Whether what follows the edge may still be a turn of `Automaton.loop`."""
    return waits_in_loop(automaton, edge.target) if edge.stage is None else edge.stage in automaton.loop


def completing_guard(automaton: Automaton, number: int) -> Guard:
    """The guard that a state proceeds to the final state."""
    if number == automaton.final:
        return HOLDS
    proceeding = (edge for edge in automaton.states[number].edges if edge.action is Action.PROCEED)
    return any_of(edge.guard & completing_guard(automaton, edge.target) for edge in proceeding)


def _demands(
    number: int, automaton: Automaton, followed: list[list[Edge]], edges: list[list[FlatEdge]]
) -> frozenset[int] | None:
    """See FlatAutomaton.demands.

    An event for which no condition is true leads by IGNORE edges to some states. If these states together have exactly
    the edges of `number`, staying in `number` gives the same matches, so such an event can be skipped. It cannot be
    skipped if it makes the partial match leave the loop of a longest group. If there are several states, one partial
    match stands for those that would be in them. So it must not be a match when it ends, and no negation may end one of
    them alone.
    """
    idle = [edge for edge in edges[number] if edge.require == 0]
    rest = [edge.target for edge in idle if edge.stage == IGNORED and edge.target >= 0 and not edge.leaves]
    same_edges = Counter(edges[number]) == Counter(edge for target in rest for edge in edges[target])
    end = _end(automaton, number)
    same_end = all(_end(automaton, target) == end for target in rest)
    alone = len(rest) == 1 or not (end[0] or end[1] or any(edge.target == STOPPED for edge in edges[number]))
    if len(rest) < len(idle) or not rest or not (same_edges and same_end and alone):
        return None
    return frozenset(demand.condition for edge in followed[number] for term in edge.guard.terms for demand in term)


def _end(automaton: Automaton, number: int) -> tuple[bool, bool, int | None]:
    """How partial matches end in the state: whether they are a match then, and when."""
    return leads_to_complete(automaton, number), automaton.states[number].pending, gap(automaton, number)


def reachable(flat: FlatAutomaton) -> set[int]:
    start = flat.automaton.start
    reached, open_ = {start}, [start]
    while open_:
        new = {edge.target for edge in flat.edges[open_.pop()]} - reached - {FINAL, STOPPED}
        reached |= new
        open_ += new
    return reached


def union(masks: Iterable[int]) -> int:
    """The bits that any of the masks has."""
    union = 0
    for mask in masks:
        union |= mask
    return union
