"""The compiled order of emitted rows, and the rows in an order, equal NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.intervals.sorting import columns_of, order_of


def expected(words: Ints, numbers: Int32s) -> Ints:
    """The same by comparing all columns."""
    return np.lexsort((*numbers.T[::-1], *words.T[::-1]))


@given(st.integers(0, 150), st.integers(1, 3), st.integers(0, 2), st.integers(1, 8), st.randoms(use_true_random=False))
def test_any_rows(length: int, words: int, numbers: int, values: int, seed: np.random.Generator) -> None:
    """The first word counts most, then the others, then the numbers; equal rows stay as they come."""
    random = np.random.default_rng(seed.randint(0, 1 << 30))  # type: ignore[attr-defined]
    rows = random.integers(-values, values, (length, words))
    rows[:, 0].sort()
    others = random.integers(0, values, (length, numbers)).astype(np.int32)
    assert order_of(rows, others).tolist() == expected(rows, others).tolist()


@pytest.mark.parametrize("groups", [1, 300])
def test_many_rows(groups: int) -> None:
    """Long runs are merged, also if the last one is shorter."""
    random = np.random.default_rng(groups)
    rows = random.integers(0, 1 << 40, (50_001, 3))
    rows[:, 0] = np.sort(random.integers(0, groups, len(rows)))
    nothing = np.empty((len(rows), 0), np.int32)
    assert np.array_equal(order_of(rows, nothing), expected(rows, nothing))


def test_columns_in_an_order() -> None:
    """Each word becomes an array, and rows of numbers stay rows."""
    words, numbers = np.arange(15).reshape(5, 3), np.arange(10, dtype=np.int32).reshape(5, 2)
    order = np.array([3, 0, 4, 1, 2], np.int32)
    columns, ordered = columns_of(words, numbers, order)
    assert np.array_equal(columns, words[order].T)
    assert np.array_equal(ordered, numbers[order])
