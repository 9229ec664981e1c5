"""What each state knows of its conditions: the scripts that it still runs, and the events that can change it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from cepheid.compile.script import Program
from cepheid.compile.stages.flatten import FlatAutomaton, FlatEdge, TruthBits, union
from cepheid.compile.stages.tables import ALWAYS
from cepheid.compile.stages.taken import Taken, simplified, taken_in
from cepheid.plan.conditions.script import ConstantValue, Script, can_fail

Known: TypeAlias = dict[int, int]
"""For the bits of conditions that are known, the masks of bits that are set in their place; 0 for a condition that is
not true.
"""


@dataclass(frozen=True)
class PatternScripts:
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
    def of(cls, bits: TruthBits, program: Program) -> PatternScripts:
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


class Specialised(NamedTuple):
    """An automaton whose guards read no condition that is known in their state."""

    flat: FlatAutomaton
    scripts: list[list[int]]
    """For each state the numbers of the scripts that it runs."""
    known: list[Known]
    """For each state what it knows."""


def unspecialised(flat: FlatAutomaton) -> Specialised:
    """The automaton as it is, without scripts."""
    return Specialised(flat, [[] for _ in flat.edges], [{} for _ in flat.edges])


def specialise(flat: FlatAutomaton, scripts: PatternScripts) -> Specialised:
    """Simplifies the scripts in each state, and adds those that states run to `scripts`."""
    taken, states = taken_in(flat), range(len(flat.edges))
    each = [_known_in(flat.edges[state], scripts, taken.get(state, Taken())) for state in states]
    edges = [[_without(edge, known) for edge in flat.edges[i]] for i, (known, _) in enumerate(each)]
    changing = [replaced(flat.changing[i], known) for i, (known, _) in enumerate(each)]
    wake = [_waking(mask, scripts.bits) for mask in changing]
    flat = replace(flat, edges=edges, changing=changing, wake=wake)
    return Specialised(flat, [numbers for _, numbers in each], [known for known, _ in each])


def _known_in(edges: list[FlatEdge], scripts: PatternScripts, taken: Taken) -> tuple[Known, list[int]]:
    """What a state with these edges knows, and the scripts of the other conditions that they read."""
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


def _waking(changing: int, bits: TruthBits) -> int:
    """The truth bits that an event must have one of, so that scripts may set one of the bits that change something."""
    scripted = [(1 << bit, bits.waking(stage)) for bit, stage in zip(bits.script_bits, bits.scripted, strict=True)]
    lifted = changing & ~union(bit for bit, _ in scripted)
    return lifted | union(waking for bit, waking in scripted if changing & bit)


def _without(edge: FlatEdge, known: Known) -> FlatEdge:
    never = any(edge.require & bit and not instead for bit, instead in known.items())
    forbid = replaced(edge.forbid, known) | (1 << ALWAYS if never else 0)
    return replace(edge, require=replaced(edge.require, known), forbid=forbid)


def replaced(mask: int, known: Known) -> int:
    """The mask with other bits in place of those that are known."""
    for bit, instead in known.items():
        mask = mask & ~bit | instead if mask & bit else mask
    return mask
