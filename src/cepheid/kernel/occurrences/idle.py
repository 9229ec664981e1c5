"""Finds keys whose state no longer matters: everything that they remember is too old to be part of an occurrence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.compile.occurrences.tables import NONE, Regime
from cepheid.kernel.arrays import FOREVER, Int32s
from cepheid.kernel.occurrences import step
from cepheid.kernel.occurrences.kernel import OccurrenceKernel
from cepheid.plan.occurrences.constants import UNBOUNDED, Kind


def idle_from(kernel: OccurrenceKernel, keys: Int32s) -> Ints:
    """(k,) microseconds: once time is after this, and if no event comes before, nothing that the key remembers matters
    any more. FOREVER if that never happens, or if an instant is due for the key.
    """
    forest, width = kernel.forest, kernel.lists_of_key
    found = np.full(len(keys), np.iinfo(np.int64).min)
    lists = forest.lists.reshape(-1, width)[keys]
    for number, window in enumerate(_windows(kernel)):
        count, first = lists["count"][:, number], lists["first"][:, number]
        used = np.flatnonzero(count)
        if not len(used):
            continue
        if window >= UNBOUNDED:
            found[used] = FOREVER
            continue
        stops = np.cumsum(count[used])
        begins = stops - count[used]
        places = np.arange(stops[-1]) + np.repeat(first[used] - begins, count[used])
        latest = np.maximum.reduceat(forest.entries["start"][places], begins)
        found[used] = np.maximum(found[used], latest + window)
    found[forest.keys["due"][keys] < FOREVER] = FOREVER
    return found


def forget_keys(kernel: OccurrenceKernel, keys: Int32s) -> None:
    """Forgets these keys, which have nothing open."""
    step.forget_keys(kernel.tables, kernel.forest, np.ascontiguousarray(keys, np.int32))


def _windows(kernel: OccurrenceKernel) -> Iterator[int]:
    """For each list of a key, how long before an instant an occurrence in it may have started and still matter. In
    Snoop's contexts there is no bound, because an occurrence that is too old may still consume another.
    """
    yield UNBOUNDED  # the events of an instant
    tables, in_context = kernel.tables, kernel.tables.settings["regime"][0] >= Regime.SNOOP_RECENT
    bounds = [*tables.operators["memory"].tolist()[1:], kernel.lists_of_key]
    for op, end in zip(tables.operators, bounds, strict=True):
        timers = op["kind"] == Kind.DELAYED
        latest = op["kind"] == Kind.WITHOUT and op["script"] == NONE == op["filter"]
        for _ in range(int(op["memory"]), end):
            yield UNBOUNDED if in_context or timers or latest else int(op["window"])
