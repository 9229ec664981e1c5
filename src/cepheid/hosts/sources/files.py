"""A folder to which files of events are added. The position is the name of the last file read.

Files are read in the order of their names, each as one feed. A file must be complete when it gets its name: write it
under a name that begins with a dot, or with another extension, and rename it.
"""

from __future__ import annotations

import csv
import io
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from cepheid.errors import CepheidWarning, EventError, SchemaError, SourceError
from cepheid.hosts.durable.state import Position
from cepheid.hosts.sources.records import BadRows, Parse, csv_parser, json_parser, read_records
from cepheid.hosts.sources.source import Feed

KINDS = {".parquet": "Parquet", ".csv": "CSV", ".jsonl": "JSON lines", ".ndjson": "JSON lines", ".json": "JSON lines"}


class FileSource:
    """A `Source` of the files in a folder, as events with these columns."""

    def __init__(
        self, folder: Path, columns: pa.Schema, *, bad_rows: BadRows = "error", null_texts: Sequence[str] = ()
    ) -> None:
        """
        Args:
            null_texts: Texts that stand for NULL in CSV, beside the empty one.

        Raises:
            SourceError: there is no such folder.
        """
        if not folder.is_dir():
            raise SourceError(f"there is no folder {folder}: make it, then add files of events to it")
        self._folder = folder
        self._columns = columns
        self._bad_rows = bad_rows
        self._null_texts = null_texts
        self._read: set[str] | None = None
        """The names up to the position, as far as they have been seen."""

    def after(self, position: Position | None) -> Feed | None:
        names = self._names()
        self._warn_of_earlier(names, position)
        following = _first_after(names, position)
        if following is None:
            return None
        events, malformed = self._events(self._folder / following)
        return Feed(events, following, str(self._folder / following), malformed)

    def lag(self, position: Position | None) -> float:
        following = _first_after(self._names(), position)
        if following is None:
            return 0.0
        return max(0.0, time.time() - (self._folder / following).stat().st_mtime)

    def close(self) -> None:
        pass

    def _names(self) -> list[str]:
        try:
            return sorted(file.name for file in self._folder.iterdir() if _is_events(file))
        except OSError as error:
            raise SourceError(f"the folder {self._folder} cannot be read: {error.strerror}") from error

    def _warn_of_earlier(self, names: Sequence[str], position: Position | None) -> None:
        """A file that is added with a name before the position is never read."""
        up_to = {name for name in names if position is not None and name <= str(position)}
        if self._read is not None and (missed := sorted(up_to - self._read)):
            warnings.warn(
                f"{', '.join(missed)} in {self._folder}: not read, as the names are before {position}, which was read "
                "already. Name new files so that they come after all others",
                CepheidWarning,
                stacklevel=2,
            )
        self._read = {*up_to, *([] if (following := _first_after(names, position)) is None else [following])}

    def _events(self, path: Path) -> tuple[pa.Table, int]:
        kind = KINDS[path.suffix.lower()]
        try:
            if kind == "Parquet":
                return self._from_parquet(path), 0
            content = path.read_bytes()
        except pa.ArrowException as error:
            raise SourceError(f"{path} cannot be read as {kind}: it is damaged, or another kind of file") from error
        except OSError as error:
            why = (error.strerror or "it is damaged, or another kind of file").lower()
            raise SourceError(f"{path} cannot be read as {kind}: {why}") from error
        return self._from_csv(path, content) if kind == "CSV" else self._from_json(path, content)

    def _from_parquet(self, path: Path) -> pa.Table:
        there = pyarrow.parquet.read_schema(path)
        self._check_columns(path, there.names)
        events = pyarrow.parquet.read_table(path, columns=self._columns.names)
        columns, faults = list[pa.ChunkedArray](), list[str]()
        for field in self._columns:
            given = events.column(field.name)
            try:
                columns.append(given.cast(field.type))
            except pa.ArrowException:
                faults.append(f"{field.name!r} is of type {given.type} and not {field.type}")
        if faults:
            raise EventError(
                f"{path} has columns whose values do not fit the input: {'; '.join(faults)}. Write them in its types"
            )
        return pa.table(columns, schema=self._columns)

    def _from_json(self, path: Path, content: bytes) -> tuple[pa.Table, int]:
        lines = [(number, line) for number, line in enumerate(content.split(b"\n"), 1) if line.strip()]
        return self._from_records(path, lines, json_parser(self._columns))

    def _from_csv(self, path: Path, content: bytes) -> tuple[pa.Table, int]:
        (_, first), *rows = _csv_rows(path, content) or [(1, b"")]
        if not first:
            return self._columns.empty_table(), 0
        (header,) = csv.reader([first.decode("utf-8-sig")])
        self._check_columns(path, header)
        return self._from_records(path, rows, csv_parser(self._columns, header, self._null_texts))

    def _from_records(self, path: Path, numbered: Sequence[tuple[int, bytes]], parse: Parse) -> tuple[pa.Table, int]:
        records = [record for _, record in numbered]
        return read_records(records, parse, lambda i: f"{path}, line {numbered[i][0]},", self._bad_rows)

    def _check_columns(self, path: Path, there: Sequence[str]) -> None:
        missing = [name for name in self._columns.names if name not in there]
        if missing:
            raise SchemaError(
                f"{path} has no column {', '.join(map(repr, missing))}, which the input has. Its columns are "
                f"{', '.join(there)}"
            )


def _is_events(file: Path) -> bool:
    return file.suffix.lower() in KINDS and file.name[0] not in "._" and file.is_file()


def _first_after(names: Sequence[str], position: Position | None) -> str | None:
    return next((name for name in names if position is None or name > str(position)), None)


def _csv_rows(path: Path, content: bytes) -> list[tuple[int, bytes]]:
    """The rows that are not blank, each with the number of its first line. A quoted field may have several lines."""
    lines = content.splitlines(keepends=True)
    if b'"' not in content:
        return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogateescape", newline=""))
    found, start = [], 0
    try:
        for row in rows:
            if row:
                found.append((start + 1, b"".join(lines[start : rows.line_num])))
            start = rows.line_num
    except csv.Error as error:
        raise EventError(f"{path}, line {start + 1}, cannot be read as CSV: {error}") from error
    return found
