"""The source and the sink of a stream, as URLs of a command line: `kafka://…`, `files://…`, `rate://…` or `-`."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, urlsplit

import typer

from cepheid.cli.failure import FileProblem, Unavailable
from cepheid.requests.request import Nulls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

_KAFKA_PORT = 9092
_FORMS = "kafka://host:port/topic, files://folder or"
_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_TO_MICROSECONDS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""Spark's default format truncates times to milliseconds."""


@dataclass(frozen=True)
class End:
    """One end of a stream."""

    kind: str
    """"kafka", "files", "rate" or "-"."""
    place: str
    """Servers, a folder, or rows per second."""
    topic: str
    options: Mapping[str, str]
    """The part of the URL after `?`: Spark's options for this source or sink."""


def source_of(url: str) -> End:
    """The source that the URL names; raises typer.BadParameter if it names none."""
    end = _end(url)
    if end is None or end.kind == "-" or (end.kind == "rate" and not re.fullmatch("[1-9][0-9]*", end.place)):
        raise typer.BadParameter(f"{url!r} is none of {_FORMS} rate://rows-per-second", param_hint="--from")
    return end


def sink_of(url: str) -> End:
    """The sink that the URL names; raises typer.BadParameter if it names none."""
    end = _end(url)
    if end is None or end.kind == "rate":
        raise typer.BadParameter(f"{url!r} is none of {_FORMS} -, which is standard output", param_hint="--to")
    if end.kind == "files" and end.options.get("format", "parquet") not in ("parquet", "json"):
        raise typer.BadParameter("format is parquet or json: CSV has no nested columns", param_hint="--to")
    return end


def _end(url: str) -> End | None:
    if url == "-":
        return End("-", "", "", {})
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    match parts.scheme:
        case "kafka" if parts.netloc and parts.path.strip("/"):
            return End("kafka", ",".join(map(_with_port, parts.netloc.split(","))), parts.path.strip("/"), options)
        case "files" if parts.netloc + parts.path:
            return End("files", parts.netloc + parts.path, "", options)
        case "rate" if not parts.path:
            return End("rate", parts.netloc, "", options)
    return None


def _with_port(server: str) -> str:
    """The server, with Kafka's default port if it has none. Colons in brackets belong to an IPv6 address."""
    return server if ":" in server.rpartition("]")[2] else f"{server}:{_KAFKA_PORT}"


def check_source(source: End, schema: str | None) -> None:
    """Checks what can be checked before Spark starts.

    Raises:
        FileProblem: the folder does not exist.
        Unavailable: no broker answers.
        typer.BadParameter: the columns, or the format of the files, are not known.
    """
    if source.kind == "kafka":
        check_broker(source)
    if source.kind == "files" and not Path(source.place).is_dir():
        raise FileProblem(f"there is no folder {source.place}: a stream reads the files that are added to a folder")
    columns_needed = source.kind == "kafka" or (source.kind == "files" and not _has_columns(source))
    if columns_needed and schema is None:
        example = "name the events' columns and types, as in 'user STRING, at TIMESTAMP, amount DOUBLE'"
        raise typer.BadParameter(example, param_hint="--schema")
    if source.kind == "rate" and schema is not None:
        raise typer.BadParameter("the columns of rate:// are timestamp and value", param_hint="--schema")


def check_broker(end: End) -> None:
    """Raises Unavailable if none of the Kafka servers answers; Spark itself would try for minutes."""
    reasons = []
    for server in end.place.split(","):
        host, _, port = server.rpartition(":")
        try:
            with closing(socket.create_connection((host.strip("[]"), int(port)), timeout=5)):
                return
        except (OSError, ValueError) as error:
            reasons.append(f"{server} ({error})")
    raise Unavailable(f"no Kafka broker answers at {', '.join(reasons)}")


def columns_of(schema: str | None) -> StructType | None:
    """The columns of a schema in Spark's DDL; needs a session. Raises typer.BadParameter if the schema is invalid."""
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    from cepheid.hosts.spark.failures import failure_message

    if schema is None:
        return None
    try:
        return cast("StructType", StructType.fromDDL(schema))
    except ParseException as error:
        reason = failure_message(error)
        raise typer.BadParameter(f"{schema!r} is no list of columns: {reason}", param_hint="--schema") from None


def read_stream(session: SparkSession, source: End, schema: StructType | None, nulls: Nulls) -> DataFrame:
    """The events of a source that `check_source` has accepted."""
    from cepheid.hosts.spark.records import READER_OPTIONS, file_events, json_events, with_malformed

    reader = session.readStream
    match source.kind:
        case "kafka":
            assert schema is not None
            given = {"startingOffsets": "earliest", **source.options}
            given |= {"kafka.bootstrap.servers": source.place, "subscribe": source.topic}
            return json_events(reader.format("kafka").options(**given).load(), schema, nulls)
        case "files":
            kind = _format(source)
            columns = schema or session.read.parquet(source.place).schema
            if kind == "parquet":
                return reader.schema(columns).format(kind).options(**source.options).load(source.place)
            given = {"header": "true"} if kind == "csv" else {}
            options = {**given, **source.options, **READER_OPTIONS}
            return file_events(
                reader.schema(with_malformed(columns)).format(kind).options(**options).load(source.place), nulls
            )
        case _:
            return reader.format("rate").options(rowsPerSecond=source.place, **source.options).load()


def written_to(rows: DataFrame, sink: End, show: Callable[[DataFrame], None]) -> DataStreamWriter:
    """The writer of the rows. For Kafka each row is a message with the match id as key and JSON as value. For standard
    output, `show` is called with the rows of each micro-batch.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

    match sink.kind:
        case "kafka":
            value = F.to_json(F.struct("*"), _TO_MICROSECONDS).alias("value")
            messages = rows.select(F.col("match_id").alias("key"), value)
            given = {**sink.options, "kafka.bootstrap.servers": sink.place, "topic": sink.topic}
            return messages.writeStream.format("kafka").options(**given)
        case "files":
            given = {**_TO_MICROSECONDS, **sink.options, "path": sink.place}
            return rows.writeStream.format(given.pop("format", "parquet")).options(**given)
        case _:
            return rows.writeStream.foreachBatch(lambda batch, _: show(batch))


def _has_columns(source: End) -> bool:
    """Whether the files themselves say which columns they have: in Parquet, once a file exists."""
    return _format(source) == "parquet" and any(Path(source.place).glob("*.parquet"))


def _format(source: End) -> str:
    """The format that `?format=` names; without it, the format of the existing files, by their extension."""
    if (given := source.options.get("format")) is not None:
        if given not in _FORMATS.values():
            raise typer.BadParameter(f"format {given!r} is none of parquet, json, csv", param_hint="--from")
        return given
    there = {_FORMATS[file.suffix] for file in Path(source.place).iterdir() if file.suffix in _FORMATS}
    if len(there) != 1:
        message = f"say which kind of files the folder gets: files://{source.place}?format=parquet, json or csv"
        raise typer.BadParameter(message, param_hint="--from")
    return there.pop()
