"""`cepheid why`: why events from files did not match a pattern."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json
from cepheid.errors import PatternError
from cepheid.requests.request import Nulls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.lang.documents import AnyPattern
    from cepheid.output.near_misses import NearMisses
    from cepheid.output.trace import Trace
    from cepheid.output.why import Why


@o.spread
def why(
    pattern: o.PatternPath,
    events: Annotated[
        list[str],
        typer.Argument(help="Parquet, CSV or JSON lines files, or globs, of one schema.", show_default=False),
    ],
    *,
    time: Annotated[str | None, o.time_option("Required, unless --no-time is given.")] = None,
    key: o.Key = None,
    sequence: o.Sequence = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="An event column that `detect` includes; repeat for several. Default: all. Without --sequence, "
            "these columns order events of equal time."
        ),
    ] = None,
    type_: o.TypeColumn = None,
    parameter: o.GivenParameters = None,
    time_zone: o.TimeZone = "UTC",
    reading: o.Reading,
    bounds: o.Bounds,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The time now, as 2026-01-31T12:00:00Z: later events do not count."),
    ] = None,
    nulls: o.OnNulls = "error",
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="Show one key step by step: its value; repeat for each column of the key."
        ),
    ] = None,
    near: Annotated[
        bool, typer.Option("--near", help="Add the starts that would match with one change of the pattern.")
    ] = False,
    as_json: o.AsJson = False,
) -> None:
    """Say why events did not match: how far partial matches came, and what ended those that became no match.

    The pattern must be one of stages.
    """
    wanted = o.Wanted(
        key=key, sequence=sequence, columns=columns, type_=type_, parameter=parameter, time_zone=time_zone
    )
    options = o.EventOptions.of(events, time, wanted, reading, bounds)
    now = o.as_of_from(as_of)
    parameters, traced = (
        o.parameters_from(parameter),
        o.named_sql(trace, "--trace", "COLUMN=VALUE, as in 'tailnum=N228JB'"),
    )
    with failures_reported(as_json=as_json, as_typed=options.as_typed):
        from cepheid.cli.pattern_file import open_pattern

        opened = open_pattern(pattern, parameters, type_)
        _check_stages(opened.pattern)
        if time is None and not reading.no_time:
            raise typer.BadParameter("name the column of the event time, or give --no-time", param_hint="--time")
        with opened.problems_located():
            found, changes = _answers(opened.pattern, options, _Question(now, nulls, traced, near))
        if as_json:
            more = {} if changes is None else {"near": changes.to_dict()}
            print_json({"ok": True, "exit_code": 0, **found.to_dict(), **more})
        else:
            sys.stdout.write(f"{found}\n" if changes is None else f"{found}\n{changes}\n")


def _check_stages(pattern: AnyPattern) -> None:
    """Raises PatternError for a pattern of another kind."""
    from cepheid.families import known_family_of

    family = known_family_of(pattern)
    if not family.explains_misses:
        raise PatternError(f"why explains patterns of stages; {pattern.name!r} is a pattern of {family.kind}")


class _Question(NamedTuple):
    """What is asked about the events."""

    as_of: datetime | None
    nulls: Nulls
    traced: Mapping[str, str] | None
    """The key to trace; None: the funnel is asked for."""
    near: bool


def _answers(pattern: Any, options: o.EventOptions, question: _Question) -> tuple[Why | Trace, NearMisses | None]:
    from rich.console import Console

    from cepheid.cli.events import doing, opened_events
    from cepheid.detect import why as ask

    errors = Console(stderr=True)
    given = {name: value for name, value in options.asked().items() if name not in ("measures", "outputs")}
    with opened_events(options, errors) as events, doing(f"Looking for {pattern.name}", errors):
        found = ask(events, pattern, **given, as_of=question.as_of, nulls=question.nulls)
        changes = found.changes if question.near else None
        return found if question.traced is None else found.trace(question.traced), changes
