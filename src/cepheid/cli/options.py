"""The options that commands share: which events are meant and how they are read. Also the checked values of options.

`check` and `explain` take the same options as `detect`, so that they judge the events that it would get. A group of
shared options is one dataclass in the signature of a command; `spread` makes an option of each of its fields.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

import typer

from cepheid.cli.text_files.text_format import TextFormat
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import MOST, Limits, OnLimit
from cepheid.requests.arguments import checked_as_of, checked_workers, checked_zone
from cepheid.requests.arrival import ARRIVAL, ARRIVED, Arrival
from cepheid.requests.request import Nulls, Resolution
from cepheid.requests.request import Workers as NumberOfWorkers
from cepheid.requests.row_order import ROW_ORDER

if TYPE_CHECKING:
    from cepheid.lang.parameters import ParameterValue

T = TypeVar("T")

Host: TypeAlias = Literal["process", "spark"]
"""Where the detection runs."""

PatternPath = Annotated[Path, typer.Argument(help="A pattern file: YAML or JSON.", show_default=False)]
OptionalEvents = Annotated[
    list[str] | None, typer.Option(help="Check names and types against this file's columns; repeat for several.")
]


def time_option(use: str) -> Any:
    """The option for the column of the event time. `use` says what else there is to know about it."""
    return typer.Option(help=f"The column of the event time. {use}", show_default=False)


OptionalTime = Annotated[str | None, time_option("Default: the first timestamp.")]
Start = Annotated[
    str | None, typer.Option(help="For interval patterns: the column in which an event starts.", show_default=False)
]
End = Annotated[
    str | None, typer.Option(help="For interval patterns: the column in which an event ends.", show_default=False)
]
TypeColumn = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="COLUMN",
        help="The column that holds an event's type, if the pattern asks for types. Default: its taxonomy's.",
        show_default=False,
    ),
]
NoTime = Annotated[
    bool,
    typer.Option(
        "--no-time", help="Processing order: events count in the order of --sequence or of the rows; no time passes."
    ),
]
ArrivalOption = Annotated[
    bool,
    typer.Option(
        "--arrival", help="In place of --time: the time of an event is that of its arrival, in the column arrived_at."
    ),
]
Key = Annotated[
    list[str] | None,
    typer.Option(help="A key column; repeat for several. Without a key all events are one sequence."),
]
Sequence = Annotated[
    list[str] | None,
    typer.Option(
        help="A column that orders events of the same time, or an item of ORDER BY, such as 'priority DESC'; repeat "
        "for several."
    ),
]
Columns = Annotated[
    list[str] | None, typer.Option(help="An event column to include in the output; repeat for several. Default: all.")
]
Measure = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=SQL", help="A flat output column instead of the stages' events; repeat for several."),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="matches, timeouts, no_match, inconsistent or late; several, separated by commas, come in one table. "
        "Default: matches alone.",
    ),
]
EventId = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="For intervals: what identifies an event. A row without an end opens it, a later one closes it.",
    ),
]
Changes = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="With --event-id: what a row does to its event. 'insertion' inserts, closes or revises it, 'retraction' "
        "withdraws it.",
    ),
]
RowsPerOption = Annotated[RowsPer, typer.Option(help="One row for each match, or for each event of each match.")]
MaxPartialMatches = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=MOST, help="How many partial matches of a key may be open.", show_default=False
    ),
]
MaxMatchesPerEvent = Annotated[
    int, typer.Option(metavar="N", min=1, max=MOST, help="How many matches one event or deadline may complete.")
]
OnLimitReached = Annotated[
    OnLimit,
    typer.Option(
        "--on-limit", help="What happens above these limits: an error, or the oldest are dropped and counted."
    ),
]
GivenParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "--param",
        metavar="NAME=VALUE",
        help="A value for $NAME in the pattern: a number, true, false, text, DATE '2026-01-31', or a list: "
        "[a, b] or @watchlist.csv:column; repeat for several.",
    ),
]


def _known_zone(name: str) -> str:
    _checked("--time-zone", checked_zone, name)
    return name


TimeZone = Annotated[str, typer.Option(help="The time zone of times that have none.", callback=_known_zone)]
OnNulls = Annotated[Nulls, typer.Option("--nulls", help="Events without a key or time are an error, or are dropped.")]
NullTexts = Annotated[
    list[str] | None, typer.Option("--null", help="A text that stands for NULL in CSV, such as NA; repeat for several.")
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="What separates the values of CSV, such as ';' or tab. Default: a comma."),
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="The encoding of CSV, such as latin-1. Default: UTF-8.")
]
TimeFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="How CSV and JSON lines write times, such as '%d.%m.%Y %H:%M'. Without a time of day they are dates. "
        "Default: ISO 8601.",
    ),
]
InRowOrder = Annotated[
    bool, typer.Option("--row-order", help="Events of the same time are in the order of the rows; no --sequence then.")
]
TimeResolution = Annotated[
    Resolution | None,
    typer.Option(help="us: times in nanoseconds are cut to microseconds, and ordered by the rest.", show_default=False),
]
Workers = Annotated[str, typer.Option(metavar="N", help="How many workers divide the work; auto: as many as pay.")]
On = Annotated[Host, typer.Option(help="In this process, or on a local Spark.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
MOST_MATCHES = Limits().max_matches_per_event


@dataclass(frozen=True)
class Against:
    """Options of commands that may check a pattern against events."""

    events: OptionalEvents = None
    time: OptionalTime = None
    event_id: EventId = None
    changes: Changes = None

    def __post_init__(self) -> None:
        for option, column in (("--event-id", self.event_id), ("--changes", self.changes)):
            if column is not None and not self.events:
                message = "it is one of the events' columns: name a file of them with --events"
                raise typer.BadParameter(message, param_hint=option)


@dataclass(frozen=True)
class Wanted:
    """Options of all commands that look for a pattern: the meaning of the columns, and the form of the result."""

    start: Start = None
    end: End = None
    type_: TypeColumn = None
    key: Key = None
    sequence: Sequence = None
    columns: Columns = None
    measure: Measure = None
    outputs: Outputs = None
    parameter: GivenParameters = None
    time_zone: TimeZone = "UTC"


@dataclass(frozen=True)
class Written:
    """Options of commands that read files: how these are written, and how their events are ordered."""

    no_time: NoTime = False
    null_text: NullTexts = None
    separator: Separator = None
    encoding: Encoding = None
    time_format: TimeFormat = None
    row_order: InRowOrder = False
    time_resolution: TimeResolution = None


@dataclass(frozen=True)
class Reading(Written):
    """Options of commands that read files for any host."""

    on: On = "process"


@dataclass(frozen=True)
class Bounds:
    """Options of commands that bound the number of open partial matches and of matches per event."""

    max_partial_matches: MaxPartialMatches = None
    max_matches_per_event: MaxMatchesPerEvent = MOST_MATCHES
    on_limit: OnLimitReached = "raise"


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with an option for each field of the dataclasses in its signature. Typer itself accepts only single
    values.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def taking_options(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in fields(group)})
        command(**given)

    def parameters() -> Iterator[Parameter]:
        for name, parameter in signature(command).parameters.items():
            if name not in groups:
                yield parameter.replace(annotation=hints[name])
                continue
            types = get_type_hints(groups[name], include_extras=True)
            for option in fields(groups[name]):
                yield Parameter(option.name, parameter.kind, default=option.default, annotation=types[option.name])

    taking_options.__signature__ = Signature([*parameters()])  # type: ignore[attr-defined] # read by inspect
    return taking_options


@dataclass(frozen=True)
class EventOptions:
    """The events that a command line names, how they are read, and the requested output."""

    files: list[str]
    time: str | None
    """None if it was not given; with `no_time` that means processing order."""
    key: list[str] | None
    sequence: list[str] | None
    columns: list[str] | None
    measures: Mapping[str, str] | None
    time_zone: str
    text_format: TextFormat
    on: Host
    no_time: bool = False
    outputs: tuple[OutputName, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    start: str | None = None
    end: str | None = None
    type: str | None = None
    row_order: bool = False
    time_resolution: Resolution | None = None
    arrival: bool = False
    """Whether the time of an event is that of its arrival."""
    event_id: str | None = None
    """For intervals: the column that identifies an event."""
    changes: str | None = None
    """With `event_id`: the column that says what a row does to its event."""

    @staticmethod
    def of(
        files: list[str] | None, time: str | None, wanted: Wanted, reading: Reading, bounds: Bounds | None = None
    ) -> EventOptions:
        """The values of a command's options; raises BadParameter if one is invalid."""
        bounds = bounds or Bounds()
        return EventOptions(
            files=files or [],
            time=time,
            key=wanted.key,
            sequence=wanted.sequence,
            columns=wanted.columns,
            measures=named_sql(wanted.measure, "--measure"),
            time_zone=wanted.time_zone,
            text_format=text_format_of(reading),
            on=reading.on,
            no_time=reading.no_time,
            row_order=reading.row_order,
            time_resolution=reading.time_resolution,
            outputs=outputs_from(wanted.outputs),
            limits=limits_of(bounds),
            start=wanted.start,
            end=wanted.end,
            type=wanted.type_,
        )

    def __post_init__(self) -> None:
        if self.no_time and self.time is not None:
            raise typer.BadParameter("it is given together with --time: choose one", param_hint="--no-time")
        if self.row_order and self.sequence:
            raise typer.BadParameter("it is given together with --sequence: choose one", param_hint="--row-order")
        if self.text_format.time_format is not None and not self.times:
            raise typer.BadParameter("name the columns with these times by --time", param_hint="--time-format")
        ends = [name for name in (self.start, self.end) if name is not None]
        if len(ends) == 1:
            raise typer.BadParameter("they belong together: give both, or --time", param_hint="--start, --end")
        if ends and self.no_time:
            raise typer.BadParameter("it is given together with --start and --end: choose one", param_hint="--no-time")
        if ends and self.time is not None and self.time not in ends:
            raise typer.BadParameter(
                f"it is {self.time!r}, which is neither --start nor --end: leave it out", param_hint="--time"
            )

    @property
    def times(self) -> list[str]:
        """The columns of times that the options name."""
        return [name for name in (self.time, self.start, self.end) if name is not None]

    @property
    def _time(self) -> str | tuple[str, str] | Arrival | EllipsisType | None:
        if self.arrival:
            return ARRIVAL
        if self.start is not None and self.end is not None:
            return self.start, self.end
        return None if self.no_time else self.time or ...

    def as_typed(self, message: str) -> str:
        """The message; one about the argument `time` with the options that were typed in place of --time."""
        if self.arrival:
            return arrival_as_typed(message)
        fault = message.removeprefix("time: ")
        if fault == message:
            return message
        if self.no_time:
            return f"--no-time: {fault.removesuffix(', got None')}"
        for option, name in (("--start", self.start), ("--end", self.end)):
            if name is not None and fault.startswith((f"no column named {name!r}", f"{name!r} is ")):
                return f"{option}: {fault}"
        both = f", got {(self.start, self.end)!r}"
        return f"--start, --end: {fault.removesuffix(both)} by --time" if fault.endswith(both) else message

    def asked(self) -> dict[str, Any]:
        """The options as arguments of `cepheid.detect`, except for the events."""
        return {
            "time": self._time,
            "key": self.key,
            "sequence": ROW_ORDER if self.row_order else self.sequence,
            "columns": self.columns,
            "measures": self.measures,
            "outputs": self.outputs,
            "limits": self.limits,
            "time_zone": self.time_zone,
            **({} if self.time_resolution is None else {"time_resolution": self.time_resolution}),
            **({} if self.event_id is None else {"event_id": self.event_id}),
            **({} if self.changes is None else {"changes": self.changes}),
        }


