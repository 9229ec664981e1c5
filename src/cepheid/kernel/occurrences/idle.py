"""When keys have nothing open any more though no event comes: all that is remembered of them is too old to count."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cepheid.compile.occurrences.compiled import NONE, Regime
from cepheid.compile.stages.tables import Ints
from cepheid.kernel.occurrences import step as algebra_step
from cepheid.kernel.occurrences.kernel import TreeKernel
from cepheid.kernel.stages.layout import FOREVER, Int32s
from cepheid.plan.occurrences.growth import UNBOUNDED
from cepheid.plan.occurrences.plan import Kind


def idle_from(kernel: TreeKernel, keys: Int32s) -> Ints:
    """(k,) microseconds: once time has passed it and no event has come, what the key remembers counts no more. FOREVER
    where that never is, or an instant is due before.
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


def forget_keys(kernel: TreeKernel, keys: Int32s) -> None:
    """They have nothing open any more."""
    algebra_step.forget_keys(kernel.tables, kernel.forest, np.ascontiguousarray(keys, np.int32))


def _windows(kernel: TreeKernel) -> Iterator[int]:
    """For each list of a key how long before an instant an occurrence may have started that counts there. In a context
    one that is too old may still use up another.
    """
    yield UNBOUNDED  # events of an instant
    tables, in_context = kernel.tables, kernel.tables.settings["regime"][0] >= Regime.SNOOP_RECENT
    bounds = [*tables.operators["memory"].tolist()[1:], kernel.lists_of_key]
    for op, end in zip(tables.operators, bounds, strict=True):
        timers = op["kind"] == Kind.DELAYED
        latest = op["kind"] == Kind.WITHOUT and op["script"] == NONE
        for _ in range(int(op["memory"]), end):
            yield UNBOUNDED if in_context or timers or latest else int(op["window"])
