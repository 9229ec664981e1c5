"""Open partial matches, listed for who looks: each as the timeout that it would be.

What lists them changes nothing. It may cost more than a step does: of sets it enumerates what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import islice
from typing import TypeAlias

import numpy as np

from cepheid.compile.stages.tables import Ints, Tables
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.sets.layout import NO_EVENT, NO_SET, Sets
from cepheid.kernel.sets.nodes import limit_of
from cepheid.kernel.stages.fork import parked_of
from cepheid.kernel.stages.kernel import CompiledKernel, Emitted
from cepheid.kernel.stages.layout import FOREVER, NO_TIME, Int32s, PartialMatches
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.kernel.stages.withheld import ranges

Kernel: TypeAlias = CompiledKernel | SetKernel | PythonKernel
Taken: TypeAlias = tuple[tuple[int, int], ...]
"""Stages and positions of events."""


def open_partial_matches(kernel: Kernel, times: Ints, now: int, most: int) -> Emitted:
    """Those of all keys when time has passed to `now` for all, of each key the `most` that started last, in order of
    their start; detected_at is the deadline, NO_TIME where there is none. `times` are those of the working set.
    """
    match kernel:
        case CompiledKernel():
            return _one_by_one(kernel.tables, kernel.partials, times, most)
        case SetKernel():
            return _in_sets(kernel.sets, kernel.window, now, most)
        case PythonKernel():
            return kernel.listed(most)


@contextmanager
def only(kernel: Kernel, keys: Int32s) -> Iterator[None]:
    """In the block there are only these keys, which are open, as 0, 1, …: to be counted and listed, not visited."""
    match kernel:
        case CompiledKernel():
            partials, parked = kernel.partials, kernel.cursor.parked
            try:
                kernel.renumber(keys)
                kernel.cursor.parked, _ = parked_of(partials, keys)
                yield
            finally:
                kernel.partials, kernel.cursor.parked = partials, parked
        case SetKernel():
            sets = kernel.sets
            try:
                kernel.renumber(keys)
                yield
            finally:
                kernel.sets = sets
        case PythonKernel():
            with kernel.only(keys):
                yield


def _one_by_one(tables: Tables, partials: PartialMatches, times: Ints, most: int) -> Emitted:
    keys, nodes = partials.parked.keys, partials.nodes
    first = np.maximum(keys["live"], keys["live_end"] - most)
    rows = partials.rows[partials.parked.live[ranges(first, keys["live_end"])]]
    end = np.cumsum(rows["length"])
    event, stage = np.empty(rows["length"].sum(), np.int32), np.empty(rows["length"].sum(), np.int32)
    place, node = end - 1, rows["node"]
    while len(node):  # the last event of each, then the one before it
        event[place], stage[place] = nodes["event"][node], nodes["stage"][node]
        parent = nodes["parent"][node]
        place, node = place[parent >= 0] - 1, parent[parent >= 0]
    whole = _later(times[rows["start"]], tables.settings["window"][0])
    gap = _later(times[nodes["event"][rows["node"]]], tables.states["window"][rows["state"]])
    return _emitted(end, np.minimum(whole, gap), event, stage)


def _in_sets(sets: Sets, window: int, now: int, most: int) -> Emitted:
    listed: list[tuple[int, Taken]] = []
    for heads, reached in zip(sets.heads.tolist(), sets.now.tolist(), strict=True):
        limit = limit_of(window, max(now, reached))
        listed += reversed([*islice(_latest_first(sets, heads, limit), most)])
    taken = np.array([pair for _, pairs in listed for pair in pairs], np.int32).reshape(-1, 2)
    end = np.cumsum([len(pairs) for _, pairs in listed], dtype=np.int64)
    deadlines = _later(np.array([start for start, _ in listed], np.int64), window)
    return _emitted(end, deadlines, taken[:, 1], taken[:, 0])


def _latest_first(sets: Sets, heads: list[int], limit: int) -> Iterator[tuple[int, Taken]]:
    """The start of each partial match after `limit` and what it took, those that started last first.

    A set knows its latest start, so what is looked at leads to what is given next: to list a few of very many costs as
    much as these.
    """
    ways: list[tuple[int, int, int, Taken]] = []
    """Sets that are to be looked at, with what stands behind each: the latest start first, then the latest found."""

    def look(number: int, behind: Taken) -> None:
        if number != NO_SET and (start := int(sets.nodes["start"][number])) > limit:
            heappush(ways, (-start, -len(behind), number, behind))

    for head in heads:
        look(head, ())
    while ways:
        start, _, number, behind = heappop(ways)
        event, stage, before, beside, _ = sets.nodes[number].tolist()
        look(beside, behind)
        taken = behind if event == NO_EVENT else ((stage, event), *behind)
        if before == NO_SET:
            yield -start, taken
        else:
            look(before, taken)


def _later(times: Ints, windows: Ints | int) -> Ints:
    """So long after each time, FOREVER where there is no window."""
    ends: Ints = np.where((windows >= 0) & (times <= FOREVER - np.maximum(windows, 0)), times + windows, FOREVER)
    return ends


def _emitted(end: Ints, deadlines: Ints, event: Int32s, stage: Int32s) -> Emitted:
    timeout = np.ones(len(end), np.bool_)
    return Emitted(end, np.where(deadlines == FOREVER, NO_TIME, deadlines), timeout, event=event, stage=stage)
