"""The folder of a file store: a snapshot, the log of what was committed since, and older rows.

    store.json              that it is a store, its ids, and the epoch of the host that opened it last
    snapshot-00000007       all that was stored when log 7 began
    log-00000007            one record for each transaction since
    acknowledged            how far the log was on the disk when a call last returned
    rows/                   files of rows for users, each written once

A transaction is one record, written and synced: one commit. When the log is long, its contents are written to a new
snapshot, and a new log begins. Each file gets its name only when it is whole and on the disk, and the old ones are
removed only when the names of the new ones are on the disk. So a crash leaves either the one or the other.

`acknowledged` is never synced. It may be lost, or be older than the log, and never says too much. As a crash of the
program leaves it as it is, a log that was shortened or changed before that place is damaged; what comes after the last
whole record, and after that place, was never acknowledged, and is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cepheid.errors import SnapshotError, StoreError
from cepheid.hosts.durable.lock import locked
from cepheid.hosts.durable.stores.files.contents import Contents, RowFile
from cepheid.hosts.durable.stores.files.disk import TEMPORARY, Disk, Sync
from cepheid.hosts.durable.stores.files.records import (
    Change,
    FileHeader,
    damaged,
    encode,
    has_record_after,
    line_of,
    read_header,
    read_records,
    said_in,
)
from cepheid.output.ids import Ids

LOG_SIZE = 64 << 20
"""Bytes: a longer log is replaced by a snapshot, unless the last snapshot is longer."""

STORE, ACKNOWLEDGED, LOCK, ROWS, SOCKET = "store.json", "acknowledged", "lock", "rows", "host"
_END = "end"
"""The last change of a snapshot."""
_OURS = re.compile(rf"({STORE}|{ACKNOWLEDGED}|(snapshot|log)-\d{{8}})({TEMPORARY})?|{LOCK}|{ROWS}|{SOCKET}")


class Journal:
    """An open folder, which only this object may change."""

    def __init__(self, folder: Path, disk: Disk, log_size: int = LOG_SIZE) -> None:
        """Makes the store if there is none.

        Raises:
            StoreError: the folder cannot be opened, has other files, or another host has it open.
            SnapshotError: what is stored is damaged.
        """
        self._folder, self._disk, self._log_size = folder, disk, log_size
        with _failing(folder, "opened"):
            if not folder.exists():
                disk.make_folder(folder)
                disk.sync_folder(folder.parent, Sync.PARENT)
            _check_is_ours(folder)
        self._lock = locked(folder, folder / LOCK)
        self._identity = b""
        self._number = self._end = 0
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def open(self) -> None:
        """Reads all that is stored, and takes the store over. Also after a failure: what a failed commit has written is
        cut then.

        Raises:
            StoreError, SnapshotError: as `__init__`.
        """
        self._disk.close_all()
        with _failing(self._folder, "opened"):
            there = (self._folder / STORE).exists()
            is_ours = there and (self._folder / STORE).read_bytes() == (self._identity or None)
            if not there:
                self._make()
            if not is_ours:
                self._take_over(there=there)
            self._recover(continues=is_ours)

    def _make(self) -> None:
        """Makes the files of an empty store. The file that makes it a store comes last."""
        if any(self._has_records(number) for number in self._numbers("log")):
            raise damaged(self._folder / STORE, "is missing")
        for kind in ("snapshot", "log"):
            for number in self._numbers(kind):  # the store was never made whole
                self._disk.unlink(self._path(kind, number))
        self._write_snapshot(1, Contents())

    def _take_over(self, *, there: bool) -> None:
        path, epoch = self._folder / STORE, 0
        ids = int(Ids.SIPHASH)
        if there:
            said = said_in(path, path.read_bytes())
            epoch, ids = said["epoch"], said["ids"]
            if ids not in [*Ids]:
                raise StoreError(
                    f"a newer version of Cepheid wrote {path}: it has ids {ids}, and this version reads ids up to "
                    f"{max(Ids):d}. Upgrade Cepheid"
                )
        self._identity = line_of({"cepheid": "store", "ids": ids, "epoch": epoch + 1})
        self.ids = Ids(ids)
        self._disk.write_whole(path, [self._identity], Sync.STORE)
        self._disk.sync_folder(self._folder, Sync.STORE_NAME)

    # Reading

    def _recover(self, *, continues: bool) -> None:
        """Reads the newest snapshot and its log. `continues`: no other host has written since."""
        number = self._newest()
        snapshot, log = self._path("snapshot", number), self._path("log", number)
        contents = self._read_snapshot(number)
        self._header, begin = read_header(log, "log", number)
        end, records = begin, 0
        until = self._end if continues and number == self._number else None
        for record in read_records(log, self._header, begin):
            if until is not None and record.end > until:
                break
            for change in record.changes:
                contents.apply(change)
            end, records = record.end, records + 1
        self._check_tail(log, end, is_known=until is not None)
        self._number, self._end, self._records, self._begin = number, end, records, begin
        self._snapshot_size = snapshot.stat().st_size
        self.contents = contents
        self._disk.truncate(log, end)
        self._disk.sync(log, Sync.RECOVERED)
        self._acknowledge()
        self._tidy()

    def _newest(self) -> int:
        """The number of the newest snapshot that has a log. A crash may have left files of the next ones, without
        anything in them that was acknowledged.
        """
        snapshots, logs = self._numbers("snapshot"), self._numbers("log")
        newest = max({*snapshots} & {*logs}, default=0)
        acknowledged, _ = self._acknowledged()
        needed = max([1, acknowledged, *filter(self._has_records, logs)])
        if newest < needed:
            number = max(needed, *snapshots, *logs)
            raise damaged(self._path("log" if number in snapshots else "snapshot", number), "is missing")
        return newest

    def _read_snapshot(self, number: int) -> Contents:
        path = self._path("snapshot", number)
        header, end = read_header(path, "snapshot", number)
        contents, last = Contents(), None
        for record in read_records(path, header, end):
            end = record.end
            (last,) = record.changes
            if last.kind != _END:
                contents.apply(last)
        if last is None or last.kind != _END:
            raise damaged(path, f"is damaged at byte {end}")
        return contents

    def _check_tail(self, log: Path, end: int, *, is_known: bool) -> None:
        """
        Raises:
            SnapshotError: what comes after the last whole record is damage, not what a crash has left of a commit.
        """
        number, acknowledged = self._acknowledged()
        is_lost = number == int(log.name.rpartition("-")[2]) and acknowledged > end
        if is_lost or (not is_known and has_record_after(log, self._header, end)):
            raise damaged(log, f"is damaged at byte {end}")

    def _acknowledged(self) -> tuple[int, int]:
        """The number of the log, and how much of it was acknowledged at least; zeros if that is not known."""
        path = self._folder / ACKNOWLEDGED
        try:
            said = said_in(path, path.read_bytes().partition(b"\n")[0] + b"\n")
        except (FileNotFoundError, SnapshotError):
            return 0, 0
        return said["log"], said["end"]

    def _has_records(self, number: int) -> bool:
        path = self._path("log", number)
        header, begin = read_header(path, "log", number)
        return next(read_records(path, header, begin), None) is not None

    def _tidy(self) -> None:
        """Removes what an interrupted call has left."""
        used = {self._path("snapshot", self._number), self._path("log", self._number)}
        files = [path for path in self._folder.iterdir() if path.name.endswith(TEMPORARY)]
        files += [self._path(kind, number) for kind in ("snapshot", "log") for number in self._numbers(kind)]
        for path in {*files} - used:
            self._disk.unlink(path)

    # Writing

    def commit(self, changes: Sequence[Change]) -> None:
        """Stores the changes, all or none.

        Raises:
            StoreError: that failed, or another host has taken the store over. Call `open` before anything else.
        """
        log = self._path("log", self._number)
        data, record = encode(self._header, self._records, changes, log, self._end)
        self._check_epoch()
        try:
            self._disk.write(log, data, self._end)
            self._disk.sync(log, Sync.COMMIT)
        except OSError as error:
            with suppress(OSError):  # if that fails, too, `open` cuts it
                self._disk.truncate(log, self._end)
            raise StoreError(f"the store {self._folder} cannot be written: {error.strerror}") from error
        self._check_epoch()
        self._end, self._records = record.end, self._records + 1
        self._acknowledge()
        for change in record.changes:
            self.contents.apply(change)

    @property
    def is_long(self) -> bool:
        """Whether a snapshot is due. Between two of them at least as much is logged as one has, so that each byte is
        written a bounded number of times.
        """
        return self._end > max(self._log_size, self._snapshot_size)

    def replace(self, files: Mapping[str, list[RowFile]]) -> None:
        """Writes a new snapshot, and begins a new log. The rows since the last one are in these files.

        Raises:
            StoreError: that failed. Call `open` before anything else.
        """
        self._check_epoch()
        before, contents = self._number, self.contents
        contents.files = dict(files)
        with _failing(self._folder, "written"):
            self._write_snapshot(before + 1, contents)
            for kind in ("snapshot", "log"):
                self._disk.unlink(self._path(kind, before))

    @property
    def next(self) -> int:
        """The number of the next snapshot."""
        return self._number + 1

    def _write_snapshot(self, number: int, contents: Contents) -> None:
        snapshot, log, after = self._path("snapshot", number), self._path("log", number), Contents()
        header = FileHeader.new("log", number)
        begin = self._disk.write_whole(log, [header.line], Sync.NEW_LOG)
        size = self._disk.write_whole(snapshot, _snapshot(number, contents, snapshot, after), Sync.SNAPSHOT)
        self._disk.sync_folder(self._folder, Sync.NAMES)
        self._number, self._header, self._records, self._begin = number, header, 0, begin
        self._end, self._snapshot_size, self.contents = begin, size, after
        self._acknowledge()

    def _acknowledge(self) -> None:
        with suppress(OSError):  # it is not needed
            line = line_of({"cepheid": ACKNOWLEDGED, "log": self._number, "end": self._end})
            self._disk.write(self._folder / ACKNOWLEDGED, line, 0)

    def _check_epoch(self) -> None:
        with _failing(self._folder, "written"):
            if (self._folder / STORE).read_bytes() != self._identity:
                raise StoreError("another host has opened this store since, so this one may not write any more")

    def close(self) -> None:
        self._disk.close_all()
        self._lock.close()

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number:08d}"

    def _numbers(self, kind: str) -> list[int]:
        names = [path.name for path in self._folder.iterdir()]
        return sorted(int(found[1]) for name in names if (found := re.fullmatch(rf"{kind}-(\d{{8}})", name)))


def _snapshot(number: int, contents: Contents, path: Path, after: Contents) -> Iterator[bytes]:
    """The parts of a snapshot of the contents at the path; `after` becomes what will be read from it."""
    header, kind = FileHeader.new("snapshot", number), _END
    yield header.line
    end, records = len(header.line), 0
    for change in (*contents.changes(), Change(kind, None)):
        data, record = encode(header, records, [change], path, end)
        end, records = record.end, records + 1
        if change.kind != _END:
            after.apply(record.changes[0])
        yield data


def _check_is_ours(folder: Path) -> None:
    """
    Raises:
        StoreError: the folder has files, and no host has made them.
    """
    names = [path.name for path in folder.iterdir()]
    if STORE not in names and (others := sorted(name for name in names if not _OURS.fullmatch(name))):
        raise StoreError(
            f"the folder {folder} has files that no host has made: {', '.join(others[:5])}. Give the host a folder of "
            "its own"
        )


@contextmanager
def _failing(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"the store {folder} cannot be {what}: {error}") from error
