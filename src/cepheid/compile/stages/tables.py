"""The arrays that describe a pattern to the kernel."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.plan.condition_bits import MAX_CONDITIONS

ALWAYS = MAX_CONDITIONS
"""The truth bit that every event has."""

NO_BIT = -1
FINAL = -1
STOPPED = -2
IGNORED = -1


class SkipKind(IntEnum):
    """What is dropped once a match is emitted."""

    NO_SKIP = 0
    NEXT = 1
    PAST_LAST_EVENT = 2
    FIRST = 3
    LAST = 4


class Lookup(IntEnum):
    """How an event finds the partial matches in a state that it can change."""

    ALL = 0
    """It visits all of them."""
    EQUAL = 1
    """It visits those whose ties have the event's values."""
    ORDERED = 2
    """It visits those whose tie is on one side of the event's value."""


STATE = np.dtype(
    [
        ("edges", np.int64),  # the first of the state's edges, and the one after the last
        ("edges_end", np.int64),
        ("wake", np.int64),  # truth bits that can change a partial match; an event without any of them changes nothing
        ("changing", np.int64),  # the same, once the scripts have set their bits
        ("scripts", np.int64),  # the scripts that guards read: state_scripts[scripts:scripts_end]
        ("scripts_end", np.int64),
        ("complete", np.int64),  # 1 if a partial match that ends here is a match
        ("pending", np.int64),  # 1 if a partial match whose deadline passes here is a match
        ("window", np.int64),  # microseconds from the event taken last to the deadline, or NONE
        ("lookup", np.int64),  # a Lookup
        ("ties", np.int64),  # the ties that it looks up: ties[ties:ties_end]
        ("ties_end", np.int64),
        ("nulls", np.int64),  # 1 if a NULL on one side of a tie is visited as if the tie held
        ("visits_all", np.int64),  # truth bits: an event with one of them visits all, whatever the ties are
    ]
)
TIE = np.dtype(
    [
        ("value", np.int64),  # the instructions for the event's side, from here to value_end
        ("value_end", np.int64),
        ("earlier", np.int64),  # the instructions for the partial match's side
        ("earlier_end", np.int64),
        ("double", np.int64),  # 1 if the sides are doubles, 0 if they are integers
        ("descending", np.int64),  # for ORDERED: 1 if the partial match's side is the greater one
        ("strict", np.int64),  # for ORDERED: 1 if equal values do not hold
    ]
)
EDGE = np.dtype(
    [
        ("require", np.int64),  # truth bits that must be set
        ("forbid", np.int64),  # truth bits that must not be set
        ("target", np.int64),  # state, FINAL, or STOPPED: the partial match ends
        ("stage", np.int64),  # the stage that takes the event, IGNORED, or STOPPED like the target
        ("completes", np.int64),  # 1 if following the edge makes a match; see SETTINGS.longest
        ("leaves", np.int64),  # with SETTINGS.longest, 1 if the edge is not part of another turn of the loop
        ("after", np.int64),  # microseconds that must have passed since the event taken before, or NONE
        ("window", np.int64),  # microseconds within which the event must follow the one taken before, or NONE
        ("negation", np.int64),  # the negated stage whose event ends the partial match; NONE unless STOPPED
    ]
)
SCRIPT = np.dtype(
    [
        ("start", np.int64),  # the first instruction, and the one after the last
        ("end", np.int64),
        ("needs", np.int64),  # a mask of the truth bit without which the script is not run
        ("sets", np.int64),  # a mask of the truth bit that the script sets
    ]
)
SLOT = np.dtype(
    [
        ("kind", np.int64),  # a SlotKind
        ("column", np.int64),  # or NONE
        ("source", np.int64),  # the slot that it reads when it changes, or NONE
        ("initial", np.int64),  # NONE for positions of events, 0 for counts and sums
    ]
)
SETTINGS = np.dtype(
    [
        ("start", np.int64),  # the start state
        ("window", np.int64),  # microseconds from the first event of a match to its deadline, or NONE
        ("windows", np.int64),  # 1 if states have windows, too
        ("skip", np.int64),  # a SkipKind
        ("skip_stage", np.int64),  # the stage whose event is skipped to, or NONE
        ("skip_checked", np.int64),  # 1: it is an error if there is no event to skip to
        ("distinct", np.int64),  # 1 if branches may complete the same match
        ("longest", np.int64),  # 1 if a match counts only when no partial match may continue it: longest on a group
        ("timeouts", np.int64),  # 1 if partial matches that run out of time are emitted, too
        ("no_match", np.int64),  # 1 if those that an event of a negated stage ends are emitted, too
        ("most_partial_matches", np.int64),  # of a key
        ("most_in_sets", np.int64),  # the same for partial matches in sets; the greatest number for no limit
        ("most_matches", np.int64),  # that an event, a deadline or the end of the input may complete
        ("limits_drop", np.int64),  # 1: over a limit, the oldest are dropped; 0: it is an error
        ("index_least", np.int64),  # the least number of live partial matches for an index; NONE: no state has a lookup
        ("index_after", np.int64),  # how many events visit that many, before an index is made in a visit
        ("without", np.int64),  # begin_without: microseconds in which no earlier event may fit, or NONE
        ("kept_out", np.int64),  # the truth bit of events that such an earlier event keeps from starting
        ("without_bit", np.int64),  # the lifted truth bit of events that may fit, or NO_BIT
        ("without_script", np.int64),  # the script of which earlier events fit, or NONE
        ("deadline", np.int64),  # the value with the deadline of a match that starts with an event, or NONE
    ]
)


class Tables(NamedTuple):
    """A compiled pattern. There are few arrays, because all of them are arguments of the kernel's functions."""

    settings: Records
    """(1,) SETTINGS."""
    states: Records
    """(states,) STATE."""
    edges: Records
    """(edges,) EDGE; the edges of a state are next to each other."""
    state_scripts: Ints
    """Numbers of scripts; those of a state are next to each other."""
    scripts: Records
    """(scripts,) SCRIPT."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints
    """Constants of the scripts; a double is stored as its bits."""
    stage_slots: Ints
    """(stages + 1,) when stage i takes an event, the slots from stage_slots[i] to stage_slots[i + 1] change."""
    slots: Records
    """(slots,) SLOT."""
    ties: Records
    """(ties,) TIE; those of a state are next to each other."""


def start_only_with(tables: Tables, bit: int) -> None:
    """Changes the tables so that only events with this bit in their mask start partial matches: they alone wake the
    start state.
    """
    tables.states["wake"][tables.settings["start"][0]] = bit
