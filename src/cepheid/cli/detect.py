"""`cepheid detect`: events from files, matches into a file, a table or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json
from cepheid.cli.pictures.drawing import Drawing, check_columns, check_drawing, draw_matches
from cepheid.errors import with_noun
from cepheid.matchers.counts import ReadCounts
from cepheid.plan.lifted import RowsPer
from cepheid.requests.report import Report, certain_by_end_text
from cepheid.requests.request import Nulls, Workers

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from cepheid.lang.documents import AnyPattern
    from cepheid.lang.parameters import ParameterValue


@dataclass(frozen=True)
class _Detection:
    """The arguments of a command line."""

    pattern: Path
    parameters: Mapping[str, ParameterValue]
    events: o.EventOptions
    as_of: datetime | None
    nulls: Nulls
    rows_per: RowsPer
    unmatched: bool
    workers: Workers
    output: Path | None
    as_json: bool
    drawing: Drawing


@o.spread
def detect(
    pattern: o.PatternPath,
    events: Annotated[
        list[str],
        typer.Argument(help="Parquet, CSV or JSON lines files, or globs, of one schema.", show_default=False),
    ],
    *,
    time: Annotated[str | None, o.time_option("Required, unless --no-time, or --start and --end, are given.")] = None,
    wanted: o.Wanted,
    reading: o.Reading,
    bounds: o.Bounds,
    event_id: o.EventId = None,
    changes: o.Changes = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The time now, as 2026-01-31T12:00:00Z: later events do not count."),
    ] = None,
    nulls: o.OnNulls = "error",
    rows_per: o.RowsPerOption = "match",
    arrival: Annotated[bool, typer.Option("--arrival", hidden=True)] = False,
    unmatched: Annotated[
        bool, typer.Option("--unmatched", help="With --rows-per event: events in no match have a row, too.")
    ] = False,
    workers: o.Workers = "1",
    output: Annotated[
        Path | None, typer.Option(help="A .parquet, .csv or .jsonl file. Default: a table, or JSON lines when piped.")
    ] = None,
    as_json: o.AsJson = False,
    drawing: Drawing,
) -> None:
    """Find the matches of a pattern in events from files."""
    if arrival:
        message = "files have no times of arrival: name a column by --time, or give --no-time. cepheid stream has them"
        raise typer.BadParameter(message, param_hint="--arrival")
    if time is None and not reading.no_time and wanted.start is None and wanted.end is None:
        message = "name the column of the event time, or give --no-time; for an interval pattern give --start and --end"
        raise typer.BadParameter(message, param_hint="--time")
    if as_of is not None and reading.no_time:
        raise typer.BadParameter("without times there is no time now: leave out one of the two", param_hint="--as-of")
    if unmatched and rows_per != "event":
        raise typer.BadParameter(
            "rows of matches have no events without one: give --rows-per event, too", param_hint="--unmatched"
        )
    now, processes = o.as_of_from(as_of), o.workers_from(workers)
    options = o.EventOptions.of(events, time, wanted, reading, bounds)
    options = replace(options, event_id=event_id, changes=changes)
    parameters = o.parameters_from(wanted.parameter)
    with failures_reported(as_json=as_json, as_typed=options.as_typed):
        asked = (now, nulls, rows_per, unmatched, processes, output, as_json, drawing)
        _run(_Detection(pattern, parameters, options, *asked))


def _run(asked: _Detection) -> None:
    from rich.console import Console

    from cepheid.cli.events import doing, opened_events
    from cepheid.cli.files import check_output, event_files, write_matches
    from cepheid.cli.pattern_file import open_pattern

    errors = Console(stderr=True)
    start = perf_counter()
    opened = open_pattern(asked.pattern, asked.parameters, asked.events.type)
    check_drawing(asked.drawing, asked.events)
    if asked.output is not None:
        check_output(asked.output, [asked.pattern, *event_files(asked.events.files)])
    with opened.problems_located(), opened_events(asked.events, errors) as events:
        check_columns(asked.drawing, asked.events, events)
        matches, report = _matches(opened.pattern, asked, events, errors)
        if asked.output is not None:
            with doing(f"Writing {asked.output}", errors):
                write_matches(matches, asked.output)
        _say_counted(report, opened.pattern, by_id=asked.events.event_id is not None)
        if asked.as_json:  # one document in any case: of the matches, or of the failure
            draw_matches(asked.drawing, asked.events, events, matches)
        _show(matches, report, asked, perf_counter() - start)
        if not asked.as_json:  # a picture that fails loses no matches
            draw_matches(asked.drawing, asked.events, events, matches)


def _matches(pattern: AnyPattern, asked: _Detection, events: Any, errors: Console) -> tuple[pa.Table, Report]:
    from cepheid.cli.events import doing
    from cepheid.detect import detect as find

    report = Report()
    with doing(f"Looking for {pattern.name}", errors):
        arguments = asked.events.asked() | {"as_of": asked.as_of, "nulls": asked.nulls, "report": report}
        arguments |= {"rows_per": asked.rows_per, "unmatched": asked.unmatched, "workers": asked.workers}
        matches = find(events, pattern, **arguments)
        if asked.events.on == "spark":
            from cepheid.hosts.spark.failures import event_failures

            with event_failures():
                matches = matches.toArrow()
        return matches, report


def _say_counted(report: Report, pattern: AnyPattern, *, by_id: bool) -> None:
    """Reports dropped events and matches, also in a pipe, as rows may be missing because of them; and matches that an
    event which has not come yet may forbid. With `by_id` it counts rows, as an event may have two.
    """
    from cepheid.families import known_family_of

    counts = report.counts
    if counts.unusable:
        of = with_noun(counts.events, "row") if by_id else f"{counts.events:,}"
        sys.stderr.write(f"dropped: {counts.unusable}, of {of}\n")
    if counts.over_limits:
        sys.stderr.write(f"dropped: {counts.over_limits} over the limits\n")
    sys.stderr.writelines(f"warning: {part}\n" for part in report.unheld)
    if (by_end := report.certain_by_end) and known_family_of(pattern).ends_with_absence(pattern):
        them = "it" if by_end == 1 else "them"
        sys.stderr.write(f"{certain_by_end_text(by_end, counts.matches)}; --as-of leaves {them} out\n")


def _show(rows: pa.Table, report: Report, asked: _Detection, seconds: float) -> None:
    from rich.console import Console

    from cepheid.cli.rows import plain_rows, print_table, write_json_lines

    plain = asked.events.outputs is None and asked.rows_per == "match"
    output, what = asked.output, "matches" if plain else "rows"
    number = with_noun(rows.num_rows, "match" if plain else "row", plural=what)
    if asked.as_json:
        result: dict[str, Any] = {"ok": True, "exit_code": 0, "match_count": report.counts.matches}
        result |= {"counts": _counts_asked(report.counts, asked), "certain_by_end": report.certain_by_end}
        result["unheld"] = list(report.unheld)
        result |= {"output": str(output)} if output else {what: list(plain_rows(rows))}
        print_json({**result, "seconds": round(seconds, 3)})
    elif output is not None:
        if sys.stderr.isatty():
            sys.stderr.write(f"{number} in {output} ({seconds:.1f} s)\n")
    elif sys.stdout.isatty():
        print_table(rows, Console())
        sys.stderr.write(f"{number} ({seconds:.1f} s)\n")
    else:
        write_json_lines(rows, sys.stdout)


def _counts_asked(counts: ReadCounts, asked: _Detection) -> dict[str, int]:
    """The counts. The count of timeouts is included only if timeouts were requested."""
    shown: dict[str, int] = asdict(counts)
    if "timeouts" not in (asked.events.outputs or ()):
        shown.pop("timeouts", None)
    return shown
