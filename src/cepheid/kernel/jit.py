"""How the kernel is compiled and where its machine code is kept, in one place.

Compiling takes half a minute (docs/performance.md, "Start-up"), loading from the disk cache 0.2 seconds. Numba names a
cached function by its own file's age only, so a change in a file that it imports, or of a NamedTuple's fields, would be
missed. The folder is therefore named by a fingerprint of all that is compiled: another version of the source is another
folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from numba import __version__ as numba_version
from numba import config as numba_config
from numba import njit
from numba.core.caching import FunctionCache

from cepheid.plan.stages.plan import MAX_CONDITIONS

Function = TypeVar("Function", bound=Callable[..., Any])

_SOURCES = ("compile/script.py", "compile/stages/tables.py", "compile/intervals/compiled.py", "kernel/**/*.py")


def cache_folder() -> Path | None:
    """The folder of the compiled kernel; None where no folder of the user's own can be written.

    Under NUMBA_CACHE_DIR if that is set, else XDG_CACHE_HOME or ~/.cache, else the folder for temporary files.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    temporary = Path(tempfile.gettempdir()) / f"cepheid-{os.getuid()}"
    for root in [Path(chosen)] if chosen else [home, temporary]:
        folder = root / "cepheid" / _fingerprint()
        try:
            if root == temporary:
                root.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and (root != temporary or _is_private(root)):
            return folder
    return None


def _is_private(folder: Path) -> bool:
    """Whether the folder is the user's own and closed to others: cached code is executed."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def _fingerprint() -> str:
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(f"{numba_version} {MAX_CONDITIONS}".encode())  # ALWAYS in tables.py is from another file
    for source in sorted(path for pattern in _SOURCES for path in package.glob(pattern)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


_FOLDER = cache_folder()


class _Cache(FunctionCache):
    """Numba's cache; what cannot be read, as after a full disk or a loss of power, is compiled and written anew."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - damaged files fail in any way
            self.flush()  # type: ignore[no-untyped-call]
            return None


def _compile(function: Function, **options: Any) -> Function:
    config: Any = numba_config
    before = config.CACHE_DIR
    # Numba reads the setting when a function is decorated, so it can be put back at once: other code keeps its own
    # cache.
    config.CACHE_DIR = "" if _FOLDER is None else str(_FOLDER)
    try:
        compiled: Any = njit(cache=_FOLDER is not None, nogil=True, **options)(function)
        if _FOLDER is not None:
            compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]  # noqa: SLF001 - no public way
    finally:
        config.CACHE_DIR = before
    return compiled  # type: ignore[no-any-return]


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Holds a lock beside the cached code, among processes; the system frees it when a process ends."""
    if _FOLDER is None:
        yield
        return
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# Without _nrt the kernel's functions allocate nothing, so Numba need not count references to arrays. Counting costs
# 20 to 40 calls an event, because every array that a function is handed is counted: measured 1.1 M events/s with it,
# 6 M without.
kernel = partial(_compile, _nrt=False)

# Small functions on the path of every event: a call costs more than they do, as each array is handed over in seven
# words. With this, and with records in place of an array a field: 48 to 82 M events/s.
inlined = partial(_compile, _nrt=False, forceinline=True)

# Functions that allocate.
allocating = partial(_compile)
