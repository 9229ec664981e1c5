"""The operations by which a file store changes its folder.

A crash may come between any two of them, and what was written or renamed is on the disk only after a sync: the test
of crashes records these operations, and opens the store from every state of the disk that a crash could leave.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

TEMPORARY = ".new"
"""The suffix of a file that is not whole yet."""


class Sync(StrEnum):
    """The places where the store waits for the disk. Each is needed: without it a crash could lose something."""

    COMMIT = "a record in the log, before the call that made it returns"
    RECOVERED = "the log that an opened store continues, which the process before may have left unsynced"
    NEW_LOG = "a new log, before it gets its name"
    SNAPSHOT = "a snapshot, before it gets its name"
    ROWS = "a file of rows, before it gets its name"
    STORE = "the file that makes a folder a store, before it gets its name"
    PARENT = "the name of a new folder, before the call that made it returns"
    COPY = "a file of a backup or of a restored store, before it gets its name"
    COPY_NAMES = "the names of these files, before the one that makes the folder a store"
    ROWS_NAMES = "the names of new files of rows, before a snapshot refers to them"
    NAMES = "the names of a new log and snapshot, before the old ones are removed"
    STORE_NAME = "the name of the file that makes a folder a store, before anything is committed"


class Disk:
    """Files are written at a place, so that a repeated write does no harm. They stay open until `close`."""

    def __init__(self) -> None:
        self._descriptors: dict[Path, int] = {}

    def write(self, path: Path, data: bytes, at: int) -> None:
        """Writes the bytes at this place of the file, which is made if it is not there."""
        rest = memoryview(data)
        descriptor = self._descriptor(path)
        while rest:
            written = os.pwrite(descriptor, rest, at)
            rest, at = rest[written:], at + written

    def truncate(self, path: Path, size: int) -> None:
        os.ftruncate(self._descriptor(path), size)

    def sync(self, path: Path, place: Sync) -> None:  # noqa: ARG002 - the place is for the test of crashes
        """Waits until the file's content is on the disk; its name may not be yet."""
        os.fsync(self._descriptor(path))

    def rename(self, path: Path, to: Path) -> None:
        self.close(path)
        self.close(to)
        path.replace(to)

    def unlink(self, path: Path) -> None:
        self.close(path)
        path.unlink()

    def make_folder(self, path: Path) -> None:
        path.mkdir()

    def sync_folder(self, path: Path, place: Sync) -> None:  # noqa: ARG002
        """Waits until the names of the folder's files are on the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_whole(self, path: Path, parts: Iterable[bytes], place: Sync) -> int:
        """Writes a file that has its name only when its content is on the disk; returns its size. The caller syncs the
        folder.
        """
        new, size = path.with_name(path.name + TEMPORARY), 0
        self.write(new, b"", 0)
        self.truncate(new, 0)
        for part in parts:
            self.write(new, part, size)
            size += len(part)
        self.sync(new, place)
        self.rename(new, path)
        return size

    def close(self, path: Path) -> None:
        if (descriptor := self._descriptors.pop(path, None)) is not None:
            os.close(descriptor)

    def close_all(self) -> None:
        for path in [*self._descriptors]:
            self.close(path)

    def _descriptor(self, path: Path) -> int:
        if path not in self._descriptors:
            self._descriptors[path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._descriptors[path]
