"""Lists the open partial matches in sets, each as the timeout that it would be."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import TypeAlias

import numpy as np

from cepheid.kernel.sets.layout import NO_EVENT, NO_SET, Sets
from cepheid.kernel.sets.nodes import limit_of
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.listing import as_timeouts, deadlines

Taken: TypeAlias = tuple[tuple[int, int], ...]
"""The stage and the position of each event."""


def open_in_sets(sets: Sets, window: int, now: int, most: int) -> Emitted:
    listed: list[tuple[int, Taken]] = []
    for heads, reached in zip(sets.heads.tolist(), sets.now.tolist(), strict=True):
        limit = limit_of(window, max(now, reached))
        listed += reversed([*islice(_latest_first(sets, heads, limit), most)])
    taken = np.array([pair for _, pairs in listed for pair in pairs], np.int32).reshape(-1, 2)
    end = np.cumsum([len(pairs) for _, pairs in listed], dtype=np.int64)
    ends = deadlines(np.array([start for start, _ in listed], np.int64), window)
    return as_timeouts(end, ends, taken[:, 1], taken[:, 0])


def _latest_first(sets: Sets, heads: list[int], limit: int) -> Iterator[tuple[int, Taken]]:
    """Yields the start and the events of each partial match that started after `limit`, the latest start first.

    A set knows its latest start, so each step leads to the next result. Listing a few of very many takes time only for
    these few.
    """
    ways: list[tuple[int, int, int, Taken]] = []
    """A heap of the sets still to be visited, each with the events taken after it: the latest start first, then the
    most events.
    """

    def push(number: int, after: Taken) -> None:
        if number != NO_SET and (start := int(sets.nodes["start"][number])) > limit:
            heappush(ways, (-start, -len(after), number, after))

    for head in heads:
        push(head, ())
    while ways:
        start, _, number, after = heappop(ways)
        event, stage, before, beside, _ = sets.nodes[number].tolist()
        push(beside, after)
        taken = after if event == NO_EVENT else ((stage, event), *after)
        if before == NO_SET:
            yield -start, taken
        else:
            push(before, taken)
