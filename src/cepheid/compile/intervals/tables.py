"""The arrays that describe an interval pattern to the kernel. `compile.intervals.compiled` fills them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from cepheid.compile.arrays import Ints, Records


class Check(IntEnum):
    """What is checked once the events that it is about are bound."""

    SCRIPT = 0
    """Script number `script` is true."""
    RELATION = 1
    """The relation between the spans of `left` and `right` (sets of variables) is in `relations`, a set of the numbers
    of Relation.
    """
    COUNTS = 2
    """The numbers of events of `left` that contain, are finished by, meet, overlap and start the event of `right` are
    those in `counts`.
    """
    LISTED = 3
    """The event of `left` does not come after the event of `right` in the order of (start, end)."""


class ScopeNumber(IntEnum):
    """The scopes of negations, by the names of `lang.intervals.values.Scope`."""

    START_BETWEEN = 0
    GAP = 1
    SEQ_BETWEEN = 2
    INTERSECTS_GAP = 3
    DURING_SPAN = 4


CHECK = np.dtype(
    [
        ("kind", np.int64),
        ("left", np.int64),
        ("right", np.int64),
        ("relations", np.int64),
        ("script", np.int64),
        ("counts", np.int64, (5,)),
    ]
)
NEGATION = np.dtype(
    [
        ("scope", np.int64),  # a ScopeNumber, or -1
        ("left", np.int64),  # a set of variables; 0: the window is the border there
        ("right", np.int64),
        ("order", np.int64),  # its differences: IntervalTables.differences[order:order_end]
        ("order_end", np.int64),
        ("scripts", np.int64),  # IntervalTables.negation_scripts[scripts:scripts_end]
        ("scripts_end", np.int64),
        ("guard", np.int64),
    ]
)
DIFFERENCE = np.dtype([("left", np.int64), ("right", np.int64), ("most", np.int64)])
"""Endpoint left - endpoint right <= most; 2 v is the start of variable v, 2 v + 1 its end."""

NARROWING = np.dtype(
    [
        ("endpoint", np.int64),  # of an event that is bound; 2 v is the start of variable v, 2 v + 1 its end
        ("bound", np.int64),  # a NarrowedBound
        ("difference", np.int64),
    ]
)
"""The bound is not before (for the least start and end), or not after, the endpoint plus the difference."""


class NarrowedBound(IntEnum):
    """What is narrowed of the event that is looked for; the numbers are columns of `Scratch.levels`."""

    LEAST_START = 3
    GREATEST_START = 4
    LEAST_END = 5
    GREATEST_END = 6


INDEX = np.dtype(
    [
        ("variable", np.int64),
        ("column", np.int64),  # the lifted column
        ("is_double", np.int64),
    ]
)
"""The events of a variable are found by their value in a column."""
LOOKUP = np.dtype(
    [
        ("index", np.int64),  # of IntervalTables.indexes; -1: there is no equality
        ("variable", np.int64),  # the bound variable whose value is looked up
        ("column", np.int64),
    ]
)

JOIN_SETTINGS = np.dtype(
    [
        ("positives", np.int64),
        ("delay", np.int64),  # microseconds
        ("buffer", np.int64),  # so many of the latest events are not late, in place of the delay; -1: the delay decides
        ("external_clock", np.int64),  # 1: it is set from outside; 0: it is the latest end of an event
        ("by_end", np.int64),  # 1: lateness is measured at ends
        ("window", np.int64),  # microseconds; FREE: none
        ("of_starts", np.int64),  # 1: the window ends with the last start; 0: with the last end
        ("most_matches", np.int64),  # the most matches that one event may complete
        ("drops", np.int64),  # 1: matches over the limit are dropped, the earliest start first
        ("may_start", np.int64),  # the bit of the events that may be first in a match; 0: any may
    ]
)
JOIN_SCRIPT = np.dtype([("start", np.int64), ("end", np.int64)])


class IntervalTables(NamedTuple):
    """A compiled interval pattern of n events and t variables."""

    settings: Records
    """(1,) JOIN_SETTINGS."""
    bits: Ints
    """(t,) the bit of each variable's events."""
    bounds: Ints
    """(2 n, 2 n) endpoint i - endpoint j <= bounds[i, j], FREE for no bound."""
    order: Ints
    """(n, n) row v is the order in which variables are bound when an event of variable v has come, v itself first."""
    checks: Records
    """(any,) CHECK."""
    check_at: Ints
    """(n * n + 1,) once d events of row v are bound, checks[check_at[n v + d - 1]:check_at[n v + d]] must hold."""
    narrowings: Records
    """(any,) NARROWING."""
    narrow_at: Ints
    """(n * n + 1,) once d events of row v are bound, narrowings[narrow_at[n v + d]:narrow_at[n v + d + 1]] bound the
    next one.
    """
    lookups: Records
    """(n * n + t - n,) LOOKUP: n v + d is for the next event once d events of row v are bound; the last ones are for
    the events of negations.
    """
    indexes: Records
    """(any,) INDEX."""
    negations: Records
    """(t - n,) NEGATION."""
    differences: Records
    """(any,) DIFFERENCE."""
    negation_scripts: Ints
    scripts: Records
    """(scripts,) JOIN_SCRIPT: where a script is in the code."""
    code: Records
    """(instructions,) INSTRUCTION."""
    constants: Ints
