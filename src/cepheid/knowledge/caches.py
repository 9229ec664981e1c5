"""Folders for what is computed once on a machine and used again: what follows from knowledge, and compiled kernels."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_folder(name: str, *, chosen: str | None = None) -> Path | None:
    """The folder of this name for cached files, which is made if it is missing. None if no folder of the user's own can
    be written.

    It is below the chosen folder if there is one, else below XDG_CACHE_HOME or ~/.cache, else below the folder for
    temporary files.
    """
    temporary = Path(tempfile.gettempdir()) / f"cepheid-{os.getuid()}"
    for root in [Path(chosen)] if chosen else [*_home(), temporary]:
        folder = root / "cepheid" / name
        try:
            if root == temporary:
                root.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and (root != temporary or _is_private(root)):
            return folder
    return None


def _home() -> Iterator[Path]:
    try:
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return  # containers run users who have no home


def _is_private(folder: Path) -> bool:
    """Whether the folder belongs to the user and no other user can access it. Cached code is executed, so it must be
    safe.
    """
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
