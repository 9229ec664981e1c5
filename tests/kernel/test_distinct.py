"""`distinct`: sorted positions without duplicates."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.kernel.arrays import distinct


@pytest.mark.parametrize("length", [6, 10_000])
def test_each_once(length: int) -> None:
    """For few and for many positions, the result has each position once, in order."""
    found = distinct(np.array([5, 0, 5, 3, 0], np.int64), length)
    assert (found.tolist(), found.dtype) == ([0, 3, 5], np.int32)


def test_none() -> None:
    """Without positions the result is empty, even if the length is zero."""
    assert distinct(np.zeros(0, np.int32), 0).tolist() == []
