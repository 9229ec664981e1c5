"""`cepheid detect`: events from files, matches into a file, a table or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from enum import Enum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cepheid.cli.failure import Unavailable, failures_reported, print_json

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console


class Host(Enum):
    """Where the detection runs."""

    PROCESS = "process"
    SPARK = "spark"


class Nulls(Enum):
    """What happens to events without a key or a time."""

    ERROR = "error"
    DROP = "drop"


class Inputs(NamedTuple):
    """The events of a command line and how they are read."""

    files: list[Path]
    time: str
    null_texts: list[str]
    time_zone: str


def measures_from(texts: list[str]) -> dict[str, str] | None:
    """`name=sql` texts as measures; none given: None."""
    measures: dict[str, str] = {}
    for text in texts:
        name, equals, sql = text.partition("=")
        if not (equals and name.strip() and sql.strip()):
            raise typer.BadParameter(f"{text!r} is not NAME=SQL, as in 'n=count(legs)'", param_hint="--measure")
        if name.strip() in measures:
            raise typer.BadParameter(f"the measure {name.strip()!r} is given twice", param_hint="--measure")
        measures[name.strip()] = sql.strip()
    return measures or None


def detect(
    pattern: Annotated[Path, typer.Argument(help="A pattern file: YAML or JSON.", show_default=False)],
    events: Annotated[
        list[str],
        typer.Argument(help="Parquet, CSV or JSON lines files, or globs, of one schema.", show_default=False),
    ],
    *,
    time: Annotated[str, typer.Option(help="The column of the event time.", show_default=False)],
    key: Annotated[
        list[str] | None,
        typer.Option(help="A key column; repeat for several. Without a key all events are one sequence."),
    ] = None,
    sequence: Annotated[str | None, typer.Option(help="The column that orders events of the same time.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="An event column that comes along; repeat for several. Default: all.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SQL", help="A flat output column instead of the stages' events; repeat for several."
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"],
            metavar="TIME",
            help="Time stands here: later events do not count.",
        ),
    ] = None,
    time_zone: Annotated[str, typer.Option(help="The zone of times that have none.")] = "UTC",
    nulls: Annotated[Nulls, typer.Option(help="Events without key or time are an error, or dropped.")] = Nulls.ERROR,
    null_text: Annotated[
        list[str] | None, typer.Option("--null", help="Text that is NULL in CSV, such as NA; repeat for several.")
    ] = None,
    on: Annotated[Host, typer.Option(help="In this process, or on a local Spark.")] = Host.PROCESS,
    output: Annotated[
        Path | None, typer.Option(help="A .parquet, .csv or .jsonl file. Default: a table, or JSON lines when piped.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the matches of a pattern in events from files."""
    measures = measures_from(measure or [])
    with failures_reported(as_json=as_json):
        from rich.console import Console

        from cepheid.cli.files import check_output, event_files, write_matches
        from cepheid.cli.pattern_file import open_pattern

        errors = Console(stderr=True)
        start = perf_counter()
        opened = open_pattern(pattern)
        if output is not None:
            check_output(output)
        inputs = Inputs(event_files(events), time, null_text or [], time_zone)
        options = {
            "key": key or [],
            "time": time,
            "sequence": sequence,
            "columns": columns,
            "measures": measures,
            "as_of": as_of,
            "time_zone": time_zone,
            "nulls": nulls.value,
        }
        with opened.problems_located():
            run = _on_spark if on is Host.SPARK else _in_process
            matches = run(opened.pattern, inputs, options, errors)
        if output is not None:
            with _doing(f"Writing {output}", errors):
                write_matches(matches, output)
        _show(matches, output, perf_counter() - start, as_json=as_json)


def _in_process(pattern: Any, inputs: Inputs, options: dict[str, Any], errors: Console) -> pa.Table:
    from cepheid.cli.files import read_events
    from cepheid.detect import detect as find

    with _doing("Reading events", errors):
        events = read_events(inputs.files, time=inputs.time, null_texts=inputs.null_texts)
    with _doing(f"Looking for {pattern.name} in {events.num_rows:,} events", errors):
        return find(events, pattern, **options)


def _on_spark(pattern: Any, inputs: Inputs, options: dict[str, Any], errors: Console) -> pa.Table:
    from cepheid.cli.files import read_events_on_spark

    with _session(inputs.time_zone, errors) as session:
        with _doing("Reading events", errors):
            events = read_events_on_spark(session, inputs.files, time=inputs.time, null_texts=inputs.null_texts)
        with _doing(f"Looking for {pattern.name}", errors):
            from cepheid.detect import detect as find

            return find(events, pattern, **options).toArrow()


@contextmanager
def _session(time_zone: str, errors: Console) -> Iterator[Any]:
    """A local Spark session, stopped at the end."""
    from cepheid.hosts.java import JavaMissing
    from cepheid.hosts.spark_session import local_session

    try:
        with _doing("Starting Spark", errors):
            session = local_session("cepheid detect", time_zone=time_zone)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise Unavailable("Spark is not installed: pip install 'cepheid[spark]', or leave out --on spark") from None
    except JavaMissing as error:
        raise Unavailable(str(error)) from None
    try:
        yield session
    finally:
        session.stop()


def _doing(what: str, errors: Console) -> AbstractContextManager[Any]:
    """Says on a terminal what takes so long; a pipe is kept quiet."""
    return errors.status(what) if errors.is_terminal else nullcontext()


def _show(matches: pa.Table, output: Path | None, seconds: float, *, as_json: bool) -> None:
    from rich.console import Console

    from cepheid.cli.rows import plain_rows, print_table, write_json_lines

    if as_json:
        result: dict[str, Any] = {"ok": True, "exit_code": 0, "match_count": matches.num_rows}
        result |= {"output": str(output)} if output else {"matches": list(plain_rows(matches))}
        print_json({**result, "seconds": round(seconds, 3)})
    elif output is not None:
        if sys.stderr.isatty():
            sys.stderr.write(f"{matches.num_rows:,} matches in {output} ({seconds:.1f} s)\n")
    elif sys.stdout.isatty():
        print_table(matches, Console())
        sys.stderr.write(f"{matches.num_rows:,} matches ({seconds:.1f} s)\n")
    else:
        write_json_lines(matches, sys.stdout)
