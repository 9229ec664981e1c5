"""`--plot`: a picture of the matches that a command has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepheid.cli.failure import FileProblem, require_installed

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.cli.options import EventOptions

MOST_KEYS = 30
"""The most keys whose matches are drawn as a timeline, if nothing is chosen."""


@dataclass(frozen=True)
class Drawing:
    """Options of a command that draws what it finds."""

    plot: Annotated[
        Path | None,
        typer.Option(
            help="Also draw the matches, as .html, .png or .svg: over time, or in an overview if they have many keys."
        ),
    ] = None
    plot_y: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of numbers to draw; repeat for several.")
    ] = None
    plot_lanes: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column whose values are lanes.")] = None
    plot_only: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Draw only this key, or this match_id; repeat for several."),
    ] = None

    def __post_init__(self) -> None:
        if self.plot is None and any((self.plot_y, self.plot_lanes, self.plot_only)):
            raise typer.BadParameter("it is for a picture: give --plot FILE, too", param_hint="--plot-y, …")

    @property
    def only(self) -> Mapping[str, list[str]]:
        """The values that are drawn, by column."""
        found: dict[str, list[str]] = {}
        for text in self.plot_only or []:
            name, equals, value = text.partition("=")
            if not (equals and name.strip()):
                raise typer.BadParameter(f"{text!r} is not COLUMN=VALUE, as in symbol=IBM", param_hint="--plot-only")
            found.setdefault(name.strip(), []).append(value)
        return found


def check_drawing(drawing: Drawing, options: EventOptions) -> None:
    """Checks, before the work is done, that the picture can be drawn and written.

    Raises:
        BadParameter: the kind of file is unknown, or there are no times.
        FileProblem: the folder of the file does not exist.
        Unavailable: the extra is not installed.
    """
    if drawing.plot is None:
        return
    require_installed("--plot", "altair", "vl_convert", extra="plot")
    from cepheid.errors import SchemaError
    from cepheid.plotting.picture import check_kind

    try:
        check_kind(drawing.plot)
    except SchemaError as error:
        raise typer.BadParameter(str(error), param_hint="--plot") from None
    if not drawing.plot.parent.is_dir():
        raise FileProblem(f"the folder {drawing.plot.parent} does not exist: make it first, or choose another --plot")
    if not options.times:
        raise typer.BadParameter("a picture needs times: give --time, or --start and --end", param_hint="--plot")
    _ = drawing.only


def check_columns(drawing: Drawing, options: EventOptions, events: Any) -> None:
    """Checks, before the work is done, the columns that only the picture needs. Those of Spark are checked with it.

    Raises:
        SchemaError: the events lack one, or it has no numbers.
    """
    if drawing.plot is None or options.on == "spark" or not (drawing.plot_y or drawing.plot_lanes):
        return
    if not {*options.times} <= {*events.schema.names}:
        return  # detect reports it
    from cepheid.plotting.request import PlotRequest, check

    asked = PlotRequest(
        time=tuple(options.times),
        key=(),
        y=tuple(drawing.plot_y or ()),
        lanes=drawing.plot_lanes,
        planned=(),
        label=None,
        columns=None,
        only={},
        time_zone=None,
        title=None,
        subtitle=None,
    )
    check(asked, events.schema)


def draw_matches(drawing: Drawing, options: EventOptions, events: Any, matches: pa.Table) -> None:
    """Writes the picture that the options ask for, if they do."""
    if drawing.plot is None:
        return
    from cepheid.plotting.plot import plot

    key = options.key or []
    chosen = drawing.plot_y or drawing.plot_lanes or drawing.only
    overview = not chosen and key and matches.select(key).group_by(key).aggregate([]).num_rows > MOST_KEYS
    picture = plot(
        None if overview else events,
        matches,
        time=options.times,
        y=drawing.plot_y,
        key=key,
        lanes=drawing.plot_lanes,
        only=drawing.only,
    )
    picture.save(drawing.plot)
