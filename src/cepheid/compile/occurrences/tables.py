"""The arrays that describe a pattern of occurrences to the kernel. `compile.occurrences.compiled` fills them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints, Records

NONE = -1

PER_VARIABLE = 3
"""The places of a variable among the values that scripts read: its event, its start and its end."""


class Regime(IntEnum):
    """Which occurrences each operator makes from those of its operands."""

    ALL = 0
    MOST_RECENT = 1
    """Only the occurrence with the latest start."""
    SNOOP_RECENT = 2
    CHRONICLE = 3
    CONTINUOUS = 4
    CUMULATIVE = 5


TREE_OPERATOR = np.dtype(
    [
        ("kind", np.int64),  # a Kind
        ("left", np.int64),  # rows of the operands, or NONE
        ("right", np.int64),
        ("number", np.int64),  # see Kind
        ("script", np.int64),  # or NONE
        ("filter", np.int64),  # in place of a script: a semantic filter, or NONE
        ("memory", np.int64),  # the first of its lists
        ("span", np.int64),  # microseconds: the longest duration of an occurrence of the right operand
        ("window", np.int64),  # microseconds: the longest duration of an occurrence that still counts
        ("parents", np.int64),  # the operators that have it as an operand: AlgebraTables.parents[parents:parents_end]
        ("parents_end", np.int64),
    ]
)
TREE_SCRIPT = np.dtype([("start", np.int64), ("end", np.int64)])
TREE_SETTINGS = np.dtype(
    [
        ("regime", np.int64),
        ("lists", np.int64),  # how many a key has
        ("time_value", np.int64),  # or NONE
        ("most_open", np.int64),  # the most occurrences that a key stores
        ("limits_drop", np.int64),  # 1: over a limit, the occurrences with the earliest start are dropped; 0: an error
    ]
)


class AlgebraTables(NamedTuple):
    """Compiled trees of n operators."""

    settings: Records
    """(1,) TREE_SETTINGS."""
    operators: Records
    """(n,) TREE_OPERATOR."""
    parents: Ints
    leaves: Ints
    """(64,) for each bit of an event's mask, the row of its leaf, or NONE. The bits of what events mean come last."""
    delayed: Ints
    """The rows with timers."""
    roots: Ints
    scripts: Records
    """(scripts,) TREE_SCRIPT: where a script is in the code."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints
    filters: Ints
    """(f, v) for each semantic filter the numbers of its variables, then NONE."""
    columns: Ints
    """The columns that scripts read."""
