"""The built-ins of filters, for what programs have found."""

from __future__ import annotations

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.compile.knowledge.programs import Remaining
from cepheid.compile.knowledge.tables import MOST_VARIABLES
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.kernel.knowledge.asking import assign
from cepheid.kernel.knowledge.layout import Knowing
from cepheid.knowledge.filters.solving import Closed, solutions

MOST_ROWS = 1 << 16
"""More assignments than these are not listed: the definition stops at the first assignment that holds."""


def passing(
    knowing: Knowing, program: int, remaining: Remaining, bound: Int32s, times: Ints, closed: Closed
) -> Flags | None:
    """For which questions some assignment makes the built-ins true, too; None: there are too many to list.

    Args:
        knowing: With the session of each question.
        bound: (questions, variables) the terms of the variables that are bound.
        times: The times (microseconds) at which it is asked.
        closed: For the terms; built-ins ask for no facts.
    """
    room = 64 + 2 * len(times)
    while (rows := assign(knowing, program, bound, times, found := _rows(room))) > room:
        if room >= MOST_ROWS:
            return None
        room = MOST_ROWS
    used = [1 + number for _, number in remaining.variables]
    values, places = np.unique(found[:rows][:, used], axis=0, return_inverse=True)
    names = [name for name, _ in remaining.variables]
    true = np.zeros(len(values), np.bool_)
    for at, terms in enumerate(values.tolist()):
        bindings = dict(zip(names, map(closed.terms.term, terms), strict=True))
        true[at] = next(solutions(remaining.atoms, closed, bindings), None) is not None
    passes = np.zeros(len(times), np.bool_)
    passes[found[:rows, 0][true[places.reshape(-1)]]] = True
    return passes


def _rows(count: int) -> Ints:
    return np.empty((count, 1 + MOST_VARIABLES), np.int64)
