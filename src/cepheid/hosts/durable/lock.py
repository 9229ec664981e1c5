"""A lock on a file, for stores that do not keep a second host out by themselves."""

from __future__ import annotations

import fcntl
import time
from io import TextIOWrapper
from pathlib import Path

from cepheid.errors import StoreError
from cepheid.hosts.durable.disk_errors import refused

PATIENCE = 5.0
"""Seconds for which every store waits for another host to close it: a command has a store open only for a moment."""


def locked(path: Path, lock: Path | None = None) -> TextIOWrapper:
    """The lock of the store at the path: the file `lock`, by default one beside the store. It is open until the lock is
    given up. The system gives it up when the process ends, in whatever way.

    Raises:
        StoreError: another host has the store open, or the file cannot be made.
    """
    try:
        file = (lock or Path(f"{path}-host-lock")).open("w", encoding="utf-8")
    except OSError as error:
        raise refused(f"the store {path} cannot be opened", error) from error
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                file.close()
                raise StoreError(f"another host has the store {path} open: close it first") from error
            time.sleep(0.05)
        else:
            return file
