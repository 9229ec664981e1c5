"""The compiled order of rows equals NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.kernel.order import Codes, order_by

WORD = (1 << 64) - 1


@st.composite
def columns(draw: st.DrawFn) -> list[Codes]:
    """Columns of one length, of numbers with few to 64 bits."""
    length = draw(st.integers(0, 40))
    bits = draw(st.lists(st.sampled_from([0, 1, 5, 16, 17, 33, 64]), max_size=3))
    each = [st.lists(st.integers(0, (1 << width) - 1), min_size=length, max_size=length) for width in bits]
    return [np.array(draw(one), np.uint64) for one in each]


@given(columns())
def test_any_columns(given: list[Codes]) -> None:
    """The first column counts most; rows that agree in all columns stay as they come."""
    length = len(given[0]) if given else 3
    expected = np.lexsort([np.arange(length), *reversed(given)])
    assert order_by(given, length).tolist() == expected.tolist()


@pytest.mark.parametrize("length", [0, 1, 200_000])
def test_many_rows(length: int) -> None:
    """Digits of 16 bits, all of whose values occur."""
    random = np.random.default_rng(length)
    key, time = random.integers(0, 1 << 17, length).astype(np.uint64), random.integers(0, WORD, length, np.uint64)
    assert np.array_equal(order_by([key, time], length), np.lexsort((time, key)))
