"""Which states wait for which loops to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.flatten import TruthBits
from cepheid.compile.stages.tables import ALWAYS


class Untils(NamedTuple):
    """The `until` of each loop that has one."""

    first: int
    """The number of the condition of the first; the stages have those before it."""
    bits: Ints
    """(loops,) its truth bit."""
    read: npt.NDArray[np.bool_]
    """(states, loops) whether an edge of the state reads the bit."""


def untils_of(compiled: CompiledPattern) -> Untils:
    bits, pattern, tables = TruthBits(compiled.plan), compiled.plan.pattern, compiled.tables
    first, loops = len(pattern.leaves), len(pattern.loops_until)
    each = [ALWAYS if (bit := bits.of_stage(first + loop)) is None else bit for loop in range(loops)]
    read = np.zeros((len(tables.states), loops), np.bool_)
    masks = tables.edges["require"] | tables.edges["forbid"]
    for number, state in enumerate(tables.states):
        of_state = masks[state["edges"] : state["edges_end"]]
        read[number] = [(of_state >> bit & 1).any() for bit in each]
    return Untils(first, np.array(each, np.int64), read)
