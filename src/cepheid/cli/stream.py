"""`cepheid stream`: reads events from Kafka or files as they arrive; writes matches to Kafka, files or a pipe."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import FileProblem, Unavailable, failures_reported
from cepheid.cli.host.options import How
from cepheid.cli.stream_ends import (
    End,
    check_broker,
    check_source,
    columns_of,
    read_stream,
    sink_of,
    source_of,
)
from cepheid.requests.request import SHARDS

if TYPE_CHECKING:
    from cepheid.lang.parameters import ParameterValue

NO_CONNECTOR = (
    "kafka:// needs Spark's connector for Kafka, whose jars are not part of PySpark: `make kafka` copies them into the "
    "environment; or name them, or their folder, with --jars"
)


@dataclass(frozen=True)
class _Stream:
    """The arguments of a command line."""

    pattern: Path | None
    """None: the patterns are those in `folder`."""
    folder: Path | None
    old: How
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
    every: str | None
    jars: list[Path]
    budget: str | None


@o.spread
def stream(
    pattern: Annotated[
        Path | None, typer.Argument(help="A pattern file: YAML or JSON; or give --patterns.", show_default=False)
    ] = None,
    *,
    patterns: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder of pattern files in place of one. It may change while the stream runs: new files deploy "
            "patterns, changed ones replace versions, removed ones retire patterns.",
        ),
    ] = None,
    old: Annotated[
        How,
        typer.Option(
            help="With --patterns: what is open of a version that is replaced, or of a pattern that is retired, goes "
            "on, and starts nothing more (drain), or is forgotten (drop).",
        ),
    ] = "drain",
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
        str | None, o.time_option("For interval patterns: --start or --end, to which lateness applies.")
    ] = None,
    arrival: o.ArrivalOption = False,
    lateness: Annotated[
        str | None,
        typer.Option(
            help="How late an event may come, as '2 minutes'; matches are emitted that much later. Needed, but not "
            "with --arrival.",
            show_default=False,
        ),
    ] = None,
    wanted: o.Wanted,
    bounds: o.Bounds,
    event_id: o.EventId = None,
    open_for: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="With --event-id: how long an event may stay open, as '1 hour'. After that it is an error, or dropped "
            "with --nulls drop. Without it, events that no row closes are stored for ever.",
            show_default=False,
        ),
    ] = None,
    nulls: o.OnNulls = "error",
    shards: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="The number of parts that keys are divided into; fixed in a checkpoint."),
    ] = SHARDS,
    show_keys: Annotated[
        bool, typer.Option("--show-keys", help="Name the hottest keys in the live view; otherwise they are hashes.")
    ] = False,
    standbys: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="The number of further shards that may hold copies of hot keys; fixed in the checkpoint.",
        ),
    ] = 0,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="With --standbys: how long a shard may work on one key in a micro-batch, as '5 seconds'. Keys above "
            "80 % of it get copies. Without it, --every counts; without both, copies are only advised.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the query's state, from which it continues. Not needed with --to - for a pattern file."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after reading everything that is there now.")] = False,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="The least time between the starts of two micro-batches, as '10 seconds': fewer and larger ones cost "
            "less time in all. "
            "Without it, the next one begins when the last one has ended.",
        ),
    ] = None,
    jars: Annotated[
        list[Path] | None, typer.Option(help="A jar, or a folder of jars, of Spark's connector for Kafka; repeatable.")
    ] = None,
) -> None:
    """Find the matches of a pattern, or of several, in events as they arrive, on a local Spark.

    Ctrl-C ends it; with --checkpoint the same command continues from there.
    """
    _check_patterns(pattern, patterns, wanted)
    _check_times(time, wanted, lateness, patterns, arrival=arrival)
    options = replace(o.EventOptions.of([], time, wanted, o.Reading(on="spark"), bounds), arrival=arrival)
    parameters = o.parameters_from(wanted.parameter)
    arguments = options.asked() | {"lateness": lateness, "nulls": nulls, "shards": shards}
    arguments |= {"show_keys": show_keys, "standbys": standbys, "event_id": event_id, "open_for": open_for}
    _check_event_id(event_id, open_for, patterns)
    _check_standbys(standbys, budget, checkpoint, patterns)
    comes, goes = source_of(source), sink_of(sink)
    watermark = time if time is not None and time == wanted.end else None
    if checkpoint is None and (goes.kind != "-" or patterns is not None):
        why = "a restart" if patterns is None else "the stream with other patterns"
        raise typer.BadParameter(f"name a folder, so that {why} continues where {sink} ends", param_hint="--checkpoint")
    if once and comes.kind == "rate":
        raise typer.BadParameter("rate:// never ends: leave it out", param_hint="--once")
    _check_every(every, once=once)
    with failures_reported(as_json=False, as_typed=options.as_typed):
        _run(
            _Stream(
                pattern,
                patterns,
                old,
                parameters,
                comes,
                goes,
                schema,
                arguments,
                wanted.type_,
                watermark,
                checkpoint,
                once,
                every,
                jars or [],
                budget,
            )
        )


def _run(asked: _Stream) -> None:
    from rich.console import Console

    from cepheid.cli.events import spark_session
    from cepheid.cli.pattern_file import open_pattern

    errors = Console(stderr=True)
    opened = None if asked.pattern is None else open_pattern(asked.pattern, asked.parameters, asked.types)
    settings = _settings(asked)
    check_source(asked.source, asked.schema)
    if asked.sink.kind == "kafka":
        check_broker(asked.sink)
    with spark_session("cepheid stream", asked.arguments["time_zone"], errors, settings) as session:
        from cepheid.cli.stream_run import Ends, copying, follow, for_folder, for_pattern

        events = read_stream(session, asked.source, columns_of(asked.schema), asked.arguments["nulls"])
        arguments = dict(asked.arguments)
        if asked.watermark is not None:
            events = events.withWatermark(asked.watermark, arguments.pop("lateness"))
        ends = Ends(events, asked.sink, asked.checkpoint, once=asked.once, every=asked.every)
        if opened is not None:
            copies = copying(asked.budget) if arguments["standbys"] else None
            follow(for_pattern(opened, arguments), opened.pattern.name, ends, errors, copies)
        elif asked.folder is not None:
            begun = for_folder(asked.folder, asked.parameters, asked.old, arguments)
            follow(begun, asked.folder.name, ends, errors)


def _check_times(
    time: str | None, wanted: o.Wanted, lateness: str | None, folder: Path | None, *, arrival: bool
) -> None:
    has_columns = not (time is None and wanted.start is None and wanted.end is None)
    if arrival:
        if has_columns:
            message = "it is given together with columns of times: choose one"
            raise typer.BadParameter(message, param_hint="--arrival")
        if lateness is not None:
            raise typer.BadParameter("with --arrival no event is late: leave it out", param_hint="--lateness")
        if folder is not None:
            message = "with --patterns name the column of the event time by --time"
            raise typer.BadParameter(message, param_hint="--arrival")
        return
    if not has_columns:
        message = "name the column of the event time; for an interval pattern give --start and --end"
        raise typer.BadParameter(message, param_hint="--time")
    if lateness is None:
        message = "say how late an event of the stream may come, as '2 minutes'"
        raise typer.BadParameter(message, param_hint="--lateness")
    o.checked_length(lateness, "--lateness")


def _check_event_id(event_id: str | None, open_for: str | None, folder: Path | None) -> None:
    if event_id is not None and folder is not None:
        advice = "with --patterns no row opens an event, as the patterns may change: leave it out"
        raise typer.BadParameter(advice, param_hint="--event-id")
    if open_for is None:
        return
    if event_id is None:
        message = "without --event-id no row opens an event: leave it out, or name the column of ids with --event-id"
        raise typer.BadParameter(message, param_hint="--open-for")
    o.checked_length(open_for, "--open-for", or_zero=False)


def _check_patterns(pattern: Path | None, folder: Path | None, wanted: o.Wanted) -> None:
    if (pattern is None) == (folder is None):
        raise typer.BadParameter("give a pattern file, or a folder of them with --patterns", param_hint="PATTERN")
    if folder is None:
        return
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}", param_hint="--patterns")
    if wanted.measure:
        advice = "rows have the columns of several patterns, which have no measures: leave it out"
        raise typer.BadParameter(advice, param_hint="--measure")
    if wanted.type_ is not None:
        advice = "with --patterns each file names the column of types itself (taxonomy): leave it out"
        raise typer.BadParameter(advice, param_hint="--type")


def _check_standbys(standbys: int, budget: str | None, checkpoint: Path | None, folder: Path | None) -> None:
    if standbys and folder is not None:
        advice = "with --patterns keys have no copies, as the patterns may change: leave it out"
        raise typer.BadParameter(advice, param_hint="--standbys")
    if standbys and checkpoint is None:
        advice = "name a folder, beside whose logs it is stored which keys have copies"
        raise typer.BadParameter(advice, param_hint="--checkpoint")
    if budget is None:
        return
    if not standbys:
        raise typer.BadParameter("without --standbys no key gets a copy: leave it out", param_hint="--budget")
    o.checked_length(budget, "--budget", or_zero=False)


def _check_every(every: str | None, *, once: bool) -> None:
    if every is None:
        return
    if once:
        raise typer.BadParameter("with --once nothing is waited for: leave it out", param_hint="--every")
    o.checked_length(every, "--every", or_zero=False)


def _settings(asked: _Stream) -> dict[str, str]:
    from cepheid.hosts.spark.kafka import connector_jars, with_jars
    from cepheid.hosts.spark.stream.placement import partitions_for

    jars = [jar for given in asked.jars for jar in _jars_of(given)]
    if "kafka" in (asked.source.kind, asked.sink.kind) and not jars:
        jars = connector_jars()
        if not jars:
            raise Unavailable(NO_CONNECTOR)
    partitions = partitions_for(asked.arguments["shards"], os.cpu_count() or 1)
    return {"spark.sql.shuffle.partitions": str(partitions), **with_jars(jars)}


def _jars_of(given: Path) -> list[Path]:
    jars = sorted(given.glob("*.jar")) if given.is_dir() else [given]
    if not jars or not all(jar.is_file() for jar in jars):
        raise FileProblem(f"--jars {given}: this is neither a jar nor a folder with jars")
    return jars
