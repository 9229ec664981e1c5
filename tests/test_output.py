"""The rows made from what a kernel emits, in parts small enough for Arrow's offsets."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.events.identity import DIGEST_SIZE
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED, TIMED_OUT
from cepheid.output.stages.rows import MOST_ROWS, parts_of


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


def _matches(*parts: Emitted) -> list[object]:
    found: list[object] = []
    for part in parts:
        for i, end in enumerate(part.end):
            events = slice(part.end[i - 1] if i else 0, end)
            its = part.event[events].tolist(), part.stage[events].tolist()
            found.append((*its, int(part.detected_at[i]), int(part.outcome[i])))
    return found
