"""The files with the older rows of tables: each is written once, and read by DuckDB."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cepheid.errors import SnapshotError
from cepheid.hosts.durable.stores.files.contents import RowFile
from cepheid.hosts.durable.stores.files.disk import TEMPORARY, Disk, Sync
from cepheid.hosts.durable.stores.files.records import damaged

LARGE = 32 << 20
"""Bytes: files of rows are joined up to this size. Joining larger ones would keep a feed waiting for a second."""
_NAME = re.compile(rf".+-\d{{8}}\.parquet({re.escape(TEMPORARY)})?")


class RowFiles:
    """The folder with these files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._verified: set[str] = set()
        """The names of files whose digest was right."""

    def path(self, file: RowFile) -> Path:
        return self.folder / file.name

    def check(self, files: Mapping[str, Sequence[RowFile]]) -> None:
        """
        Raises:
            SnapshotError: a file is missing, or has another size.
        """
        for file in (file for some in files.values() for file in some):
            path = self.path(file)
            if not path.exists():
                raise damaged(path, "is missing")
            if (size := path.stat().st_size) != file.size:
                raise damaged(path, f"is damaged: it has {size:,} bytes, and {file.size:,} were written")

    def verify(self, table: str, files: Iterable[RowFile]) -> None:
        """Checks the digests of files of a table that were not checked before.

        Raises:
            SnapshotError: one is damaged.
        """
        for file in files:
            if file.name not in self._verified:
                if _digest_of(self.path(file)) != file.digest:
                    raise self._damaged(table, file)
                self._verified.add(file.name)

    def write(self, table: str, older: Sequence[RowFile], rows: pa.Table, disk: Disk, number: int) -> list[RowFile]:
        """The table's files after its recent rows were written to one of them. It also takes the rows of files that are
        not much larger, so that there are few files, and a row is written a few times.

        Raises:
            SnapshotError: such a file is damaged.
        """
        remaining = [*older]
        while remaining and remaining[-1].rows < 2 * rows.num_rows and remaining[-1].size < LARGE:
            rows = pa.concat_tables([self._read(table, remaining.pop()), rows], promote_options="default")
        if not rows.num_rows:
            return remaining
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd", compression_level=1)
        content, path = bytes(sink.getvalue()), self.folder / f"{table}-{number:08d}.parquet"
        disk.write_whole(path, [content], Sync.ROWS)
        self._verified.add(path.name)
        return [*remaining, RowFile(path.name, rows.num_rows, len(content), _digest(content), rows.schema.names)]

    def _read(self, table: str, file: RowFile) -> pa.Table:
        content = self.path(file).read_bytes()
        if _digest(content) != file.digest:
            raise self._damaged(table, file)
        return pq.read_table(pa.BufferReader(content))

    def _damaged(self, table: str, file: RowFile) -> SnapshotError:
        return damaged(self.path(file), f"is damaged, and has rows of table {table}")

    def remove_others(self, files: Mapping[str, Sequence[RowFile]], disk: Disk) -> None:
        """Removes all files of rows but these."""
        used = {file.name for some in files.values() for file in some}
        for path in [*self.folder.iterdir()] if self.folder.exists() else ():
            if path.name not in used and _NAME.fullmatch(path.name):
                disk.unlink(path)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(blake2b, digest_size=16)).hexdigest()
