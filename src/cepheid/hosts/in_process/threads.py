"""Several threads find the matches in ordered events at once, each in the events of other keys.

What takes time releases the interpreter: the kernel, hashes, Arrow and NumPy. A thread costs almost nothing, so events
are divided whenever there are many. (Processes, `workers`, divide also what Python does, and take a second to start.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event
from typing import TypeAlias, TypeVar

import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.hosts.in_process.sort import KeysInOrder
from cepheid.hosts.meanwhile import Found
from cepheid.hosts.pace import in_portions
from cepheid.kernel.stopping import Stopped, stopping_with
from cepheid.matchers.protocols import FiniteMatcher

Results: TypeAlias = list[list[pa.Table]]
T = TypeVar("T")

THREADS = 2
"""As many threads as without a division: one would prepare the events for the other."""
LEAST = 1 << 19
"""Fewer events than this are not divided: one thread takes a fraction of a second."""
_EVEN = 0.75
"""Events are not divided if the largest part has more than this share of them: to prepare events ahead is as fast."""


def divided(keys: KeysInOrder, parts: int) -> list[int]:
    """Where to divide the events into so many parts: the ascending positions at which a part ends, so that no key is in
    two parts. Fewer parts if keys have many events each; one if the events cannot be divided evenly.
    """
    length = keys.length
    if not length:
        return [0]
    ends = {_nearest_border(keys, length * part // parts) for part in range(1, parts)}
    found = sorted({*ends, length} - {0})
    largest = max(end - begin for begin, end in zip([0, *found], found, strict=False))
    return found if largest <= _EVEN * length else [length]


def _nearest_border(keys: KeysInOrder, position: int) -> int:
    """The position nearest to this one at which a key begins or the last one ends."""
    begin, end = keys.around(position)
    return begin if position - begin < end - position else end


def found_by_threads(matchers: Sequence[FiniteMatcher], parts: Sequence[Iterable[Batch]]) -> Found:
    """What each matcher finds in its part, one part after the other. An error is that of the first part that has one;
    the others then end early. With several patterns, one thread may find the error of another pattern first.
    Ctrl-C ends all of them.
    """
    stop = Event()
    with ThreadPoolExecutor(len(parts), thread_name_prefix="cepheid-part") as pool:
        try:
            each = [begun(partial(_found_in, *one, stop), pool) for one in zip(matchers, parts, strict=True)]
            results = [tables for found in each for tables in found()]
        finally:
            stop.set()
    counts = [matcher.counts for matcher in matchers]
    return Found(results, {name: sum(count[name] for count in counts) for name in counts[0]})


def begun(find: Callable[[], T], pool: ThreadPoolExecutor) -> Callable[[], T]:
    """Has a thread of the pool find something. Returns a function that waits for it and returns it."""
    try:
        return pool.submit(find).result
    except RuntimeError:  # the main thread has ended, and then no new threads may start
        return find


def _found_in(matcher: FiniteMatcher, batches: Iterable[Batch], stop: Event) -> Results:
    results: Results = []
    with suppress(Stopped), stopping_with(stop):
        for batch in in_portions(batches):
            if stop.is_set():
                return results
            results.append(matcher.process(batch))
        results.append(matcher.finish())
    return results
