"""Hashes of rows are those of their canonical bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.events.identity import canonical_bytes
from cepheid.kernel import siphash as siphash_functions
from cepheid.kernel.row_hashes import row_hashes
from cepheid.kernel.siphash_reference import siphash_reference

KEY = b"sixteen of these"


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("length", [0, 1, 700])
def test_columns_of_several_types(length: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a parameter
    """Numbers, texts and NULLs, in one part and in none, also before the functions are compiled."""
    monkeypatch.setattr(siphash_functions, "is_compiled", lambda: is_compiled)
    numbers = pa.array([i % 7 or None for i in range(length)], pa.int64())
    texts = pa.array(["x" * (i % 20) for i in range(length)], pa.string())
    found = row_hashes([numbers, texts, texts], length, KEY)
    content = canonical_bytes([numbers, texts, texts], length).to_pylist()
    assert [row.tobytes() for row in found] == [siphash_reference(row, KEY) for row in content]
