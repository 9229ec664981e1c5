"""Compiling beside the start of Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cepheid.hosts.kernel_warming import kernel_warming


def test_it_ends_with_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails early does not wait for the compiler, and its own exception is what is seen."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    start = time.perf_counter()
    with pytest.raises(ValueError, match="no Java"), kernel_warming():
        raise ValueError("no Java")
    assert time.perf_counter() - start < 5  # compiling takes longer


@pytest.mark.slow
def test_the_kernel_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is time the compiled kernel is in the disk cache, where workers find it."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with kernel_warming():
        end = time.monotonic() + 120
        while not any(tmp_path.rglob("*.nbc")):
            assert time.monotonic() < end, "nothing was compiled"
            time.sleep(0.2)
