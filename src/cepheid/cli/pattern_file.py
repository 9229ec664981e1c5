"""The pattern file of a command: its pattern, its plan, and the lines and columns of problems in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import BadParameter

from cepheid.cli.options import EventOptions
from cepheid.errors import PatternError, Problem
from cepheid.families import known_family_of
from cepheid.lang.documents import AnyPattern, located_in_document, pattern_from_text, read_text

if TYPE_CHECKING:
    from cepheid.lang.parameters import ParameterValue


_EVENTS = (".parquet", ".csv", ".jsonl", ".ndjson")
"""Extensions of files that cannot be pattern files. JSON can be both."""


@dataclass(frozen=True)
class PatternFile:
    """A pattern, and the text from which it was read."""

    path: Path
    text: str
    pattern: AnyPattern

    @contextmanager
    def problems_located(self) -> Iterator[None]:
        """Adds the line and column in the file to problems that are found later, in conditions."""
        try:
            yield
        except PatternError as error:
            problems = [located_in_document(problem, self.text, source=str(self.path)) for problem in error.problems]
            raise PatternError(problems) from None


def open_pattern(path: Path, parameters: Mapping[str, ParameterValue], types: str | None = None) -> PatternFile:
    """The pattern in the file, with these values of parameters. `types` is the column with the types of events, for a
    file that does not name it.

    Raises:
        OSError: the file cannot be read.
        BadParameter: its extension is that of a file of events.
        PatternError: it does not hold a valid pattern, or a parameter's value is invalid.
    """
    if path.suffix.lower() in _EVENTS:
        message = f"{path} is a file of events: the pattern file comes first, then the events"
        raise BadParameter(message, param_hint="PATTERN")
    text = read_text(path)
    pattern = pattern_from_text(text, source=str(path), folder=path.parent).with_parameters(**parameters)
    if types is not None:
        if pattern.types is not None:
            column = pattern.types.column
            raise PatternError(f"--type {types}: the file says already that {column!r} holds the types; leave it out")
        if not [*known_family_of(pattern).types(pattern)]:
            raise PatternError(f"--type {types}: no stage asks for a type, as subtype does; leave it out")
        pattern = pattern.taxonomy(types)
    return PatternFile(path, text, pattern)


def problems_without_events(opened: PatternFile, measures: Mapping[str, str] | None) -> list[Problem]:
    """The problems of the pattern that do not depend on the events."""
    return known_family_of(opened.pattern).check(opened.pattern, measures)


def remarks_of(pattern: AnyPattern, plan: Any | None) -> list[str]:
    """Remarks on valid parts of the pattern that may cost more, or find less, than expected. Some need the plan."""
    return known_family_of(pattern).remarks(pattern, plan)


def plan_for(opened: PatternFile, options: EventOptions) -> Any:
    """The plan of the pattern for events in files, on the host that the options name. If they name no time, the first
    timestamp column is the time, except in processing order.

    Raises:
        FileProblem, Unavailable, SchemaError, PatternError: from reading the files and from planning.
    """
    from rich.console import Console

    from cepheid.cli.events import opened_events
    from cepheid.detect import plan_of
    from cepheid.requests.request_of import request_of

    with opened_events(options, Console(stderr=True), columns_only=True) as events, opened.problems_located():
        asked = options.asked()
        if asked["time"] is ... and not known_family_of(opened.pattern).has_ends:
            asked["time"] = _first_timestamp(events, opened, options)
        return plan_of(events, request_of(opened.pattern, **asked))


def _first_timestamp(events: Any, opened: PatternFile, options: EventOptions) -> str:
    """The name of the first timestamp column. `events` is a table or a DataFrame; both schemas name their types."""
    for field in events.schema:
        if str(getattr(field, "dataType", None) or field.type).lower().startswith("timestamp"):
            return str(field.name)
    known = f"the columns are {events.schema.names}"
    message = f"no column of the events is a timestamp: name the event time with --time, or give --no-time; {known}"
    raise PatternError([Problem(message), *problems_without_events(opened, options.measures)])
