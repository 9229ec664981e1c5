"""Reads the folder of a file store after whatever has happened to it, and changes nothing.

A crash leaves less than a whole record at the end of the newest log, or files of a snapshot that was being made. All
else that differs from what was written is damage, and an error that names the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from cepheid.errors import SnapshotError, StoreError
from cepheid.hosts.durable.stores.files.contents import Contents
from cepheid.hosts.durable.stores.files.disk import TEMPORARY
from cepheid.hosts.durable.stores.files.records import (
    FileHeader,
    Kind,
    damaged,
    has_record_after,
    read_header,
    read_records,
    values_in,
)
from cepheid.hosts.durable.stores.files.row_files import RowFiles
from cepheid.output.ids import Ids

STORE, ACKNOWLEDGED, LOCK, ROWS, SOCKET = "store.json", "acknowledged", "lock", "rows", "host"
KINDS: tuple[Kind, ...] = ("snapshot", "log")
END = "end"
"""The last change of a snapshot."""
_NUMBERED = re.compile(rf"(?P<kind>snapshot|log)-(?P<number>\d{{8}})(?P<temporary>{re.escape(TEMPORARY)})?")
_OTHERS = {STORE, STORE + TEMPORARY, ACKNOWLEDGED, LOCK, ROWS, SOCKET}


class Recovered(NamedTuple):
    """What is stored."""

    number: int
    """Of the newest snapshot and its log."""
    snapshot_size: int
    """Bytes."""
    header: FileHeader
    """Of the log."""
    size: int
    """The bytes of the log when it was read."""
    end: int
    """Where the last whole record of the log ends; what comes after it was never acknowledged."""
    records: int
    """How many whole records the log has."""
    contents: Contents


class LogPlace(NamedTuple):
    """A place in the log with this number."""

    number: int
    end: int


class Identity(NamedTuple):
    """What `store.json` says."""

    ids: Ids
    epoch: int
    """The number of times that a host has taken over the store."""


def recover(folder: Path, written: LogPlace | None = None) -> Recovered:
    """What is stored in the folder. `written`: how far this process has written, if nobody else has written since;
    records after this place are those of failed commits.

    Raises:
        SnapshotError: a file is missing or damaged.
        StoreError: a file has a newer format.
    """
    acknowledged = acknowledged_in(folder)
    number = _newest(folder, acknowledged)
    snapshot, log = path_of(folder, "snapshot", number), path_of(folder, "log", number)
    until = written.end if written is not None and written.number == number else None
    size = log.stat().st_size
    contents = _read_snapshot(snapshot, number)
    header, end = read_header(log, "log", number)
    records = 0
    for record in read_records(log, header, end):
        if until is not None and record.end > until:
            break
        for change in record.changes:
            contents.apply(change)
        end, records = record.end, records + 1
    is_cut = acknowledged.number == number and acknowledged.end > end
    # A record is written only when the one before is on the disk: a crash leaves no whole record after a part of one.
    if is_cut or (until is None and has_record_after(log, header, end)):
        raise damaged(log, f"is damaged at byte {end}")
    RowFiles(folder / ROWS).check(contents.files)
    return Recovered(number, snapshot.stat().st_size, header, size, end, records, contents)


def _newest(folder: Path, acknowledged: LogPlace) -> int:
    """The number of the newest snapshot that has a log. A crash may have left files of the next ones, without anything
    in them that was acknowledged.
    """
    snapshots, logs = numbers_in(folder, "snapshot"), numbers_in(folder, "log")
    newest = max({*snapshots} & {*logs}, default=0)
    used = (number for number in logs if _has_records(path_of(folder, "log", number), number))
    needed = max([1, acknowledged.number, *used])
    if newest < needed:
        number = max(needed, *snapshots, *logs)
        raise damaged(path_of(folder, "log" if number in snapshots else "snapshot", number), "is missing")
    return newest


def _has_records(log: Path, number: int) -> bool:
    header, begin = read_header(log, "log", number)
    return next(read_records(log, header, begin), None) is not None


def _read_snapshot(path: Path, number: int) -> Contents:
    header, end = read_header(path, "snapshot", number)
    contents, last = Contents(), None
    for record in read_records(path, header, end):
        end = record.end
        (last,) = record.changes
        if last.kind != END:
            contents.apply(last)
    if last is None or last.kind != END:
        raise damaged(path, f"is damaged at byte {end}")
    return contents


def read_identity(folder: Path) -> Identity:
    """What the file says that makes the folder a store.

    Raises:
        SnapshotError: it is damaged.
        StoreError: a newer version of Cepheid wrote it.
    """
    path = folder / STORE
    values = values_in(path, path.read_bytes())
    if values["cepheid"] != "store":
        raise damaged(path, "is another file that was renamed")
    if values["ids"] not in [*Ids]:
        raise StoreError(
            f"a newer version of Cepheid wrote {path}: it has ids {values['ids']}, and this version reads ids up to "
            f"{max(Ids):d}. Upgrade Cepheid"
        )
    return Identity(Ids(values["ids"]), values["epoch"])


def acknowledged_in(folder: Path) -> LogPlace:
    """How far the log was on the disk when a call last returned, as far as that is known; zeros if it is not."""
    path = folder / ACKNOWLEDGED
    try:
        # A shorter line leaves the rest of a longer one after it.
        values = values_in(path, path.read_bytes().partition(b"\n")[0] + b"\n")
    except (FileNotFoundError, SnapshotError):
        return LogPlace(0, 0)
    return LogPlace(values["log"], values["end"])


def check_is_ours(folder: Path) -> None:
    """
    Raises:
        StoreError: the folder has files, and no host has made them; or a newer version of Cepheid has.
        SnapshotError: it is a store without the file that says so, or that file is damaged.
    """
    names = [path.name for path in folder.iterdir()]
    if STORE in names:
        read_identity(folder)
        return
    if others := sorted(name for name in names if name not in _OTHERS and not _NUMBERED.fullmatch(name)):
        raise StoreError(
            f"the folder {folder} has files that no host has made: {', '.join(others[:5])}. Give the host a folder of "
            "its own"
        )
    # A host that was interrupted while it made a store leaves an empty snapshot and an empty log, number 1.
    numbers = [int(found["number"]) for name in names if (found := _NUMBERED.fullmatch(name))]
    empty = LogPlace(1, len(FileHeader.new("log", 1).line))
    log = path_of(folder, "log", 1)
    is_new = ROWS not in names and max(numbers, default=1) == 1 and acknowledged_in(folder) <= empty
    if not is_new or (log.exists() and _has_records(log, 1)):
        raise damaged(folder / STORE, "is missing")


def path_of(folder: Path, kind: Kind, number: int) -> Path:
    """The path of a snapshot or log."""
    return folder / f"{kind}-{number:08d}"


def numbers_in(folder: Path, kind: Kind) -> list[int]:
    """The numbers of the snapshots or logs in the folder, ascending; of those that are whole."""
    found = (_NUMBERED.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(one["number"]) for one in found if one and one["kind"] == kind and not one["temporary"])


def is_ours(name: str) -> bool:
    """Whether a file in the folder of a store may have been made by a host."""
    return name in _OTHERS or _NUMBERED.fullmatch(name) is not None
