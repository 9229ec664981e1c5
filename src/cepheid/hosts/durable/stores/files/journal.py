"""The folder of a file store: a snapshot, the log of what was committed since, and older rows.

    store.json              that it is a store, its ids, and the epoch of the host that opened it last
    snapshot-00000007       all that was stored when log 7 began
    log-00000007            one record for each transaction since
    acknowledged            how far the log was on the disk when a call last returned
    rows/                   files of rows for users, each written once

A transaction is one record, written and synced: one commit. When the log is long, its contents are written to a new
snapshot, and a new log begins. Each file gets its name only when it is whole and on the disk, and the old ones are
removed only when the names of the new ones are on the disk. So a crash leaves either the one or the other.

`acknowledged` is never synced. After a crash of the machine it may be missing, or older than the log, but it never
claims too much. A crash of the program leaves it as it is. So a log that was shortened or changed before that place is
damaged. What follows both that place and the last whole record was never acknowledged, and is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from cepheid.errors import StoreError
from cepheid.hosts.durable.disk_errors import refused, refusing
from cepheid.hosts.durable.lock import locked
from cepheid.hosts.durable.stores.files.contents import Contents, RowFile
from cepheid.hosts.durable.stores.files.disk import TEMPORARY, Disk, Sync
from cepheid.hosts.durable.stores.files.records import Change, FileHeader, Kind, encode, line_of
from cepheid.hosts.durable.stores.files.recovery import (
    ACKNOWLEDGED,
    END,
    KINDS,
    LOCK,
    STORE,
    Identity,
    LogPlace,
    Recovered,
    check_is_ours,
    is_ours,
    numbers_in,
    path_of,
    read_identity,
    recover,
)
from cepheid.output.ids import Ids

LOG_SIZE = 16 << 20
"""Bytes: a longer log is replaced by a snapshot, unless the last snapshot is longer."""


class Journal:
    """An open folder, which only this object may change."""

    def __init__(self, folder: Path, disk: Disk, log_size: int = LOG_SIZE) -> None:
        """Makes the store if there is none.

        Raises:
            StoreError: the folder cannot be opened, has other files, or another host has it open.
            SnapshotError: what is stored is damaged.
        """
        self._folder, self._disk, self._log_size = folder, disk, log_size
        with self._refusing("opened"):
            if not folder.exists():
                if not folder.parent.is_dir():
                    raise StoreError(f"the store {folder} cannot be opened: there is no folder {folder.parent}")
                disk.make_folder(folder)
                disk.sync_folder(folder.parent, Sync.PARENT)
            check_is_ours(folder)
        self._lock = locked(folder, folder / LOCK)
        self._identity: bytes | None = None
        """The content of `store.json` that this object has written."""
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def open(self) -> None:
        """Reads all that is stored, and takes the store over. Nothing is written before all is read. After a commit
        that failed this cuts what the commit has written.

        Raises:
            StoreError, SnapshotError: as `__init__`.
        """
        self._disk.close_all()
        with self._refusing("opened"):
            if self._is_mine():
                self._continue_from(recover(self._folder, LogPlace(self._number, self._end)))
                return
            if not (self._folder / STORE).exists():
                self._make()
                known = Identity(Ids.SIPHASH, 0)
            else:
                known = read_identity(self._folder)
            stored = recover(self._folder)
            self._take_over(known)
            if self._has_changed(stored):  # by a host that had lost its lock; from now on it cannot write
                stored = recover(self._folder)
            self._continue_from(stored)

    def _is_mine(self) -> bool:
        """Whether no other host has opened the store since this one has."""
        if self._identity is None:
            return False
        path = self._folder / STORE
        if not path.exists():
            raise StoreError(
                f"{path} was removed while a host had the store open: put the folder back as it was, and the host goes "
                "on; or close the host, and make the store anew from a backup, with `cepheid host restore`"
            )
        return path.read_bytes() == self._identity

    def _make(self) -> None:
        """Makes the files of an empty store, but for the one that makes it a store."""
        for kind in KINDS:
            for number in numbers_in(self._folder, kind):  # a store that was never made whole
                self._disk.unlink(self._path(kind, number))
        self._write_snapshot(1, Contents())

    def _take_over(self, known: Identity) -> None:
        self.ids = known.ids
        self._identity = line_of({"cepheid": "store", "ids": int(known.ids), "epoch": known.epoch + 1})
        self._disk.write_whole(self._folder / STORE, [self._identity], Sync.STORE)
        self._disk.sync_folder(self._folder, Sync.STORE_NAME)

    def _has_changed(self, stored: Recovered) -> bool:
        log = self._path("log", stored.number)
        return numbers_in(self._folder, "snapshot")[-1] > stored.number or log.stat().st_size != stored.size

    def _continue_from(self, stored: Recovered) -> None:
        log = self._path("log", stored.number)
        self._number, self._header, self._records = stored.number, stored.header, stored.records
        self._end, self._snapshot_size, self.contents = stored.end, stored.snapshot_size, stored.contents
        self._disk.truncate(log, self._end)
        self._disk.sync(log, Sync.RECOVERED)
        self._acknowledge()
        self._tidy()

    def _tidy(self) -> None:
        """Removes what an interrupted call has left."""
        used = {self._path(kind, self._number) for kind in KINDS}
        files = [path for path in self._folder.iterdir() if path.name.endswith(TEMPORARY) and is_ours(path.name)]
        files += [self._path(kind, number) for kind in KINDS for number in numbers_in(self._folder, kind)]
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
            raise refused(f"the store {self._folder} cannot be written", error, log) from error
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
        with self._refusing("written"):
            self._write_snapshot(before + 1, contents)
            for kind in KINDS:
                self._disk.unlink(self._path(kind, before))

    @property
    def number(self) -> int:
        """The number of the newest snapshot and its log."""
        return self._number

    def _write_snapshot(self, number: int, contents: Contents) -> None:
        snapshot, log, after = self._path("snapshot", number), self._path("log", number), Contents()
        header = FileHeader.new("log", number)
        begin = self._disk.write_whole(log, [header.line], Sync.NEW_LOG)
        size = self._disk.write_whole(snapshot, _snapshot(number, contents, snapshot, after), Sync.SNAPSHOT)
        self._disk.sync_folder(self._folder, Sync.NAMES)
        after.changed_inputs, after.changed_deployments = contents.changed_inputs, contents.changed_deployments
        self._number, self._header, self._records = number, header, 0
        self._end, self._snapshot_size, self.contents = begin, size, after
        self._acknowledge()

    def _acknowledge(self) -> None:
        with suppress(OSError):  # it is not needed
            line = line_of({"cepheid": ACKNOWLEDGED, "log": self._number, "end": self._end})
            self._disk.write(self._folder / ACKNOWLEDGED, line, 0)

    def _check_epoch(self) -> None:
        with self._refusing("written"):
            if (self._folder / STORE).read_bytes() != self._identity:
                raise StoreError("another host has opened this store since, so this one may not write any more")

    def close(self) -> None:
        self._disk.close_all()
        self._lock.close()

    def _path(self, kind: Kind, number: int) -> Path:
        return path_of(self._folder, kind, number)

    def _refusing(self, what: str) -> AbstractContextManager[None]:
        return refusing(f"the store {self._folder} cannot be {what}")


def _snapshot(number: int, contents: Contents, path: Path, after: Contents) -> Iterator[bytes]:
    """The parts of a snapshot of the contents at the path; `after` becomes what will be read from it."""
    header, kind = FileHeader.new("snapshot", number), END
    yield header.line
    end, records = len(header.line), 0
    for change in (*contents.changes(), Change(kind, None)):
        data, record = encode(header, records, [change], path, end)
        end, records = record.end, records + 1
        if change.kind != END:
            after.apply(record.changes[0])
        yield data
