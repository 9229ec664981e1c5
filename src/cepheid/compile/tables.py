"""The arrays that the kernel knows of a pattern."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.plan.plan import MAX_CONDITIONS

Ints: TypeAlias = npt.NDArray[np.int64]
Records: TypeAlias = npt.NDArray[Any]
"""A structured array; its dtype is named beside it. Rows are read as `array[i].field`."""

ALWAYS = MAX_CONDITIONS
"""The truth bit that every event has."""

NO_BIT = -1
FINAL = -1
IGNORED = -1
NONE = -1

STATE = np.dtype(
    [
        ("edges", np.int64),  # the first of the state's edges, and the one behind the last
        ("edges_end", np.int64),
        ("wake", np.int64),  # truth bits that can change a partial match; without any of them it stays as it is
        ("scripts", np.int64),  # the scripts that guards read: state_scripts[scripts:scripts_end]
        ("scripts_end", np.int64),
        ("complete", np.int64),  # 1 where a partial match that ends is a match
    ]
)
EDGE = np.dtype(
    [
        ("require", np.int64),  # truth bits that must be set
        ("forbid", np.int64),  # truth bits that must not be set
        ("target", np.int64),  # state, or FINAL
        ("stage", np.int64),  # the stage that takes the event, or IGNORED
        ("completes", np.int64),  # 1 where taking the event makes a match
    ]
)
SCRIPT = np.dtype(
    [
        ("start", np.int64),  # the first instruction, and the one behind the last
        ("end", np.int64),
        ("lifted", np.int64),  # the lifted truth bit without which the script is not run, or NO_BIT
        ("bit", np.int64),  # the truth bit that the script sets
    ]
)
INSTRUCTION = np.dtype([("op", np.int64), ("a", np.int64), ("b", np.int64)])
SLOT = np.dtype(
    [
        ("kind", np.int64),  # a SlotKind
        ("column", np.int64),  # or NONE
        ("source", np.int64),  # the slot that it looks at when it changes, or NONE
        ("initial", np.int64),  # NONE for positions of events, 0 for counts and sums
    ]
)
SETTINGS = np.dtype(
    [
        ("start", np.int64),  # the start state
        ("window", np.int64),  # microseconds from the first event of a match to its deadline, or NONE
        ("skips", np.int64),  # 1: skip past the last event, 0: no skip
    ]
)


class Tables(NamedTuple):
    """A compiled pattern: few arrays, because the kernel's functions are handed all of them."""

    settings: Records
    """(1,) SETTINGS."""
    states: Records
    """(states,) STATE."""
    edges: Records
    """(edges,) EDGE, those of a state one behind the other."""
    state_scripts: Ints
    """Numbers of scripts, those of a state one behind the other."""
    scripts: Records
    """(scripts,) SCRIPT."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints
    """Constants of the scripts, doubles as their bits."""
    stage_slots: Ints
    """(stages + 1,) taking an event for stage i changes the slots from stage_slots[i] to stage_slots[i + 1]."""
    slots: Records
    """(slots,) SLOT."""
