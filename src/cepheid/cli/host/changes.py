"""`cepheid host input`, `deploy`, `retire` and `advance`: they change a host, also while another process runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported
from cepheid.cli.host.opened import opened
from cepheid.cli.host.options import How, PatternName, StoreUrl
from cepheid.cli.host.shown import say
from cepheid.requests.arrival import ARRIVAL
from cepheid.requests.request import Nulls

if TYPE_CHECKING:
    from cepheid.hosts.durable.state import Deployment, MatchesOf

Promote = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=SQL", help="A further column of the table of open partial matches; repeat for several."),
]


def input_(
    store: StoreUrl,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the input.", show_default=False)],
    *,
    schema: Annotated[
        str | None, typer.Option(metavar="DDL", help="The events' columns, as 'user STRING, at TIMESTAMP'.")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(metavar="FILE", help="In place of --schema: the columns of this file of events.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column of the event time.", show_default=False)] = None,
    arrival: o.ArrivalOption = False,
    sequence: o.Sequence = None,
    lateness: Annotated[
        str, typer.Option(help="How far an event may be before the latest one, as '2 minutes'.")
    ] = "0 seconds",
    time_zone: o.TimeZone = "UTC",
    nulls: Annotated[Nulls, typer.Option(help="Events without a key or time are an error, or are dropped.")] = "error",
    keep: Annotated[
        str, typer.Option(help="For how long events are kept, so that deploy can take them with --since.")
    ] = "0 seconds",
    as_json: o.AsJson = False,
) -> None:
    """Declare a source of events. The store is made if there is none."""
    from cepheid.cli.host.columns import columns_from

    if (time is None) == (not arrival):
        raise typer.BadParameter("name the column of the event time, or give --arrival", param_hint="--time")
    o.checked_length(lateness, "--lateness")
    o.checked_length(keep, "--keep")
    with failures_reported(as_json=as_json, as_typed=o.arrival_as_typed if arrival else _time_as_typed):
        columns = columns_from(schema, like, [] if time is None else [time])
        arguments: dict[str, Any] = {
            "time": ARRIVAL if time is None else time,
            "sequence": sequence,
            "lateness": lateness,
            "time_zone": time_zone,
        }
        with opened(store, makes=True) as host:
            host.input(name, columns, **arguments, nulls=nulls, keep=keep)
        say({"input": name}, f"input {name}", as_json=as_json)


@o.spread
def deploy(
    store: StoreUrl,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Pattern files.", show_default=False)],
    *,
    source: Annotated[
        str | None, typer.Option("--input", metavar="NAME", help="The input with the events.", show_default=False)
    ] = None,
    matches_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Take the matches of this pattern as events; repeat for several. --input adds its events.",
        ),
    ] = None,
    key: o.Key = None,
    columns: o.Columns = None,
    measure: o.Measure = None,
    promote: Promote = None,
    outputs: o.Outputs = None,
    rows_per: o.RowsPerOption = "match",
    parameter: o.GivenParameters = None,
    type_: o.TypeColumn = None,
    bounds: o.Bounds,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Take the kept events from this time on first. A time without a zone is read in the zone of the "
            "input.",
        ),
    ] = None,
    old: Annotated[
        How | None,
        typer.Option(
            help="What becomes of open partial matches of the version that runs: it goes on with them (drain), or they "
            "are forgotten (drop).",
            show_default=False,
        ),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Deploy patterns, one after the other: they take the events from now on. All files are read before the first
    pattern is deployed. If a pattern is refused, those before it stay deployed.
    """
    given = _input_of(source, matches_of)
    parameters = o.parameters_from(parameter)
    arguments = {
        "input": given,
        "key": key,
        "columns": columns,
        "measures": o.named_sql(measure, "--measure"),
        "promote": o.named_sql(promote, "--promote"),
        "outputs": o.outputs_from(outputs) or "matches",
        "rows_per": rows_per,
        "limits": o.limits_of(bounds),
        "since": since,
        "old": old,
    }
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern

        patterns = [open_pattern(file, parameters, type_) for file in files]
        deployed: list[Deployment] = []
        try:
            with opened(store) as host:
                for each in patterns:
                    with each.problems_located():
                        deployed.append(host.deploy(each.pattern, **arguments))
        finally:
            if deployed:  # also those before one that was refused
                lines = [f"deployed {one.name}, version {one.version}" for one in deployed]
                result = [{"name": one.name, "version": one.version, "number": one.number} for one in deployed]
                say({"deployed": result}, "\n".join(lines), as_json=as_json)


def retire(
    store: StoreUrl,
    name: PatternName,
    *,
    how: Annotated[
        How,
        typer.Option(
            help="It starts nothing more, and goes on until nothing is open (drain), or what is open is forgotten "
            "(drop).",
            show_default=False,
        ),
    ],
    as_json: o.AsJson = False,
) -> None:
    """End a pattern. Its tables stay."""
    with failures_reported(as_json=as_json), opened(store) as host:
        host.retire(name, how=how)
        say({"retired": name}, f"retired {name}", as_json=as_json)


def advance(
    store: StoreUrl,
    time: Annotated[str, typer.Argument(metavar="TIME", help="As 2026-01-31T12:00:00Z.", show_default=False)],
    *,
    source: Annotated[
        str | None, typer.Option("--input", metavar="NAME", help="The input. Default: all.", show_default=False)
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Advance the time of inputs that have no events now: deadlines up to it expire, and events up to it are late."""
    with failures_reported(as_json=as_json, as_typed=_as_typed), opened(store) as host:
        host.advance_time(time, input=source)
        say({"time": time}, f"time is {time}", as_json=as_json)


def _time_as_typed(message: str) -> str:
    """The message; one about the type of the time column with advice about --schema."""
    return message.replace("or DATE: cast it", "or DATE: give it such a type, in --schema or in the file of --like")


def _as_typed(message: str) -> str:
    """The message, which may be about the argument `time`, with its name on the command line."""
    return f"TIME: {fault}" if (fault := message.removeprefix("time: ")) != message else message


def _input_of(source: str | None, matches_of: list[str] | None) -> str | MatchesOf:
    from cepheid.hosts.durable.state import MatchesOf

    if matches_of:
        return MatchesOf(tuple(matches_of), source)
    if source is None:
        raise typer.BadParameter("name the input of the patterns, or --matches-of", param_hint="--input")
    return source
