"""The arrays of the kernel of the event algebra: nodes, lists, the occurrences made at an instant, and those found.

The contents of an occurrence are one number: the number of a node, or `~position` of an event, which is negative. A
node refers to such numbers, each less than its own. So occurrences share what they have in common, and nothing is
copied.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cepheid.compile.arrays import Ints, Records
from cepheid.compile.occurrences.tables import NONE, PER_VARIABLE, AlgebraTables
from cepheid.kernel.arrays import FOREVER, Events, Flags, Stack, integers, new_stack
from cepheid.plan.occurrences.constants import UNBOUNDED

TreeCursor: TypeAlias = Any
"""One record of TREE_CURSOR."""


class NodeKind(IntEnum):
    JOINED = 0
    """`left` and `right` together."""
    BOUND = 1
    """`left`, bound to variable `number`."""
    DELAYED = 2
    """The temporal event `number` microseconds after `left`."""


TREE_NODE = np.dtype(
    [
        ("kind", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("size", np.int32),  # number of events below it; a shared event counts more than once
        ("number", np.int64),
        ("start", np.int64),
        ("end", np.int64),
    ]
)
ENTRY = np.dtype([("start", np.int64), ("end", np.int64), ("node", np.int64)])
"""An occurrence in a list."""
LIST = np.dtype(
    [
        ("base", np.int64),  # its places are Forest.entries[base:base + capacity]
        ("capacity", np.int64),
        ("first", np.int64),  # the place of its first entry
        ("count", np.int64),
        ("latest", np.int64),  # for WITHOUT: the latest start of the right side
        ("pruned_at", np.int64),  # old entries are removed once it has this many entries
    ]
)
KEY_STATE = np.dtype(
    [
        ("now", np.int64),  # the time of the events that wait for others of the same time
        ("due", np.int64),  # the next instant, FOREVER if there is none
        ("remembered", np.int64),  # number of entries in its operators' lists
    ]
)
MADE = np.dtype([("start", np.int64), ("node", np.int64)])
"""An occurrence that an operator has made; it ends at the instant."""
FOUND = np.dtype(
    [
        ("root", np.int64),  # number of the root
        ("instant", np.int64),  # number of the instant
        ("start", np.int64),
        ("end", np.int64),
        ("node", np.int64),
    ]
)


class Forest(NamedTuple):
    """Everything that operators remember for k keys, and what they make at an instant; r operators."""

    keys: Records
    """(k,) KEY_STATE."""
    lists: Records
    """(any,) LIST, the lists of a key next to each other: first the list of events of the instant, then those of
    operators.
    """
    entries: Records
    """(any,) ENTRY; the first Cursor.entries of them belong to lists."""
    nodes: Records
    """(any,) TREE_NODE, the first Cursor.nodes of them."""
    made: Records
    """(any,) MADE, the first Cursor.made of them, operator by operator."""
    made_from: Ints
    """(r,) where the operator's occurrences begin in `made`."""
    made_count: Ints
    touched: Flags
    """(r,) whether the operator must be evaluated."""
    found: Records
    """(any,) FOUND, the first Cursor.found of them."""
    members: Ints
    """Scratch for lists of members, with a stack after them."""
    order: Ints
    """Scratch for the order of what operands make at an instant."""


class Variables(NamedTuple):
    """The values of variables, where scripts read them; v variables, c columns."""

    values: Ints
    """(c, 3 v)"""
    missing: Flags
    slots: Ints
    """(1, 3 v) the place of the slot's value, or -1."""
    outermost: Ints
    """(2, v) the positions of the first and the last event, or -1."""
    individuals: Ints
    """(v,) the position of the variable's event; UNBOUND if it is not bound, SEVERAL if it is no single event."""
    stack: Stack


UNBOUND, SEVERAL = -1, -2
NEVER, UNANSWERED = FOREVER, FOREVER - 1
"""Times of answers: that a filter does not hold, and that it was not answered yet."""


