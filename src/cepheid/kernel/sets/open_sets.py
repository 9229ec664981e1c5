"""Lists the open partial matches in sets, each as the timeout that it would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import NO_TIME, Int32s, ranges
from cepheid.kernel.sets.layout import NO_EVENT, NO_SET, Sets
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.listing import as_timeouts, deadlines

Taken: TypeAlias = tuple[tuple[int, int], ...]
"""The stage and the position of each event."""


class _Listed(NamedTuple):
    """Open partial matches: the events of one are next to each other."""

    key: Ints
    """(n,) the number of the key, then the start and the number of events."""
    start: Ints
    length: Ints
    event: Int32s
    """(m,) the position of an event, and the stage that took it."""
    stage: Int32s


def open_in_sets(sets: Sets, window: int, now: int, most: int) -> Emitted:
    limits = _limits(window, np.maximum(sets.now, now))
    heads = sets.heads.copy()
    heads[(heads != NO_SET) & (np.append(sets.nodes["start"], NO_TIME)[heads] <= limits[:, None])] = NO_SET
    single, others = _singles(sets, heads, limits)
    if len(others):
        many = _branching(sets, heads, limits, others, most)
        parts: tuple[Sequence[npt.NDArray[Any]], Sequence[npt.NDArray[Any]]] = (single, many)
        single = _Listed(*map(np.concatenate, zip(*parts, strict=True)))
    key, start, length, event, stage = single
    if len(key) > 1:
        order = np.lexsort([start, key])
        first = np.cumsum(length) - length
        place = ranges(first[order], (first + length)[order])
        start, length, event, stage = start[order], length[order], event[place], stage[place]
    return as_timeouts(np.cumsum(length), deadlines(start, window), event, stage)


def _limits(window: int, now: Ints) -> Ints:
    """`limit_of` for each time."""
    return np.where((window >= 0) & (now >= NO_TIME + max(window, 0)), now - window, NO_TIME)


def _singles(sets: Sets, heads: Int32s, limits: Ints) -> tuple[_Listed, Int32s]:
    """The partial matches of the keys whose sets have one each, and the other keys. Most keys have few events that
    matter, so these are listed together.
    """
    nodes = sets.nodes
    key, state = np.nonzero(heads != NO_SET)
    node, taken = heads[key, state], list[tuple[Ints, Int32s, Int32s]]()
    branches = np.zeros(len(heads), np.bool_)
    start, item = nodes["start"][node], np.arange(len(key))
    while len(item):  # the last event of each, then the one before it
        here = nodes[node]
        beside = here["beside"]
        in_time = nodes["start"][beside] > limits[key[item]]  # of no set it is the last node, which does not matter
        branches[key[item[(beside != NO_SET) & in_time]]] = True
        has_event = here["event"] != NO_EVENT
        taken.append((item[has_event], here["event"][has_event], here["stage"][has_event]))
        goes_on = (here["before"] != NO_SET) & ~branches[key[item]]
        item, node = item[goes_on], here["before"][goes_on]
    items, event, stage = (np.concatenate(part[::-1]) for part in zip(*taken, strict=True)) if taken else _NOTHING
    kept = ~branches[key]
    order = np.argsort(items, kind="stable")
    order = order[kept[items[order]]]
    length = np.bincount(items, minlength=len(key))[kept]
    listed = _Listed(key[kept], start[kept], length, event[order], stage[order])
    return listed, np.flatnonzero(branches).astype(np.int32)


_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)


def _branching(sets: Sets, heads: Int32s, limits: Ints, keys: Int32s, most: int) -> _Listed:
    """The last `most` partial matches of each of the keys."""
    listed: list[tuple[int, int, Taken]] = []
    for key in keys.tolist():
        found = islice(_latest_first(sets, heads[key].tolist(), int(limits[key])), most)
        listed += [(key, start, taken) for start, taken in reversed([*found])]
    pairs = np.array([pair for _, _, taken in listed for pair in taken], np.int32).reshape(-1, 2)
    key, start, length = (
        (
            np.array(values, np.int64)
            for values in zip(*((key, start, len(taken)) for key, start, taken in listed), strict=True)
        )
        if listed
        else (np.zeros(0, np.int64),) * 3
    )
    return _Listed(key, start, length, pairs[:, 1], pairs[:, 0])


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
