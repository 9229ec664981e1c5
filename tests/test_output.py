"""The rows made from what a kernel emits, in parts small enough for Arrow's offsets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.events.identity import DIGEST_SIZE
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED, TIMED_OUT
from cepheid.matchers.stages.detector import places
from cepheid.output.stages.rows import MOST_ROWS, events_of, parts_of


def test_rows_that_arrow_can_count() -> None:
    """The match ids of that many matches, as hexadecimal text, fit 32-bit offsets."""
    assert MOST_ROWS * 2 * DIGEST_SIZE < 1 << 31


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 9])
def test_parts(most: int) -> None:
    """The parts together contain all matches, each with its own events, and no part has too many."""
    lengths = np.array([2, 1, 3, 1, 2])
    whole = Emitted(
        end=np.cumsum(lengths),
        detected_at=np.arange(5) * 10,
        outcome=np.array([MATCHED, TIMED_OUT, MATCHED, MATCHED, TIMED_OUT], np.int32),
        event=np.arange(9, dtype=np.int32),
        stage=np.arange(9, dtype=np.int32) % 3,
    )
    parts = list(parts_of(whole, most))
    assert all(len(part.end) <= most for part in parts)
    assert _matches(*parts) == _matches(whole)


def test_nothing_has_no_parts() -> None:
    """If nothing is emitted, there are no rows to make."""
    nothing = np.zeros(0, np.int64)
    none = Emitted(nothing, nothing, *[nothing.astype(np.int32)] * 3)
    assert list(parts_of(none)) == []


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=4), st.integers(1, 3))
def test_events_of_stages(stages: list[list[int]], times: int) -> None:
    """Each stage has its events of each match in their order, also where all matches have the same stages."""
    stages *= times
    flat = [stage for match in stages for stage in match]
    nothing = np.zeros(len(stages), np.int64)
    ends, event = np.cumsum([len(match) for match in stages]), np.arange(len(flat), dtype=np.int32)
    emitted = Emitted(ends, nothing, nothing.astype(np.int32), event, np.array(flat, np.int32))
    found = events_of(emitted, event + 7, range(3))
    for stage in range(3):
        expected = [[at + 7 for at in _places(stages, i) if flat[at] == stage] for i in range(len(stages))]
        rows, offsets = found[stage].rows.tolist(), found[stage].offsets.tolist()
        assert [rows[begin:end] for begin, end in pairwise(offsets)] == expected
        assert found[stage].nth(0).tolist() == [its[0] if its else -1 for its in expected]


def _places(stages: list[list[int]], match: int) -> range:
    first = sum(map(len, stages[:match]))
    return range(first, first + len(stages[match]))


@given(st.lists(st.integers(0, 40)), st.integers(41, 500))
def test_places_of_events(events: list[int], length: int) -> None:
    """Each event is found at its place among the positions, which ascend and are hardly more than those of the
    events.
    """
    used, place = places(np.array(events, np.int32), length)
    assert used[place].tolist() == events
    assert (np.diff(used) > 0).all()
    assert 0.9 * len(used) <= len(set(events)) <= len(used)


def _matches(*parts: Emitted) -> list[object]:
    found: list[object] = []
    for part in parts:
        for i, end in enumerate(part.end):
            events = slice(part.end[i - 1] if i else 0, end)
            its = part.event[events].tolist(), part.stage[events].tolist()
            found.append((*its, int(part.detected_at[i]), int(part.outcome[i])))
    return found
