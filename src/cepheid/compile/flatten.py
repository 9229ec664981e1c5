"""The automaton without PROCEED edges, its guards as masks.

PROCEED edges are followed here, once, so that at run time a state has only TAKE and IGNORE edges. A guard is two
masks over one word of truth bits an event and partial match: bits that must be set and bits that must not. The word's
low bits are the event's mask of lifted conditions, the bits above are set by scripts, and the highest is always set
(`ALWAYS`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cepheid.compile.automaton import Action, Automaton, Demand, Edge
from cepheid.compile.tables import ALWAYS, FINAL, IGNORED
from cepheid.plan.plan import Plan


@dataclass(frozen=True)
class FlatEdge:
    """A TAKE or IGNORE edge with its guard as masks."""

    target: int
    stage: int
    require: int
    forbid: int
    completes: bool


class TruthBits:
    """Which truth bits the condition of each stage reads, and which scripts set them."""

    def __init__(self, plan: Plan) -> None:
        self.conditions = plan.conditions
        self.scripted = [i for i, condition in enumerate(plan.conditions) if condition.script is not None]
        self.script_values = [s for c in plan.conditions if (s := c.script) is not None]
        self.script_bits = [len(plan.bits) + i for i in range(len(self.scripted))]

    def of_stage(self, stage: int) -> int | None:
        """The bit that says whether the condition of `stage` is true; None: it always is."""
        if stage in self.scripted:
            return self.script_bits[self.scripted.index(stage)]
        return self.conditions[stage].bit

    def waking(self, stage: int) -> int:
        """Mask of the bits without which the condition of `stage` is not true."""
        bit = self.conditions[stage].bit
        return 1 << (ALWAYS if bit is None else bit)

    def masks(self, guard: tuple[Demand, ...]) -> tuple[int, int] | None:
        """What a guard requires and forbids; None if it can never hold."""
        require = forbid = 0
        for demand in guard:
            bit = self.of_stage(demand.stage)
            if demand.negated:
                forbid |= 1 << (ALWAYS if bit is None else bit)
            elif bit is not None:
                require |= 1 << bit
        never = require & forbid or forbid >> ALWAYS
        return None if never else (require, forbid)


@dataclass(frozen=True)
class FlatAutomaton:
    """An automaton without PROCEED edges: per state its edges, and the truth bits that can change a partial match."""

    automaton: Automaton
    edges: list[list[FlatEdge]]
    wake: list[int]


def flatten(automaton: Automaton, bits: TruthBits) -> FlatAutomaton:
    edges = [[*_flat_edges(automaton, number, bits)] for number in range(len(automaton.states))]
    wake = [_wake(number, automaton, edges, bits) for number in range(len(edges))]
    wake[automaton.start] = union(_needed(edge, bits) for edge in edges[automaton.start])
    return FlatAutomaton(automaton, edges, wake)


def _flat_edges(automaton: Automaton, number: int, bits: TruthBits) -> Iterator[FlatEdge]:
    """The TAKE and IGNORE edges of a state and of those it proceeds to."""
    for edge in automaton.states[number].edges:
        if edge.action is Action.PROCEED:
            yield from _flat_edges(automaton, edge.target, bits)
        elif masks := bits.masks(edge.guard):
            yield _flat_edge(automaton, edge, masks)


def _flat_edge(automaton: Automaton, edge: Edge, masks: tuple[int, int]) -> FlatEdge:
    takes = edge.action is Action.TAKE
    return FlatEdge(
        target=FINAL if edge.target == automaton.final else edge.target,
        stage=edge.guard[0].stage if takes else IGNORED,
        require=masks[0],
        forbid=masks[1],
        completes=takes and _reaches_final(automaton, edge.target),
    )


def _reaches_final(automaton: Automaton, number: int) -> bool:
    if number == automaton.final:
        return True
    edges = automaton.states[number].edges
    return any(_reaches_final(automaton, edge.target) for edge in edges if edge.action is Action.PROCEED)


def _wake(number: int, automaton: Automaton, edges: list[list[FlatEdge]], bits: TruthBits) -> int:
    """The truth bits that can change a partial match in state `number`; ALWAYS if any event can.

    An event for which no condition is true leads by IGNORE edges to some states. If these states together have the very
    edges that `number` has, staying in `number` gives the same matches, so such an event need not be looked at.
    """
    idle = [edge for edge in edges[number] if edge.require == 0]
    rest = [edge.target for edge in idle if edge.stage == IGNORED]
    same_edges = Counter(edges[number]) == Counter(edge for target in rest for edge in edges[target])
    same_end = sum(automaton.states[target].complete for target in rest) == automaton.states[number].complete
    stays = len(rest) == len(idle) and same_edges and same_end
    return union(_needed(edge, bits) for edge in edges[number]) if stays else 1 << ALWAYS


def _needed(edge: FlatEdge, bits: TruthBits) -> int:
    return bits.waking(edge.stage) if edge.stage != IGNORED else 0


def reachable(flat: FlatAutomaton) -> set[int]:
    start = flat.automaton.start
    reached, open_ = {start}, [start]
    while open_:
        new = {edge.target for edge in flat.edges[open_.pop()]} - reached - {FINAL}
        reached |= new
        open_ += new
    return reached


def union(masks: Iterable[int]) -> int:
    """All bits that one of the masks has."""
    union = 0
    for mask in masks:
        union |= mask
    return union
