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
from typing import TypeAlias

import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.events.identity import key_names
from cepheid.hosts.meanwhile import Found
from cepheid.hosts.pace import in_portions
from cepheid.kernel.stopping import Stopped, stopping_with
from cepheid.matchers.protocols import FiniteMatcher

Results: TypeAlias = list[list[pa.Table]]

THREADS = 2
"""As many threads as without a division: one would prepare the events for the other."""
LEAST = 1 << 19
"""Fewer events than this are not divided: one thread takes a fraction of a second."""
_EVEN = 0.75
"""Events are not divided if the largest part has more than this share of them: to prepare events ahead is as fast."""


def divided(keys: Sequence[pa.Array], rows: pa.Array | None, length: int, parts: int) -> list[int]:
    """Where to divide `length` events into so many parts: the ascending positions at which a part ends, so that no key
    is in two parts. Fewer parts if keys have many events each; one if the events cannot be divided evenly.

    The columns of the key have one value per event. Event i is in row rows[i] (None: in row i), and the events of a key
    are side by side.
    """
    if not length:
        return [0]

    def name_at(position: int) -> bytes:
        row = position if rows is None else rows[position].as_py()
        return key_names([column.slice(row, 1) for column in keys], 1)[0]

    ends = {_nearest_border(name_at, length * part // parts, length) for part in range(1, parts)}
    found = sorted({*ends, length} - {0})
    largest = max(end - begin for begin, end in zip([0, *found], found, strict=False))
    return found if largest <= _EVEN * length else [length]


def _nearest_border(name_at: Callable[[int], bytes], position: int, length: int) -> int:
    """The position nearest to this one, from 0 to `length`, at which a key begins or the last one ends."""
    name = name_at(position)
    begin = _first(lambda other: name_at(other) == name, 0, position)
    end = _first(lambda other: name_at(other) != name, position, length)
    return begin if position - begin < end - position else end


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number from `low` on for which the test holds, as it does for all from there on; `high` if for none
    before.
    """
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def found_by_threads(matchers: Sequence[FiniteMatcher], parts: Sequence[Iterable[Batch]]) -> Found:
    """What each matcher finds in its part, one part after the other. An error is that of the first part that has one;
    the others then end early. With several patterns, one thread may find the error of another pattern first.
    Ctrl-C ends all of them.
    """
    stop = Event()
    with ThreadPoolExecutor(len(parts), thread_name_prefix="cepheid-part") as pool:
        try:
            each = [_begun(partial(_found_in, *one, stop), pool) for one in zip(matchers, parts, strict=True)]
            results = [tables for found in each for tables in found()]
        finally:
            stop.set()
    counts = [matcher.counts for matcher in matchers]
    return Found(results, {name: sum(count[name] for count in counts) for name in counts[0]})


def _begun(find: Callable[[], Results], pool: ThreadPoolExecutor) -> Callable[[], Results]:
    """Has a thread find the results. Returns a function that waits for them and returns them."""
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
