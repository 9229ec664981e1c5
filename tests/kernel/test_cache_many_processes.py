"""The disk cache of compiled kernels, with a small kernel: filled by several processes at once, damaged, and
unusable.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("small_kernel.py")
FOUND = "14\n"


def start(cache: Path, **environment: str) -> subprocess.Popen[str]:
    """A process that runs the kernel with this cache."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(SCRIPT)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, f"ended with {process.returncode}: {errors}"
    return out


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that four processes have filled at the same time, starting empty."""
    cache = tmp_path_factory.mktemp("cache")
    processes = [start(cache) for _ in range(4)]
    assert [answer(process) for process in processes] == [FOUND] * 4
    return cache


@pytest.fixture
def files(filled: Path) -> Iterator[list[Path]]:
    """The files of compiled code, restored afterwards."""
    files = sorted(path for path in filled.rglob("*") if path.suffix in {".nbi", ".nbc"})
    before = [path.read_bytes() for path in files]
    yield files
    for path, content in zip(files, before, strict=True):
        path.write_bytes(content)


def test_several_processes_may_fill_the_cache_at_once(filled: Path) -> None:
    """Processes that compile at the same time have the right result, and so does the next process, which loads the
    code.
    """
    assert answer(start(filled)) == FOUND


def test_what_is_compiled_waits_for_no_other_process(filled: Path) -> None:
    """While a process compiles, others run what is compiled already."""
    (folder,) = (path for path in (filled / "cepheid").iterdir() if (path / "lock").exists())
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert answer(start(filled)) == FOUND


def test_damaged_files_are_compiled_anew(filled: Path, files: list[Path]) -> None:
    """A cache with truncated or overwritten files does not crash a process, which repairs the cache."""
    for path, content in zip(files, cycle([b"", b"not compiled code"]), strict=False):
        path.write_bytes(content)
    assert answer(start(filled)) == FOUND
    assert all(path.stat().st_size > 100 for path in files)


def test_a_cache_of_other_sources_is_left_alone(filled: Path) -> None:
    """The folder's name depends on what is compiled, so the folder of another version is neither read nor changed."""
    (folder,) = (filled / "cepheid").iterdir()
    other = folder.with_name("0" * 16)
    other.mkdir()
    (other / "small_kernel.sum_of_squares-1.py311.nbi").write_bytes(b"another version's")
    assert answer(start(filled)) == FOUND
    assert [path.read_bytes() for path in other.iterdir()] == [b"another version's"]


def test_without_a_writable_cache(tmp_path: Path) -> None:
    """If the folder cannot be created, here because a file has its name, the kernel is compiled in memory."""
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    assert answer(start(in_the_way)) == FOUND
    assert in_the_way.read_text() == ""
