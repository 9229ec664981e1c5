"""Backups of a file store, and stores made from them: copies of the folder.

A copy gets `store.json` last, when all else is on the disk. So what an interrupted copy has left is neither a store nor
a backup, and both a host and `restore` say so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cepheid.errors import StoreError
from cepheid.hosts.durable.disk_errors import refusing
from cepheid.hosts.durable.stores.files.contents import RowFile
from cepheid.hosts.durable.stores.files.disk import Disk, Sync
from cepheid.hosts.durable.stores.files.recovery import KINDS, ROWS, STORE, path_of, read_identity, recover
from cepheid.hosts.durable.stores.files.row_files import RowFiles

_PIECE = 1 << 20
"""Bytes."""


def restore(backup: Path, folder: Path, disk: Disk | None = None) -> None:
    """Makes a store in the folder from a backup.

    Raises:
        StoreError: the backup is none, or there is something in the place of the folder.
        SnapshotError: it is damaged.
    """
    if not (backup / STORE).exists():
        raise StoreError(f"{backup} is no backup of a host in files: it has no file {STORE}")
    with refusing(f"the backup {backup} cannot be read"):
        read_identity(backup)
        stored = recover(backup)
    copy(backup, stored.number, stored.contents.files, to=folder, disk=Disk() if disk is None else disk)


def copy(source: Path, number: int, files: Mapping[str, Sequence[RowFile]], *, to: Path, disk: Disk) -> None:
    """Copies the snapshot and log of this number, and the files of rows, to a new folder.

    Raises:
        StoreError: there is something at the path already, or it cannot be written.
        SnapshotError: a file of rows is damaged.
    """
    if to.exists():
        raise StoreError(f"{to} is there already: remove it, or name another folder")
    rows = RowFiles(source / ROWS)
    for table, some in files.items():
        rows.verify(table, some)
    with refusing(f"{to} cannot be written"):
        disk.make_folder(to)
        try:
            _copy_files([path_of(source, kind, number) for kind in KINDS], to, disk)
            disk.make_folder(to / ROWS)
            _copy_files([rows.path(file) for some in files.values() for file in some], to / ROWS, disk)
            disk.sync_folder(to / ROWS, Sync.COPY_NAMES)
            disk.sync_folder(to, Sync.COPY_NAMES)
            disk.write_whole(to / STORE, _pieces(source / STORE), Sync.STORE)
            disk.sync_folder(to, Sync.STORE_NAME)
            disk.sync_folder(to.absolute().parent, Sync.PARENT)
        except BaseException:
            shutil.rmtree(to)
            raise
        finally:
            disk.close_all()


def _copy_files(paths: Sequence[Path], to: Path, disk: Disk) -> None:
    for path in paths:
        disk.write_whole(to / path.name, _pieces(path), Sync.COPY)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
