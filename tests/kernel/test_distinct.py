"""Positions, each once and in order."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.kernel.arrays import distinct


@pytest.mark.parametrize("length", [6, 10_000])
def test_each_once(length: int) -> None:
    """Whether they are many of the length or few, each is there once, in order."""
    found = distinct(np.array([5, 0, 5, 3, 0], np.int64), length)
    assert (found.tolist(), found.dtype) == ([0, 3, 5], np.int32)


def test_none() -> None:
    """Of no positions there are none, even if nothing could be there."""
    assert distinct(np.zeros(0, np.int32), 0).tolist() == []
