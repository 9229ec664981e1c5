"""Compiles the kernels, and decides where their machine code is cached.

Compiling takes half a minute (docs/performance.md, "Start-up"), loading from the disk cache 0.2 seconds. Numba only
checks the age of the file that defines a cached function. But a compiled function also contains the values of the
constants that it reads and the fields of its NamedTuples. Numba would miss a change of these in another file, and the
old code would find wrong matches. The cache folder is therefore named by a fingerprint of the files with compiled
functions, of the files that define such constants and NamedTuples, and of the versions of the compiler. When one of
these changes, the folder changes.

Such constants live in files of their own, because files that only import them are not in the fingerprint. If it covered
everything that the kernel imports, a new docstring in any of a hundred files would compile all kernels again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from llvmlite import __version__ as llvmlite_version
from llvmlite.binding import get_host_cpu_name
from numba import __version__ as numba_version
from numba import config as numba_config
from numba import njit
from numba.core.caching import FunctionCache
from numpy import __version__ as numpy_version

from cepheid.knowledge import caches

Function = TypeVar("Function", bound=Callable[..., Any])

CONSTANTS = (
    "plan/condition_bits.py",
    "plan/intervals/constants.py",
    "plan/occurrences/constants.py",
    "compile/arrays.py",
    "compile/instructions.py",
    "compile/intervals/tables.py",
    "compile/knowledge/tables.py",
    "compile/occurrences/tables.py",
    "compile/stages/tables.py",
    "kernel/arrays.py",
    "kernel/knowledge/layout.py",
    "kernel/occurrences/layout.py",
    "kernel/intervals/layout.py",
    "kernel/stages/layout.py",
    "kernel/stages/observed/classes/layout.py",
    "kernel/sets/layout.py",
)
"""The files that define constants and NamedTuples of compiled functions. Of our own files they import only each other
and files with compiled functions. tests/kernel/test_cache_fingerprint.py checks that none is missing.
"""

_COMPILED = re.compile(rb"^@(kernel|inlined|allocating)\b", re.MULTILINE)
_PACKAGE = Path(__file__).parent.parent


def cache_folder() -> Path | None:
    """The folder for compiled code, below NUMBA_CACHE_DIR if that is set. None if no folder of the user's own can be
    written.
    """
    return caches.cache_folder(fingerprint(), chosen=os.environ.get("NUMBA_CACHE_DIR"))


def fingerprint(package: Path = _PACKAGE) -> str:
    """The name of the cache folder for the sources in the package's folder."""
    versions = f"{numba_version} {llvmlite_version} {numpy_version}"
    digest = hashlib.sha256(versions.encode())
    for name, source in fingerprinted(package).items():
        digest.update(f"\n{name} {len(source)}\n".encode())
        digest.update(source)
    return digest.hexdigest()[:16]


def fingerprinted(package: Path = _PACKAGE) -> dict[str, bytes]:
    """The sources that the fingerprint covers, by their path in the package: this file, CONSTANTS, and every file below
    kernel/ with compiled functions.

    Raises:
        FileNotFoundError: a file is missing or empty, or no file has compiled functions.
    """
    sources = {name: _read(package, name) for name in ("kernel/jit.py", *CONSTANTS)}
    compiled = 0
    for path in sorted((package / "kernel").rglob("*.py")):
        source = path.read_bytes()
        if _COMPILED.search(source):
            sources[path.relative_to(package).as_posix()] = source
            compiled += 1
    if not compiled:
        raise FileNotFoundError(f"no file with compiled functions below {package / 'kernel'}")
    return sources


def _read(package: Path, name: str) -> bytes:
    path = package / name
    source = path.read_bytes() if path.is_file() else b""
    if not source.strip():
        raise FileNotFoundError(f"{path} is missing or empty: was it moved? kernel/jit.py lists it in CONSTANTS")
    return source


_FOLDER = cache_folder()


class _Cache(FunctionCache):
    """Numba's cache. A file that cannot be read, as after a full disk or a loss of power, is compiled and written
    again.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - a damaged file may raise anything
            self.flush()  # type: ignore[no-untyped-call]
            return None


def _compile(function: Function, **options: Any) -> Function:
    config: Any = numba_config
    before = config.CACHE_DIR
    # Numba reads the setting when a function is decorated. It is then restored, so that other code keeps its own cache.
    config.CACHE_DIR = "" if _FOLDER is None else str(_FOLDER)
    try:
        compiled: Any = njit(cache=_FOLDER is not None, nogil=True, **options)(function)
        if _FOLDER is not None:
            compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]  # noqa: SLF001 - no public way
    finally:
        config.CACHE_DIR = before
    return compiled


def is_compiled(name: str) -> bool:
    """Whether the functions that have this name, as in `compiling_alone`, are in the disk cache. True without a cache:
    then each process compiles its own.
    """
    note = _note_of(name)
    return note is None or note.exists()


@cache
def _note_of(name: str) -> Path | None:
    """The file that says that the functions are compiled for this processor; None without a cache. Its path is stored,
    as LLVM takes 0.7 ms to name the processor, and each hash of a batch asks for it.
    """
    return None if _FOLDER is None else _FOLDER / f"{name}.{get_host_cpu_name()}.compiled"


@contextmanager
def compiling_alone(name: str) -> Iterator[None]:
    """For a block that runs functions, and so compiles those that are not in the disk cache; they have this name
    together. Only one process compiles at a time: it holds a lock in the cache folder, which the system frees when a
    process ends. A process whose functions are compiled waits for none, also not for one that compiles others.
    """
    note = _note_of(name)
    if note is None or note.exists():
        yield
        return
    with (note.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    note.touch()


# The kernel's functions allocate nothing, so Numba need not count references to arrays (_nrt). Counting costs 20 to 40
# calls per event, because every array argument is counted: measured 1.1 M events/s with it, 6 M without.
kernel = partial(_compile, _nrt=False)

# Small functions that run for every event. A call would cost more than their work, as each array is passed as seven
# words. Measured with inlining, and with records in place of one array per field: 48 to 82 M events/s.
inlined = partial(_compile, _nrt=False, forceinline=True)

# Functions that allocate.
allocating = partial(_compile)