def arrival_as_typed(message: str) -> str:
    """The message, with --arrival where it is about `time=ARRIVAL`."""
    message = message.replace("time=ARRIVAL", "--arrival").replace(f", as in time={ARRIVED!r}", f" by --time {ARRIVED}")
    return f"--arrival: {fault}" if (fault := message.removeprefix("time: ")) != message else message


def text_format_of(reading: Reading) -> TextFormat:
    """How text files are written; raises BadParameter if an option is invalid."""
    separator = {"tab": "\t", "\\t": "\t"}.get(reading.separator or "", reading.separator)
    if separator is not None and len(separator) != 1:
        raise typer.BadParameter(f"one character, or tab, is expected, got {separator!r}", param_hint="--separator")
    if reading.encoding is not None:
        try:
            codecs.lookup(reading.encoding)
        except LookupError:
            raise typer.BadParameter(
                f"{reading.encoding!r} is not known; use a name such as latin-1, cp1252 or utf-16",
                param_hint="--encoding",
            ) from None
    if reading.time_format is not None:
        _check_time_format(reading.time_format)
    return TextFormat(tuple(reading.null_text or ()), separator, reading.encoding, reading.time_format)


def _check_time_format(written: str) -> None:
    import pyarrow as pa

    from cepheid.errors import SchemaError
    from cepheid.hosts.in_process.event_times.texts import times_of_texts

    try:
        times_of_texts(pa.chunked_array([pa.array([], pa.string())]), written)
    except SchemaError as error:
        raise typer.BadParameter(str(error).partition(": ")[2], param_hint="--time-format") from None