class Answers(NamedTuple):
    """What is known of semantic filters in a call. A question is a filter with the individuals of its variables. Who
    knows what events mean answers it, between two calls of the kernel, with the time from which the filter holds.
    """

    slots: Ints
    """A table by hash, twice as long as `times` or longer: the numbers of questions, or NONE."""
    questions: Ints
    """(q, 2 + v) the filter, the number of the visit, and the variables' individuals as in Variables. The first
    Cursor.questions of them are asked.
    """
    times: Ints
    """(q,) microseconds, NEVER or UNANSWERED."""


class Bindings(NamedTuple):
    """What conditions read: the events, the variables that are bound to some of them, and answers."""

    events: Events
    variables: Variables
    answers: Answers


TREE_CURSOR = integers(
    "visit",  # the visit that is under way or next
    "event",  # the next event
    "instant_end",  # the position after the events of the instant that is under way
    "now",  # the instant that is under way
    "row",  # the next operator to evaluate at it; NONE if no instant is under way
    "instant",  # number of the instant under way
    "made",
    "nodes",
    "entries",
    "found",
    "shortage",  # an OccurrenceStatus: what needs more room
    "needed",  # how much room is needed, if known
    "failure",  # what made a condition fail, see kernel.scripts.interpreter
    "failed_row",
    "evaluated",  # operators that were evaluated
    "dropped",  # occurrences that were over a limit
    "questions",
    "considered",  # questions that programs have answered, or cannot answer
)


class OccurrenceStatus(IntEnum):
    DONE = 0
    MORE_NODES = 1
    MORE_ENTRIES = 2
    MORE_MADE = 3
    MORE_MEMBERS = 4
    """Forest.members or Forest.order is too short."""
    MORE_FOUND = 5
    TOO_MANY = 6
    FAILED = 7
    ASKED = 8
    """Questions are to be answered."""
    MORE_QUESTIONS = 9


def new_tree_cursor() -> TreeCursor:
    """A cursor before the first event."""
    cursor = np.zeros(1, TREE_CURSOR).view(np.recarray)[0]
    cursor.row = -1
    return cursor


def new_lists(count: int) -> Records:
    lists = np.zeros(count, LIST)
    lists["latest"] = -UNBOUNDED
    return lists


def new_keys(count: int) -> Records:
    keys = np.zeros(count, KEY_STATE)
    keys["due"] = FOREVER
    return keys


def new_forest(tables: AlgebraTables, room: int) -> Forest:
    """Room for one key."""
    rows = len(tables.operators)
    return Forest(
        keys=new_keys(1),
        lists=new_lists(int(tables.settings["lists"][0])),
        entries=np.zeros(room, ENTRY),
        nodes=np.zeros(room, TREE_NODE),
        made=np.zeros(max(room >> 4, rows), MADE),
        made_from=np.zeros(rows, np.int64),
        made_count=np.zeros(rows, np.int64),
        touched=np.zeros(rows, np.bool_),
        found=np.zeros(room, FOUND),
        members=np.zeros(64, np.int64),
        order=np.zeros(64, np.int64),
    )


def new_variables(tables: AlgebraTables, variables: int, columns: int) -> Variables:
    places = PER_VARIABLE * variables
    return Variables(
        values=np.zeros((columns, places), np.int64),
        missing=np.zeros((columns, places), np.bool_),
        slots=np.full((1, places), -1, np.int64),
        outermost=np.full((2, variables), -1, np.int64),
        individuals=np.full(variables, UNBOUND, np.int64),
        stack=new_stack(tables.scripts),
    )


def new_answers(tables: AlgebraTables, room: int) -> Answers:
    """Room for questions of which none is asked; `room` is a power of two."""
    return Answers(
        slots=np.full(2 * room, NONE, np.int64),
        questions=np.zeros((room, 2 + tables.filters.shape[1]), np.int64),
        times=np.zeros(room, np.int64),
    )
