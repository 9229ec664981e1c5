"""Reads events from files and writes matches to files. The extension says what kind of file it is.

CSV and JSON lines have no types, so one reader (pyarrow's) infers them for every host. Spark's own reader could infer
other types for the same file, and so give other matches. Parquet has types, and Spark reads it itself.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from typer import BadParameter

from cepheid.cli.failure import FileProblem
from cepheid.cli.rows import flat_table, write_json_lines
from cepheid.cli.text_files.read import read_csv, read_json, with_times
from cepheid.cli.text_files.text_format import PLAIN, TextFormat
from cepheid.cli.text_files.whole_numbers import EXACT
from cepheid.errors import SchemaError
from cepheid.requests.request import repeated_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMPRESSED = ".gz"
_TABS = ".tsv"
"""CSV with tabs."""
_KINDS = {".parquet": "Parquet", ".csv": "CSV", ".jsonl": "JSON lines", ".ndjson": "JSON lines", ".json": "JSON lines"}
_KINDS |= {_TABS: "CSV"}


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


def read_events(paths: Sequence[Path], *, times: Sequence[str], given: TextFormat = PLAIN) -> pa.Table:
    """All events of the files, file by file.

    Empty fields of CSV are NULL. In CSV and JSON lines, text in the columns `times` becomes times.

    Raises:
        FileProblem: a file is not what its extension says, or not as `given` says.
        SchemaError: the files' columns differ, or the format of times is not valid.
    """
    kind = _kind(paths[0])
    _check_format(given, kind)
    reader = _READERS[kind]
    tables = [_read_one(lambda path: reader(path, given, times), path, kind) for path in paths]
    _check_one_schema(paths, [table.schema for table in tables])
    events = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    return events if kind == "Parquet" else _in_microseconds(with_times(events, times, given, paths))


def read_schema(paths: Sequence[Path], *, times: Sequence[str], given: TextFormat = PLAIN) -> pa.Schema:
    """The schema of what `read_events` would read; for Parquet no events are read.

    Raises:
        FileProblem: a file is not what its extension says.
        SchemaError: the files' columns differ.
    """
    kind = _kind(paths[0])
    if kind != "Parquet":
        return read_events(paths, times=times, given=given).schema
    _check_format(given, kind)
    schemas = [_read_one(_read_parquet_schema, path, kind) for path in paths]
    _check_one_schema(paths, schemas)
    return schemas[0]


def read_events_on_spark(
    session: SparkSession, paths: Sequence[Path], *, times: Sequence[str], given: TextFormat = PLAIN
) -> DataFrame:
    """All events of the files as a Spark DataFrame. Spark reads Parquet itself, so large files need not fit in this
    process.
    """
    if _kind(paths[0]) != "Parquet":
        events = read_events(paths, times=times, given=given)
        _check_whole_microseconds(events, paths)
        return _without_zones_given(session, events)
    read_schema(paths, times=times)  # Spark would use the first file's columns, with NULL where another file lacks one
    return session.read.parquet(*(str(path.absolute()) for path in paths))


def _check_whole_microseconds(events: pa.Table, paths: Sequence[Path]) -> None:
    """Raises FileProblem for times that Spark would cut without a word."""
    fine = [field.name for field in events.schema if pa.types.is_timestamp(field.type) and field.type.unit == "ns"]
    if fine:
        names = ", ".join(map(str, paths))
        raise FileProblem(
            f"column {fine[0]!r} of {names} has times finer than microseconds, which Spark lacks. Leave out --on spark"
        )


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
        BadParameter: the kind is unknown, or a compressed one.
        FileProblem: the folder does not exist, the path is a folder, or the file is an input.
    """
    try:
        _kind(path)
    except FileProblem as problem:
        raise BadParameter(str(problem), param_hint="--output") from None
    if path.suffix.lower() == _COMPRESSED:
        message = f"{path}: compressed files are read, but not written. Leave out {_COMPRESSED}"
        raise BadParameter(message, param_hint="--output")
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
        _WRITERS[_kind(path)](matches, partial, _separator(path))
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


def _uncompressed(path: Path) -> Path:
    """The path without the extension of compressed files."""
    return path.with_suffix("") if path.suffix.lower() == _COMPRESSED else path


def _separator(path: Path) -> str:
    """What separates the values of a CSV file with this extension."""
    return "\t" if _uncompressed(path).suffix.lower() == _TABS else ","


def _kind(path: Path) -> str:
    named = _uncompressed(path)
    kind = _KINDS.get(named.suffix.lower(), "Parquet" if path.is_dir() else None)
    if kind is None or (kind == "Parquet" and named is not path):
        compressed = (f"{suffix}{_COMPRESSED}" for suffix, other in _KINDS.items() if other != "Parquet")
        known = ", ".join([*_KINDS, *compressed])
        extension = "".join(path.suffixes[-2:]) if named is not path else path.suffix
        raise FileProblem(f"cannot tell what kind of file {path} is from its extension {extension!r}; known: {known}")
    return kind


def _check_format(given: TextFormat, kind: str) -> None:
    """Raises FileProblem for options that files of this kind do not have."""
    options = [*([] if kind == "CSV" else given.of_csv)]
    options += ["--time-format"] * (kind == "Parquet" and given.time_format is not None)
    if options:
        of = "CSV and JSON lines have" if options == ["--time-format"] else "CSV has"
        raise FileProblem(f"{', '.join(options)}: only {of} that, and these files are {kind}. Leave it out")


def _read_one(reader: Callable[[Path], Any], path: Path, kind: str) -> Any:
    try:
        return reader(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise FileProblem(f"{path} cannot be read as {kind}: {reason}") from None


def _read_csv(path: Path, given: TextFormat, times: Sequence[str]) -> pa.Table:
    return read_csv(path, given, times, separator=given.separator or _separator(path))


def _read_parquet(path: Path, _: TextFormat, __: Sequence[str]) -> pa.Table:
    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").to_table()


def _read_parquet_schema(path: Path) -> pa.Schema:
    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").schema


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


def _in_microseconds(events: pa.Table) -> pa.Table:
    """The events with times in microseconds, the unit of all hosts; pyarrow infers seconds or nanoseconds. A column
    with finer times remains as it is.
    """
    for index, field in enumerate(events.schema):
        if pa.types.is_timestamp(field.type):
            with suppress(pa.ArrowInvalid):
                times = pc.cast(events.column(index), pa.timestamp("us", field.type.tz))
                events = events.set_column(index, field.name, times)
    return events


def _write_parquet(matches: pa.Table, path: Path, _: str) -> None:
    pyarrow.parquet.write_table(matches, path)


def _write_csv(matches: pa.Table, path: Path, separator: str) -> None:
    pyarrow.csv.write_csv(flat_table(matches), path, pyarrow.csv.WriteOptions(delimiter=separator))


def _write_json(matches: pa.Table, path: Path, _: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        write_json_lines(matches, file)


_READERS: dict[str, Callable[[Path, TextFormat, Sequence[str]], pa.Table]] = {
    "Parquet": _read_parquet,
    "CSV": _read_csv,
    "JSON lines": read_json,
}
_WRITERS: dict[str, Callable[[pa.Table, Path, str], None]] = {
    "Parquet": _write_parquet,
    "CSV": _write_csv,
    "JSON lines": _write_json,
}
