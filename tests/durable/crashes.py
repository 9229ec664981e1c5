"""What a crash may leave of a folder: a recorder of the operations on a disk, and the states that follow from them.

A file's content is on the disk after a sync of the file, and its name after a sync of its folder. Of what came after
the last sync any part may be there: nothing, all, the writes of one file alone or of all others, half a write; and of
names each one, or none, or all but one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from cepheid.hosts.durable.stores.files.disk import Disk, Sync


class Operation(NamedTuple):
    kind: Literal["write", "truncate", "sync", "rename", "unlink", "make_folder", "sync_folder", "nothing"]
    path: Path
    data: bytes = b""
    at: int = 0
    """Where the data is written; or the size to which the file is cut."""
    to: Path = Path()
    place: Sync | None = None


class Killed(BaseException):
    """The process ends here. The page cache survives that."""


class RecordingDisk(Disk):
    """Does and records all operations. Killed at a sync, it does not do it."""

    def __init__(self, operations: list[Operation], killed_at: Sync | None = None) -> None:
        super().__init__()
        self.operations, self.killed_at = operations, killed_at

    def write(self, path: Path, data: bytes, at: int) -> None:
        super().write(path, data, at)
        self.operations.append(Operation("write", path, data, at))

    def truncate(self, path: Path, size: int) -> None:
        super().truncate(path, size)
        self.operations.append(Operation("truncate", path, at=size))

    def sync(self, path: Path, place: Sync) -> None:
        if place == self.killed_at:
            raise Killed
        self.operations.append(Operation("sync", path, place=place))

    def rename(self, path: Path, to: Path) -> None:
        super().rename(path, to)
        self.operations.append(Operation("rename", path, to=to))

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.operations.append(Operation("unlink", path))

    def make_folder(self, path: Path) -> None:
        super().make_folder(path)
        self.operations.append(Operation("make_folder", path))

    def sync_folder(self, path: Path, place: Sync) -> None:
        self.operations.append(Operation("sync_folder", path, place=place))


State: TypeAlias = dict[Path, bytes | None]
"""The content of each file by its name; None for a folder."""
Write: TypeAlias = tuple[int, bytes | None]
"""Where what is written; or None, and the size to which the file is cut."""
Names: TypeAlias = dict[Path, "File | None"]
"""The file of each name; None: a folder."""
NameChange: TypeAlias = tuple[Path, dict[Path, "File | Literal['gone'] | None"]]
"""A folder, and what becomes of its names."""


@dataclass(eq=False)
class File:
    """A file's content on the disk, and what was written since."""

    synced: bytes = b""
    pending: list[Write] = field(default_factory=list)

    def contents(self) -> list[bytes]:
        """What may be on the disk: nothing of what was written since, all of it, or half of the last write."""
        found = [self.synced, _written(self.synced, self.pending)]
        if self.pending and (data := self.pending[-1][1]):
            at, half = self.pending[-1][0], len(data) // 2
            first, second = (at, data[:half]), (at + half, data[half:])
            found += [_written(self.synced, [*self.pending[:-1], part]) for part in (first, second)]
        return found


class DiskModel:
    """What is on the disk after operations, and what may be."""

    def __init__(self) -> None:
        self.names: Names = {}
        """As the running program sees them."""
        self.synced_names: Names = {}
        self.pending: list[NameChange] = []
        self._folders_of: dict[Path, list[Path]] = {}

    def apply(self, one: Operation) -> None:
        """Takes one operation."""
        match one.kind:
            case "write" | "truncate":
                if one.path not in self.names:
                    self._rename({one.path: File()})
                file = self.names[one.path]
                assert file is not None
                file.pending.append((one.at, one.data if one.kind == "write" else None))
            case "sync":
                file = self.names[one.path]
                assert file is not None
                file.synced, file.pending = _written(file.synced, file.pending), []
            case "rename":
                self._rename({one.path: "gone", one.to: self.names[one.path]})
            case "unlink":
                self._rename({one.path: "gone"})
            case "make_folder":
                self._rename({one.path: None})
            case "sync_folder":
                for folder, change in self.pending:
                    if folder == one.path:
                        _rename(self.synced_names, change)
                self.pending = [change for change in self.pending if change[0] != one.path]

    def _rename(self, change: dict[Path, File | Literal["gone"] | None]) -> None:
        _rename(self.names, change)
        self.pending.append((next(iter(change)).parent, change))

    def states(self) -> Iterator[State]:
        """What a crash may leave."""
        for changed in self._names():
            names = {path: file for path, file in changed.items() if all(one in changed for one in self._folders(path))}
            files = [file for file in names.values() if file is not None and file.pending]
            for contents in _choices([file.contents() for file in files]):
                chosen = dict(zip(files, contents, strict=True))
                yield {path: None if file is None else chosen.get(file, file.synced) for path, file in names.items()}

    def _folders(self, path: Path) -> list[Path]:
        """The recorded folders that a path is in. They were made before it."""
        if path not in self._folders_of:
            self._folders_of[path] = [parent for parent in path.parents if parent in self.names]
        return self._folders_of[path]

    def _names(self) -> Iterator[Names]:
        count = len(self.pending)
        subsets = {frozenset(range(count)), frozenset[int]()}
        subsets |= {frozenset({i}) for i in range(count)} | {frozenset(range(count)) - {i} for i in range(count)}
        for subset in subsets:
            names = dict(self.synced_names)
            for i in sorted(subset):
                _rename(names, self.pending[i][1])
            yield names


def _choices(contents: Sequence[Sequence[bytes]]) -> Iterator[list[bytes]]:
    """A content of each file: the same of its possible states for all, or one file in another state than the others."""
    if not contents:
        yield []
        return
    unsynced, all_ = [one[0] for one in contents], [one[1] for one in contents]
    yield unsynced
    yield all_
    for i, mine in enumerate(contents):
        for content in mine[1:]:
            yield [*unsynced[:i], content, *unsynced[i + 1 :]]
        for content in (mine[0], *mine[2:]):
            yield [*all_[:i], content, *all_[i + 1 :]]


def _written(content: bytes, writes: Sequence[Write]) -> bytes:
    for at, data in writes:
        if data is None:
            content = content[:at].ljust(at, b"\0")
        else:
            content = content[:at].ljust(at, b"\0") + data + content[at + len(data) :]
    return content


def _rename(names: Names, change: dict[Path, File | Literal["gone"] | None]) -> None:
    for path, file in change.items():
        if file == "gone":
            names.pop(path, None)
        else:
            names[path] = file


def states_after_crashes(operations: Sequence[Operation]) -> Iterator[tuple[int, State]]:
    """What a crash may leave after so many of the operations."""
    model = DiskModel()
    for done, one in enumerate(operations, 1):
        model.apply(one)
        for state in model.states():
            yield done, state


def write_state(state: State, root: Path, to: Path) -> None:
    """Writes what a crash has left within `root` to another folder."""
    for path in sorted(state):  # folders before what is in them
        content, copy = state[path], to / path.relative_to(root)
        if content is None:
            copy.mkdir()
        else:
            copy.write_bytes(content)
