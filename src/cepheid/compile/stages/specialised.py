"""The scripts that each state runs: those of its conditions, simplified by what is known in the state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cepheid.compile.script import Program
from cepheid.compile.stages.flatten import FlatAutomaton, FlatEdge, TruthBits, union
from cepheid.compile.stages.tables import ALWAYS
from cepheid.compile.stages.taken import Taken, simplified, taken_in
from cepheid.plan.conditions.script import ConstantValue, Script, can_fail


@dataclass(frozen=True)
class Scripts:
    """The scripts of the conditions, in their order, then simplified ones."""

    bits: TruthBits
    program: Program
    conditions: list[int] = field(default_factory=list)
    """The condition of each script, as a place in `TruthBits.scripted`."""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """Where each script is in the program."""
    simpler: dict[tuple[int, Script], int] = field(default_factory=dict)
    """The numbers of the simplified scripts."""

    @classmethod
    def of(cls, bits: TruthBits, program: Program) -> Scripts:
        """Without simplified ones."""
        scripts = cls(bits, program)
        for condition, script in enumerate(bits.script_values):
            scripts._add(condition, script)
        return scripts

    def _add(self, condition: int, script: Script) -> int:
        self.conditions.append(condition)
        self.ranges.append(self.program.add_condition(script))
        return len(self.ranges) - 1

    def number_of(self, condition: int, script: Script) -> int:
        """The number of a condition's script; a simplified one is added when it is asked for first."""
        if script == self.bits.script_values[condition]:
            return condition
        if (condition, script) not in self.simpler:
            self.simpler[condition, script] = self._add(condition, script)
        return self.simpler[condition, script]


def specialise(flat: FlatAutomaton, scripts: Scripts) -> tuple[FlatAutomaton, list[list[int]]]:
    """The automaton whose guards read no condition that is known in their state, and the numbers of the scripts that
    each state runs, which are added to `scripts`.
    """
    taken, states = taken_in(flat), range(len(flat.edges))
    each = [_specialise(flat.edges[state], scripts, taken.get(state, Taken())) for state in states]
    edges = [[_without(edge, known) for edge in flat.edges[i]] for i, (known, _) in enumerate(each)]
    changing = [_replaced(flat.changing[i], known) for i, (known, _) in enumerate(each)]
    return replace(flat, edges=edges, changing=changing), [numbers for _, numbers in each]


def _specialise(edges: list[FlatEdge], scripts: Scripts, taken: Taken) -> tuple[dict[int, int], list[int]]:
    """For the bits of conditions that are known, the masks of bits that are set in their place, 0 for a condition that
    is not true; and the scripts of the others.
    """
    read = union(edge.require | edge.forbid for edge in edges)
    known, numbers = {}, []
    for condition, bit in enumerate(scripts.bits.script_bits):
        if read >> bit & 1:
            script = scripts.bits.script_values[condition]
            simple = script if can_fail(script) else simplified(script, taken)
            if isinstance(simple, ConstantValue):
                known[1 << bit] = scripts.bits.waking(scripts.bits.scripted[condition]) if simple.value is True else 0
            else:
                numbers.append(scripts.number_of(condition, simple))
    return known, numbers


def _without(edge: FlatEdge, known: dict[int, int]) -> FlatEdge:
    never = any(edge.require & bit and not instead for bit, instead in known.items())
    forbid = _replaced(edge.forbid, known) | (1 << ALWAYS if never else 0)
    return replace(edge, require=_replaced(edge.require, known), forbid=forbid)


def _replaced(mask: int, known: dict[int, int]) -> int:
    """The mask with other bits in place of those that are known."""
    for bit, instead in known.items():
        mask = mask & ~bit | instead if mask & bit else mask
    return mask
