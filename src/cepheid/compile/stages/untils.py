"""Which loops each state waits for to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints, signed
from cepheid.compile.stages.flatten import FlatAutomaton, TruthBits, conditions_read
from cepheid.compile.stages.specialised import Known, replaced
from cepheid.plan.stages.plan import Plan


class Untils(NamedTuple):
    """The `until` of each loop that has one."""

    first: int
    """The number of the condition of the first; the stages have those before it."""
    masks: Ints
    """(states, loops) a mask of the truth bit that says, in the state, whether it holds; 0: it does not, or no edge of
    the state reads it.
    """


def untils_of(plan: Plan, flat: FlatAutomaton, bits: TruthBits, known: list[Known]) -> Untils:
    """Those of an automaton that is not specialised, and what its states know."""
    first, loops = len(plan.pattern.leaves), len(plan.pattern.loops_until)
    masks = np.zeros((len(flat.edges), loops), np.int64)
    for state in range(len(flat.edges)):
        read = conditions_read(flat.automaton, state, bits)
        for loop in range(loops):
            if first + loop in read:
                masks[state, loop] = signed(replaced(bits.deciding(first + loop), known[state]))
    return Untils(first, masks)
