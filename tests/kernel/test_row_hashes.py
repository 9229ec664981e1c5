"""Hashes of rows are those of their canonical bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.events.identity import canonical_bytes, values_and_bounds
from cepheid.kernel.row_hashes import row_hashes
from cepheid.kernel.siphash import siphash

KEY = b"sixteen of these"


@pytest.mark.parametrize("length", [0, 1, 700])
def test_columns_of_several_types(length: int) -> None:
    """Numbers, texts and NULLs, in one part and in none."""
    numbers = pa.array([i % 7 or None for i in range(length)], pa.int64())
    texts = pa.array(["x" * (i % 20) for i in range(length)], pa.string())
    found = row_hashes([numbers, texts, texts], length, KEY)
    assert found.tolist() == siphash(*values_and_bounds(canonical_bytes([numbers, texts, texts], length)), KEY).tolist()
