"""Converts the state of the reference step to arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cepheid.errors import SnapshotError
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.reference import PartialMatch, ReferenceMatcher

M = TypeVar("M", bound=ReferenceMatcher)

KEY = np.dtype(
    [
        ("key", np.int64),  # its number
        ("reached", np.int64),  # the time of its last event
        ("step", np.int64),  # steps done
    ]
)
PARTIAL_MATCH = np.dtype(
    [
        ("key", np.int64),  # index into the keys; the partial matches of a key are next to each other
        ("step", np.int64),  # the step that completed it; OPEN if none has, GROWING for one that may still grow
        ("state", np.int64),
        ("whole", np.int64),  # number of its events that are a match which it may continue
        ("end", np.int64),  # its events are those from the end of the previous one (0 for the first) to here
    ]
)
TAKEN = np.dtype([("stage", np.int64), ("event", np.int64)])  # the event is given by its place among the held ones
OPEN, GROWING = -1, -2
_OTHER_ARRAYS = "the snapshot's arrays are not those of this pattern: was it written by another version?"
_POINTS_NOWHERE = "the snapshot's partial matches point to events or states that are not there"
EARLIER = np.dtype([("key", np.int64), ("event", np.int64)])  # the key's number, and the event's place, as in TAKEN


def arrays_of(matchers: Mapping[int, ReferenceMatcher], place: Mapping[int, int]) -> dict[str, npt.NDArray[Any]]:
    """Everything that is open or waits, as arrays. `place` has the place of each event by its position."""
    keys: list[tuple[int, int, int]] = []
    partial_matches: list[tuple[int, int, int, int, int]] = []
    taken: list[tuple[int, int]] = []
    for number, matcher in matchers.items():
        assert matcher.reached is not None
        stored = [(OPEN, partial_match) for partial_match in matcher.partial_matches]
        stored += [(GROWING, partial_match) for partial_match in matcher.growing]
        for step, partial_match in [*stored, *matcher.completed]:
            taken += [(stage, place[event.position]) for stage, event in partial_match.taken]
            partial_matches.append((len(keys), step, partial_match.state, partial_match.whole, len(taken)))
        keys.append((number, matcher.reached, matcher.step))
    return {
        "keys": np.array(keys, KEY),
        "partial_matches": np.array(partial_matches, PARTIAL_MATCH),
        "taken": np.array(taken, TAKEN),
    }


def matchers_of(state: Mapping[str, npt.NDArray[Any]], events: Sequence[Event], new: Callable[[], M]) -> dict[int, M]:
    """Restores the matchers whose arrays `arrays_of` returned. `new` makes a matcher, and `events` are the events that
    were held.

    Raises:
        SnapshotError: an array has another type, or a number in it points nowhere.
    """
    keys, partial_matches, taken = (state[name] for name in ("keys", "partial_matches", "taken"))
    matchers = [new() for _ in keys]
    _check(state, len(events), matchers)
    for matcher, (_, reached, step) in zip(matchers, keys.tolist(), strict=True):
        matcher.reached, matcher.step = reached, step
    begin = 0
    pairs = [(stage, events[event]) for stage, event in taken.tolist()]
    for key, step, number, whole, end in partial_matches.tolist():
        partial_match = PartialMatch(number, tuple(pairs[begin:end]), whole)
        begin = end
        if step == OPEN:
            matchers[key].partial_matches.append(partial_match)
        elif step == GROWING:
            matchers[key].growing.append(partial_match)
        else:
            matchers[key].completed.append((step, partial_match))
    return dict(zip(keys["key"].tolist(), matchers, strict=True))


def earlier_of(matchers: Mapping[int, ReferenceMatcher], place: Mapping[int, int]) -> dict[str, npt.NDArray[Any]]:
    """The earlier events that may matter to `begin_without`, as an array. `place` as in `arrays_of`."""
    rows = [(number, place[event.position]) for number, matcher in matchers.items() for event in matcher.earlier]
    return {"earlier": np.array(rows, EARLIER)}


def restore_earlier(
    matchers: Mapping[int, ReferenceMatcher], earlier: npt.NDArray[Any], events: Sequence[Event]
) -> None:
    """Gives the matchers the earlier events of `earlier_of`.

    Raises:
        SnapshotError: the array has another type, or a number in it points nowhere.
    """
    if earlier.dtype != EARLIER:
        raise SnapshotError(_OTHER_ARRAYS)
    for number, place in earlier.tolist():
        if number not in matchers or not 0 <= place < len(events):
            raise SnapshotError(_POINTS_NOWHERE)
        matchers[number].earlier.append(events[place])


def _check(state: Mapping[str, npt.NDArray[Any]], held: int, matchers: Sequence[ReferenceMatcher]) -> None:
    keys, partial_matches, taken = (state[name] for name in ("keys", "partial_matches", "taken"))
    dtypes = [(keys, KEY), (partial_matches, PARTIAL_MATCH), (taken, TAKEN)]
    if any(array.dtype != dtype for array, dtype in dtypes):
        raise SnapshotError(_OTHER_ARRAYS)
    states = len(matchers[0].automaton.states) if matchers else 0
    stages = len(matchers[0].conditions) if matchers else 0
    lengths = np.diff(partial_matches["end"], prepend=0)
    bounds = [
        (keys["key"], 0, 1 << 31),
        (partial_matches["key"], 0, len(keys)),
        (partial_matches["step"], GROWING, 1 << 62),
        (partial_matches["state"], 0, states),
        (lengths, 1, len(taken) + 1),
        (partial_matches["whole"], 0, lengths + 1),
        (partial_matches["end"], 1, len(taken) + 1),
        (taken["stage"], 0, stages),
        (taken["event"], 0, held),
    ]
    if any(((values < low) | (values >= high)).any() for values, low, high in bounds):
        raise SnapshotError(_POINTS_NOWHERE)
