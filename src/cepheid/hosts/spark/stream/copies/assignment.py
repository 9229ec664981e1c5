"""Which standbys hold copies of which keys, and which of them owns a start. All are pure functions.

A key has segments of event time. In each segment its starts are divided among the original shard and some standbys, by
the hash of the event's identity. A segment begins after the latest event time that the query had received when it was
made. So whatever follows a start in its segment reaches the owner, and the owner of an event never changes, whenever
and however often the event comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import FOREVER, NO_TIME, Flags

FORMAT = 1

Key: TypeAlias = tuple[int, str]
"""The original shard of a key, and the key's hash (`key_hash`). With sub-keys the same key may be in several shards."""
Segments: TypeAlias = "tuple[Segment, ...]"
"""Of one key, in the order of time."""


class Segment(NamedTuple):
    """A part of a key's event time, up to the next segment."""

    after: int
    """Microseconds: it begins after this event time."""
    copies: tuple[int, ...]
    """The standbys among which, and the original, starts are divided."""


class Decision(NamedTuple):
    """What the driver has decided for one key."""

    pattern: int
    """The number of the pattern."""
    shard: int
    key: str
    copies: tuple[int, ...]
    """The standbys that shall hold copies of the key; none: all are released."""


class Assignment(NamedTuple):
    """The copies of all keys in one micro-batch."""

    decisions: int = 0
    """The number of decisions that are in force."""
    segments: Mapping[tuple[int, Key], Segments] = {}
    """By the number of the pattern, and the key."""
    delay: int = 0
    """Microseconds: how late events may be in this micro-batch."""
    received: int = NO_TIME
    """Microseconds: no event of an earlier micro-batch is later."""

    def reached(self, watermark: int, delay: int) -> Assignment:
        """The assignment with the watermark and the delay of the next micro-batch, in microseconds.

        The events of the micro-batch before have moved the watermark, by the delay that was in force there. A query may
        have been restarted with a shorter one since.
        """
        latest = watermark + max(delay, self.delay) + 999  # the watermark has whole milliseconds
        return self._replace(delay=delay, received=max(self.received, latest))

    def after(self, decided: Sequence[Decision], after: int) -> Assignment:
        """The assignment with further decisions, for starts after this event time."""
        segments = dict(self.segments)
        for one in decided:
            place = one.pattern, (one.shard, one.key)
            before = segments.get(place, ())
            if before and before[-1].after == after:
                before = before[:-1]  # no start has fallen into that segment
            if one.copies or before:
                segments[place] = (*before, Segment(after, one.copies))
        return self._replace(decisions=self.decisions + len(decided), segments=segments)

    def since(self, times: Mapping[int, int]) -> Assignment:
        """The assignment without what no longer matters. `times` has, for each pattern, an event time (microseconds)
        before which no event can be part of an open or future partial match of a copy.
        """
        kept = {place: _since(segments, times[place[0]]) for place, segments in self.segments.items()}
        return self._replace(segments={place: segments for place, segments in kept.items() if segments})

    def of_pattern(self, pattern: int) -> dict[Key, Segments]:
        """The segments of the pattern's keys."""
        return {key: segments for (number, key), segments in self.segments.items() if number == pattern}

    def copies(self, pattern: int) -> dict[Key, tuple[int, ...]]:
        """The standbys among which the starts of each of the pattern's keys are divided now, if there are any."""
        found = {key: segments[-1].copies for key, segments in self.of_pattern(pattern).items()}
        return {key: copies for key, copies in found.items() if copies}

    @property
    def document(self) -> dict[str, Any]:
        """The assignment in JSON values."""
        keys = [
            {
                "pattern": pattern,
                "shard": shard,
                "key": key,
                "segments": [[one.after, [*one.copies]] for one in segments],
            }
            for (pattern, (shard, key)), segments in self.segments.items()
        ]
        times = {"delay": self.delay, "received": self.received}
        return {"format": FORMAT, "decisions": self.decisions, **times, "keys": keys}

    @staticmethod
    def of(document: Mapping[str, Any]) -> Assignment:
        """The assignment whose `document` this is."""
        return Assignment(
            document["decisions"],
            {
                (one["pattern"], (one["shard"], one["key"])): tuple(
                    Segment(after, tuple(copies)) for after, copies in one["segments"]
                )
                for one in document["keys"]
            },
            document.get("delay", 0),  # files of the first version lack it and the next one
            document.get("received", NO_TIME),
        )


def _since(segments: Segments, time: int) -> Segments:
    """Without leading segments that have ended before `time`, and with none at all if there are no copies left."""
    ends = [*(one.after for one in segments[1:]), FOREVER]
    kept = tuple(one for one, end in zip(segments, ends, strict=True) if end >= time)
    return kept if any(one.copies for one in kept) else ()


class Share(NamedTuple):
    """What a shard gets of a key's events."""

    needed: Flags
    starts: Flags
    """Which of all events may start partial matches there."""


def shares(
    times: Ints, hashes: npt.NDArray[np.uint64], segments: Sequence[Segment], window: int
) -> tuple[Flags, dict[int, Share]]:
    """Which of a key's events may start partial matches in its original shard, and the share of each standby.

    Args:
        times: (n,) microseconds.
        hashes: (n,) of the events' identities.
        window: Microseconds: a partial match has ended when its first event is that old.
    """
    at = np.searchsorted([one.after for one in segments], times, side="left") - 1  # a segment begins after its time
    sizes = np.array([1 + len(one.copies) for one in segments] + [1], np.uint64)
    place = (hashes % sizes[at]).astype(np.int64)  # 0 is the original; before all segments, -1 is the last size
    found: dict[int, Share] = {}
    for number, (after, copies) in enumerate(segments):
        end = segments[number + 1].after if number + 1 < len(segments) else FOREVER - window
        needed = (times > after) & (times <= end + window)
        for turn, standby in enumerate(copies, 1):
            starts = (at == number) & (place == turn)
            before = found.get(standby, Share(np.zeros_like(needed), np.zeros_like(needed)))
            found[standby] = Share(before.needed | needed, before.starts | starts)
    return place == 0, found