def workers_from(text: str) -> NumberOfWorkers:
    """The number of workers, or "auto"; raises BadParameter for any other text."""
    return _checked("--workers", checked_workers, int(text) if text.isdecimal() else text)


def as_of_from(text: str | None) -> datetime | None:
    """The time; raises BadParameter for other text."""
    return None if text is None else _checked("--as-of", checked_as_of, text)


def _checked(option: str, check: Callable[[object, list[str]], T], value: object) -> T:
    """The checked value; raises BadParameter with what the check finds."""
    faults: list[str] = []
    checked = check(value, faults)
    if faults:
        raise typer.BadParameter(faults[0].partition(": ")[2], param_hint=option)
    return checked


def limits_of(bounds: Bounds) -> Limits:
    return Limits(bounds.max_partial_matches, bounds.max_matches_per_event, bounds.on_limit)


def named_sql(
    texts: list[str] | None, option: str, form: str = "NAME=SQL, as in 'n=count(legs)'"
) -> dict[str, str] | None:
    """Columns from `name=sql` texts, as for measures; None without any."""
    columns: dict[str, str] = {}
    for text in texts or []:
        name, equals, sql = text.partition("=")
        if not (equals and name.strip() and sql.strip()):
            raise typer.BadParameter(f"{text!r} is not {form}", param_hint=option)
        if name.strip() in columns:
            what = option.removeprefix("--")
            raise typer.BadParameter(f"the {what} {name.strip()!r} is given twice", param_hint=option)
        columns[name.strip()] = sql.strip()
    return columns or None


