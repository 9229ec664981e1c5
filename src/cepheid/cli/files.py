"""Reads events from files and writes matches to files. The extension says what kind of file it is.

CSV and JSON lines have no types, so one reader (pyarrow's) infers them for every host. Spark's own reader could infer
other types for the same file, and so give other matches. Parquet has types, and Spark reads it itself.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json
import pyarrow.parquet

from cepheid.cli.failure import FileProblem
from cepheid.cli.rows import flat_table, write_json_lines
from cepheid.cli.whole_numbers import EXACT, exact_csv, exact_json
from cepheid.errors import SchemaError
from cepheid.hosts.sources.records import times_as_text
from cepheid.requests.request import repeated_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = {".parquet": "Parquet", ".csv": "CSV", ".jsonl": "JSON lines", ".ndjson": "JSON lines", ".json": "JSON lines"}
_BLOCK_BYTES = 32 << 20
"""The size of the first block of a text file, from which types are inferred. With pyarrow's default of 1 MB, the types
too often do not fit later values.
"""


def event_files(names: Sequence[str]) -> list[Path]:
    """The files with these names, in the given order; a name may be a glob. All files are of one known kind.

    Raises:
        FileProblem: a file does not exist, no file matches a glob, a file is empty or of an unknown kind, or the files
            are of several kinds.
    """
    paths = [path for name in names for path in _expanded(name)]
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise FileProblem(f"events must be files of one kind, these are {' and '.join(sorted(kinds))}")
    for path in paths:
        if path.is_file() and path.stat().st_size == 0:
            raise FileProblem(f"{path} is empty, so the columns of the events are not known")
        if path.is_dir() and kinds != {"Parquet"}:
            raise FileProblem(f"{path} is a folder; only Parquet is read from folders")
        if path.is_dir() and not any(file.is_file() and file.name[0] not in "._" for file in path.rglob("*")):
            raise FileProblem(f"there are no Parquet files in the folder {path}")
    return paths


def read_events(paths: Sequence[Path], *, times: Sequence[str], null_texts: Sequence[str] = ()) -> pa.Table:
    """All events of the files, file by file.

    In CSV, empty fields and `null_texts` are read as NULL. In CSV and JSON lines, ISO 8601 text in the columns `times`
    becomes timestamps.

    Raises:
        FileProblem: a file is not what its extension says.
        SchemaError: the files' columns differ.
    """
    kind = _kind(paths[0])
    reader = _READERS[kind]
    tables = [_read_one(reader, path, kind, null_texts) for path in paths]
    _check_one_schema(paths, [table.schema for table in tables])
    events = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    return events if kind == "Parquet" else _in_microseconds(_with_timestamps(events, times), paths)


def read_schema(paths: Sequence[Path], *, times: Sequence[str], null_texts: Sequence[str] = ()) -> pa.Schema:
    """The schema of what `read_events` would read; for Parquet no events are read.

    Raises:
        FileProblem: a file is not what its extension says.
        SchemaError: the files' columns differ.
    """
    kind = _kind(paths[0])
    if kind != "Parquet":
        return read_events(paths, times=times, null_texts=null_texts).schema
    schemas = [_read_one(_read_parquet_schema, path, kind, ()) for path in paths]
    _check_one_schema(paths, schemas)
    return schemas[0]


def read_events_on_spark(
    session: SparkSession, paths: Sequence[Path], *, times: Sequence[str], null_texts: Sequence[str] = ()
) -> DataFrame:
    """All events of the files as a Spark DataFrame. Spark reads Parquet itself, so large files need not fit in this
    process.
    """
    if _kind(paths[0]) != "Parquet":
        return _without_zones_given(session, read_events(paths, times=times, null_texts=null_texts))
    read_schema(paths, times=times)  # Spark would use the first file's columns, with NULL where another file lacks one
    return session.read.parquet(*(str(path.absolute()) for path in paths))


def _without_zones_given(session: SparkSession, events: pa.Table) -> DataFrame:
    """A DataFrame in which times without a zone remain so, as in Parquet. By default Spark would read them in the
    session's zone.
    """
    preferred = session.conf.get("spark.sql.timestampType")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        # In one chunk: PySpark 4.3 loses the rows after an empty chunk.
        return session.createDataFrame(events.combine_chunks())
    finally:
        session.conf.set("spark.sql.timestampType", preferred or "TIMESTAMP_LTZ")


def check_output(path: Path, inputs: Sequence[Path]) -> None:
    """Checks, before the work is done, that `write_matches` can and should write this file.

    Raises:
        FileProblem: the kind is unknown, the folder does not exist, the path is a folder, or the file is an input.
    """
    _kind(path)
    if not path.parent.is_dir():
        raise FileProblem(f"the folder {path.parent} does not exist: make it first, or choose another --output")
    if path.is_dir():
        raise FileProblem(f"{path} is a folder: choose the name of a file for --output")
    if any(read.exists() and path.exists() and path.samefile(read) for read in inputs):
        raise FileProblem(f"{path} is one of the input files: choose another --output")


def write_matches(matches: pa.Table, path: Path) -> None:
    """Writes a file atomically, under a temporary name that is changed when the file is complete."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _WRITERS[_kind(path)](matches, partial)
        partial.replace(path)
    except OSError as error:
        raise FileProblem(f"{path} cannot be written: {error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _expanded(name: str) -> list[Path]:
    path = Path(name)
    if path.exists():
        return [path]
    if not glob.has_magic(name):
        raise FileProblem(f"there is no file {name}")
    found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 the pattern may be absolute, which Path.glob refuses
    if not found:
        raise FileProblem(f"no file matches {name}")
    return [Path(each) for each in found]


def _kind(path: Path) -> str:
    kind = _KINDS.get(path.suffix.lower(), "Parquet" if path.is_dir() else None)
    if kind is None:
        known = ", ".join(_KINDS)
        raise FileProblem(f"cannot tell what kind of file {path} is from its extension {path.suffix!r}; known: {known}")
    return kind


def _read_one(reader: Callable[[Path, Sequence[str]], Any], path: Path, kind: str, null_texts: Sequence[str]) -> Any:
    try:
        return reader(path, null_texts)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise FileProblem(f"{path} cannot be read as {kind}: {reason}") from None


def _read_parquet(path: Path, _: Sequence[str]) -> pa.Table:
    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").to_table()


def _read_parquet_schema(path: Path, _: Sequence[str]) -> pa.Schema:
    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").schema


def _read_csv(path: Path, null_texts: Sequence[str]) -> pa.Table:
    # As in databases, an empty field is NULL and a quoted one is not; "NA" and "null" are text unless asked for.
    blocks = pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES)
    convert = pyarrow.csv.ConvertOptions(
        null_values=["", *null_texts], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    events = pyarrow.csv.read_csv(path, blocks, convert_options=convert)

    def read_texts(names: list[str]) -> pa.Table:
        convert.include_columns, convert.column_types = names, dict.fromkeys(names, pa.string())
        return pyarrow.csv.read_csv(path, blocks, convert_options=convert)

    return exact_csv(events, read_texts)


def _read_json(path: Path, _: Sequence[str]) -> pa.Table:
    blocks = pyarrow.json.ReadOptions(block_size=_BLOCK_BYTES)

    def read_as(schema: pa.Schema) -> pa.Table:
        return pyarrow.json.read_json(path, blocks, pyarrow.json.ParseOptions(explicit_schema=schema))

    events = pyarrow.json.read_json(path, blocks)
    texts = pa.schema([field.with_type(times_as_text(field.type)) for field in events.schema])
    if not texts.equals(events.schema):
        # JSON has no times: pyarrow parses ISO 8601 text as times without a zone and drops the zone. So such columns
        # are read as text.
        events = read_as(texts)
    return exact_json(path, events, read_as)


def _check_one_schema(paths: Sequence[Path], schemas: Sequence[pa.Schema]) -> None:
    first = schemas[0]
    if faults := repeated_names(first.names):
        raise SchemaError("\n".join(faults))
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        if set(schema.names) != set(first.names):
            differing = ", ".join(sorted(set(schema.names) ^ set(first.names)))
            raise SchemaError(f"events must have one schema: {path} and {paths[0]} differ in the columns {differing}")
        for field in schema:
            other = first.field(field.name)
            kinds = {field.type, other.type}
            if len(kinds - {pa.null()}) > 1 and kinds != {pa.int64(), EXACT}:
                raise SchemaError(
                    f"events must have one schema: column {field.name!r} is {field.type} in {path} "
                    f"and {other.type} in {paths[0]}"
                )


def _with_timestamps(events: pa.Table, times: Sequence[str]) -> pa.Table:
    for name in times:
        index = events.schema.get_field_index(name)
        # The type is NULL if a file has no events, or no times in them.
        if index >= 0 and events.schema.field(index).type in (pa.string(), pa.null()):
            events = events.set_column(index, name, _as_timestamps(events.column(index)))
    return events


def _as_timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            return pc.cast(texts, kind)
        except pa.ArrowInvalid:
            continue  # times with a zone need the second type; other text remains, and is reported later
    return texts


def _in_microseconds(events: pa.Table, paths: Sequence[Path]) -> pa.Table:
    """The events with times in microseconds, the unit of all hosts; pyarrow infers seconds or nanoseconds."""
    for index, field in enumerate(events.schema):
        if pa.types.is_timestamp(field.type):
            try:
                times = pc.cast(events.column(index), pa.timestamp("us", field.type.tz))
            except pa.ArrowInvalid:
                names = ", ".join(map(str, paths))
                raise FileProblem(f"column {field.name!r} of {names} has times finer than microseconds") from None
            events = events.set_column(index, field.name, times)
    return events


def _write_parquet(matches: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(matches, path)


def _write_csv(matches: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(flat_table(matches), path)


def _write_json(matches: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        write_json_lines(matches, file)


_READERS: dict[str, Callable[[Path, Sequence[str]], pa.Table]] = {
    "Parquet": _read_parquet,
    "CSV": _read_csv,
    "JSON lines": _read_json,
}
_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "Parquet": _write_parquet,
    "CSV": _write_csv,
    "JSON lines": _write_json,
}
