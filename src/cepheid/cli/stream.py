"""`cepheid stream`: reads events from Kafka or files as they arrive; writes matches to Kafka, files or a pipe."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import FileProblem, Unavailable, failures_reported
from cepheid.cli.stream_ends import (
    End,
    check_broker,
    check_source,
    columns_of,
    read_stream,
    sink_of,
    source_of,
    written_to,
)
from cepheid.requests.request import SHARDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import Console

    from cepheid.cli.stream_view import View
    from cepheid.lang.documents import AnyPattern
    from cepheid.lang.parameters import ParameterValue

NO_CONNECTOR = (
    "kafka:// needs Spark's connector for Kafka, whose jars are not part of PySpark: `make kafka` copies them into the "
    "environment; or name them, or their folder, with --jars"
)


@dataclass(frozen=True)
class _Stream:
    """The arguments of a command line."""

    pattern: Path
    parameters: Mapping[str, ParameterValue]
    source: End
    sink: End
    schema: str | None
    arguments: Mapping[str, Any]
    types: str | None
    watermark: str | None
    """The column to which lateness applies, if it is not the first of the times."""
    checkpoint: Path | None
    once: bool
    jars: list[Path]


@o.spread
def stream(
    pattern: o.PatternPath,
    *,
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="URL", help="kafka://host:port/topic, files://folder or rate://rows-per-second."
        ),
    ],
    sink: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            help="kafka://host:port/topic, files://folder, or - for JSON lines on standard output.",
        ),
    ] = "-",
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="DDL", help="The events' columns, as 'user STRING, at TIMESTAMP'. Not needed for Parquet."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="The column of the event time. For interval patterns: --start or --end, to which lateness applies.",
            show_default=False,
        ),
    ] = None,
    lateness: Annotated[
        str, typer.Option(help="How late an event may come, as '2 minutes'; matches are emitted that much later.")
    ],
    wanted: o.Wanted,
    bounds: o.Bounds,
    nulls: o.OnNulls = "error",
    shards: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="The number of parts that keys are divided into; fixed in a checkpoint."),
    ] = SHARDS,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="The folder of the query's state, from which it continues. Not needed with --to -."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after reading everything that is there now.")] = False,
    jars: Annotated[
        list[Path] | None, typer.Option(help="A jar, or a folder of jars, of Spark's connector for Kafka; repeatable.")
    ] = None,
) -> None:
    """Find the matches of a pattern in events as they arrive, on a local Spark.

    Ctrl-C ends it; with --checkpoint the same command continues from there.
    """
    if time is None and wanted.start is None and wanted.end is None:
        message = "name the column of the event time; for an interval pattern give --start and --end"
        raise typer.BadParameter(message, param_hint="--time")
    options, parameters = (
        o.EventOptions.of([], time, wanted, o.Reading(on="spark"), bounds),
        o.parameters_from(wanted.parameter),
    )
    arguments = options.asked() | {"lateness": lateness, "nulls": nulls, "shards": shards}
    comes, goes = source_of(source), sink_of(sink)
    watermark = time if time is not None and time == wanted.end else None
    if goes.kind != "-" and checkpoint is None:
        raise typer.BadParameter(
            f"name a folder, so that a restart continues where {sink} ends", param_hint="--checkpoint"
        )
    if once and comes.kind == "rate":
        raise typer.BadParameter("rate:// never ends: leave it out", param_hint="--once")
    o.checked_length(lateness, "--lateness")
    with failures_reported(as_json=False, as_typed=options.as_typed):
        _run(
            _Stream(
                pattern,
                parameters,
                comes,
                goes,
                schema,
                arguments,
                wanted.type_,
                watermark,
                checkpoint,
                once,
                jars or [],
            )
        )


def _run(asked: _Stream) -> None:
    from rich.console import Console

    from cepheid.cli.events import spark_session
    from cepheid.cli.pattern_file import open_pattern

    errors = Console(stderr=True)
    opened = open_pattern(asked.pattern, asked.parameters, asked.types)
    settings = _settings(asked)
    check_source(asked.source, asked.schema)
    if asked.sink.kind == "kafka":
        check_broker(asked.sink)
    with spark_session("cepheid stream", asked.arguments["time_zone"], errors, settings) as session:
        events = read_stream(session, asked.source, columns_of(asked.schema), asked.arguments["nulls"])
        with opened.problems_located():
            from cepheid.detect import detect

            arguments = dict(asked.arguments)
            if asked.watermark is not None:
                events = events.withWatermark(asked.watermark, arguments.pop("lateness"))
            rows = detect(events, opened.pattern, **arguments)
        _follow(rows, opened.pattern, asked, errors)


def _settings(asked: _Stream) -> dict[str, str]:
    from cepheid.hosts.spark.kafka import connector_jars, with_jars

    jars = [jar for given in asked.jars for jar in _jars_of(given)]
    if "kafka" in (asked.source.kind, asked.sink.kind) and not jars:
        jars = connector_jars()
        if not jars:
            raise Unavailable(NO_CONNECTOR)
    # Each partition is a state store with a commit in every micro-batch.
    return {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1), **with_jars(jars)}


def _jars_of(given: Path) -> list[Path]:
    jars = sorted(given.glob("*.jar")) if given.is_dir() else [given]
    if not jars or not all(jar.is_file() for jar in jars):
        raise FileProblem(f"--jars {given}: this is neither a jar nor a folder with jars")
    return jars


class _Lines:
    """Writes rows to standard output, until its reader closes it."""

    def __init__(self) -> None:
        self.closed = False

    def show(self, rows: DataFrame) -> None:
        from cepheid.cli.rows import write_json_lines

        try:
            write_json_lines(rows.toArrow(), sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:
            self.closed = True
            raise  # so that Spark does not commit a micro-batch whose rows were not read


def _follow(rows: DataFrame, pattern: AnyPattern, asked: _Stream, errors: Console) -> None:
    """Runs the query until it ends or is stopped."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

    from cepheid.cli.stream_view import NEWEST, View
    from cepheid.hosts.spark.failures import event_failures, failure_message

    view, lines, stopped = View(pattern.name, errors, asked.checkpoint), _Lines(), Event()
    if errors.is_terminal:
        rows = rows.observe(NEWEST, F.max_by(F.to_json(F.struct("*")), "detected_at").alias("row"))
    writer = written_to(rows, asked.sink, lines.show)
    if asked.checkpoint is not None:
        writer = writer.option("checkpointLocation", str(asked.checkpoint))
    if asked.once:
        writer = writer.trigger(availableNow=True)
    _on_signals(stopped)
    try:
        with view.shown(), event_failures():
            query = writer.start()
            _wait(query, view, lambda: stopped.is_set() or lines.closed)
    except PySparkException as error:
        if lines.closed:
            raise BrokenPipeError from None
        raise Unavailable(f"Spark ended the stream: {failure_message(error)}") from None
    if lines.closed:
        raise BrokenPipeError
    errors.print(view.summary(), highlight=False)


def _on_signals(stopped: Event) -> None:
    """Makes the first Ctrl-C set the event, and the second one end the process. PySpark's own handler would cancel the
    query's jobs, and the query would fail.
    """

    def stop(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _wait(query: StreamingQuery, view: View, is_stopped: Callable[[], bool]) -> None:
    while not query.awaitTermination(1) and not is_stopped():
        view.follow(query)
    query.stop()
    view.follow(query)
