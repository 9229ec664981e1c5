"""Streams that arrive out of order, and queries over them, for Zhou et al.'s experiments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SECOND = 1_000_000
GENERATORS = 1_000
GAP = SECOND // 2
"""The mean time between two events of all generators together."""
SHORTEST, LONGEST = SECOND // 5, 2 * SECOND
"""The shortest and longest event, in the experiments where events have a duration."""
SOONEST, LATEST = SECOND // 2, 4 * SECOND
"""The shortest and longest time from the end of a delayed event to its arrival; other events arrive when they end."""
WINDOW = 10
"""In seconds; it contains twenty events, five of each type."""
SAMPLE = 50_000

Longs = npt.NDArray[np.int64]


class Stream(NamedTuple):
    """Events in the order of arrival; `id` is the position in that order."""

    events: pa.Table
    start: Longs
    end: Longs
    out_of_order: float
    """The share of the events that end before an event that arrived earlier."""

    @property
    def in_order(self) -> pa.Table:
        """The same events in the order of their ends."""
        return self.events.take(pa.array(np.lexsort((self.start, self.end))))


def make_stream(rows: int, share: float, *, durations: bool, seed: int = 1) -> Stream:
    """`rows` events of four types, of which `share` arrive out of order."""
    held_up = share
    for _ in range(3 if share else 0):  # a delayed event is not always overtaken
        held_up *= share / max(_stream(min(rows, SAMPLE), held_up, durations=durations, seed=seed).out_of_order, 1e-9)
    return _stream(rows, min(held_up, 1.0), durations=durations, seed=seed)


def _stream(rows: int, held_up: float, *, durations: bool, seed: int) -> Stream:
    random = np.random.default_rng(seed)
    generator = random.integers(0, GENERATORS, rows)
    # The events of one generator are GENERATORS * GAP apart on average.
    order = np.argsort(generator, kind="stable")
    own = np.cumsum(random.exponential(GENERATORS * GAP, rows)).astype(np.int64)
    first = np.searchsorted(generator[order], np.arange(GENERATORS))
    counts = np.bincount(generator, minlength=GENERATORS)
    start = own - np.repeat(own[np.minimum(first, rows - 1)], counts) + random.integers(0, GENERATORS * GAP, rows)
    end = start + (random.integers(SHORTEST, LONGEST, rows) if durations else 0)
    late = np.where(random.random(rows) < held_up, random.integers(SOONEST, LATEST, rows), 0)
    arrival = np.argsort(end + late, kind="stable")
    start, end = start[arrival], end[arrival]
    overtaken = np.append(False, end[1:] < np.maximum.accumulate(end)[:-1])
    times = pa.timestamp("us", "UTC")
    events = {
        "id": pa.array(np.arange(rows)),
        "generator": pa.array(generator[order][arrival].astype(np.int16)),
        "type": pa.array(random.choice(np.array(list("ABCD")), rows)),
        "start": pa.array(start).cast(times),
        "end": pa.array(end).cast(times),
    }
    return Stream(pa.table(events), start, end, float(overtaken.mean()))


class Query(NamedTuple):
    """A pattern of `length` events, and a negated D."""

    length: int
    durations: bool

    @property
    def text(self) -> str:
        """`(A v0 overlap B v1) (!D) before C v2 …`. Instants cannot overlap, so between them it is always `before`."""
        tree = ""
        for number, event in enumerate(self._events):
            overlaps = self.durations and number % 2 == 1 and self.length > 2
            absent = " (!D)" if number == self._behind_absent else ""
            tree = f"({tree}{absent} {'overlap' if overlaps else 'before'} {event})" if tree else event
        return f"EVENT PAL({tree.removeprefix('(').removesuffix(')')}) WITHIN {WINDOW} seconds"

    @property
    def of_points(self) -> Query:
        """The same query for events that are reduced to their ends."""
        return Query(self.length, durations=False)

    @property
    def _events(self) -> list[str]:
        return [f"{'ABC'[number % 3]} v{number}" for number in range(self.length)]

    @property
    def _behind_absent(self) -> int:
        return min(2, self.length - 1)
