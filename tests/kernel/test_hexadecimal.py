"""The compiled hexadecimal text equals Python's."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.kernel.hexadecimal import hexadecimal


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_bytes(rows: int) -> None:
    data = np.random.default_rng(rows).integers(0, 256, (rows, 16), np.uint8)
    assert hexadecimal(data).tobytes() == data.tobytes().hex().encode()


def test_every_byte() -> None:
    every = bytes(range(256))
    assert hexadecimal(np.frombuffer(every, np.uint8)).tobytes().decode() == every.hex()