def outputs_from(text: str | None) -> tuple[OutputName, ...] | None:
    """The outputs from their names, separated by commas; None if not given."""
    if text is None:
        return None
    named = [name.strip() for name in text.split(",")]
    if unknown := [name for name in named if name not in get_args(OutputName)]:
        allowed = ", ".join(get_args(OutputName))
        raise typer.BadParameter(f"{unknown[0]!r} is none of {allowed}", param_hint="--outputs")
    return tuple(name for name in get_args(OutputName) if name in named)


def parameters_from(texts: list[str] | None) -> dict[str, ParameterValue]:
    """`name=value` texts as values of parameters; the value may be empty."""
    values: dict[str, ParameterValue] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE, as in 'limit=100'", param_hint="--parameter")
        if name.strip() in values:
            raise typer.BadParameter(f"the parameter {name.strip()!r} is given twice", param_hint="--parameter")
        values[name.strip()] = _parameter_value(value)
    return values


def checked_length(text: str, option: str, *, or_zero: bool = True) -> None:
    """Raises BadParameter if the text is not a length of time, so that this is known before Spark starts."""
    from cepheid.errors import PatternError
    from cepheid.lang.duration import parse_duration

    try:
        parse_duration(text, or_zero=or_zero)
    except PatternError as error:
        raise typer.BadParameter(error.problems[0].message, param_hint=option) from None


def _parameter_value(text: str) -> ParameterValue:
    from cepheid.cli.failure import FileProblem
    from cepheid.cli.parameter_value import parameter_value
    from cepheid.errors import PatternError

    try:
        return parameter_value(text)
    except PatternError as error:
        raise typer.BadParameter(error.problems[0].message, param_hint="--parameter") from None
    except FileProblem as problem:
        raise typer.BadParameter(str(problem), param_hint="--parameter") from None
