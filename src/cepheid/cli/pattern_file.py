"""The pattern file of a command: its pattern, its plan, and problems in its conditions placed in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.cli.options import EventOptions
from cepheid.errors import PatternError, Problem
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.stages.document import AnyPattern, located_in_document, pattern_from_text, read_text
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.intervals.build import check_intervals
from cepheid.plan.intervals.growth import interval_warnings
from cepheid.plan.occurrences.build import check_occurrences
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.types import misread_types
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.explain import pattern_warnings

if TYPE_CHECKING:
    from cepheid.lang.parameters import ParameterValue
    from cepheid.plan.intervals.plan import IntervalPlan
    from cepheid.plan.stages.plan import Plan


@dataclass(frozen=True)
class PatternFile:
    """A pattern and the text that it was read from."""

    path: Path
    text: str
    pattern: AnyPattern

    @contextmanager
    def problems_located(self) -> Iterator[None]:
        """Problems that are found later, in conditions, get their line and column in the file."""
        try:
            yield
        except PatternError as error:
            problems = [located_in_document(problem, self.text, source=str(self.path)) for problem in error.problems]
            raise PatternError(problems) from None


def open_pattern(path: Path, parameters: Mapping[str, ParameterValue]) -> PatternFile:
    """The pattern of the file, with these values.

    Raises:
        OSError: the file cannot be read.
        PatternError: it does not hold a pattern, or a value is none.
    """
    text = read_text(path)
    pattern = pattern_from_text(text, source=str(path))
    return PatternFile(path, text, pattern.with_parameters(**parameters))


def problems_without_events(opened: PatternFile, measures: Mapping[str, str] | None) -> list[Problem]:
    """What is wrong with the pattern whatever the events are."""
    if isinstance(opened.pattern, Pattern):
        return check_pattern(opened.pattern, measures)
    if isinstance(opened.pattern, IntervalPattern):
        return check_intervals(opened.pattern)
    return check_occurrences(opened.pattern, measures)


def warnings_of(pattern: AnyPattern, plan: Plan | OccurrencePlan | IntervalPlan | None) -> list[str]:
    """What is right, and may cost more, or tell less, than it seems; of occurrences most of it with their plan."""
    if isinstance(pattern, Pattern):
        return list(pattern_warnings(pattern))
    if isinstance(pattern, IntervalPattern):
        return list(interval_warnings(pattern))
    return list(plan.warnings if isinstance(plan, OccurrencePlan) else misread_types(pattern))


def plan_for(opened: PatternFile, options: EventOptions) -> Plan | OccurrencePlan | IntervalPlan:
    """The plan of a pattern for events in files, on the host of the options; without a time, their first timestamp
    column is it, if time is to pass.

    Raises:
        FileProblem, Unavailable, SchemaError, PatternError: as reading the files and planning do.
    """
    from rich.console import Console

    from cepheid.cli.events import opened_events
    from cepheid.detect import plan_of, request_of

    with opened_events(options, Console(stderr=True), columns_only=True) as events, opened.problems_located():
        asked = options.asked()
        if asked["time"] is ... and not isinstance(opened.pattern, IntervalPattern):
            asked["time"] = _first_timestamp(events, opened, options)
        return plan_of(events, request_of(opened.pattern, **asked))


def _first_timestamp(events: Any, opened: PatternFile, options: EventOptions) -> str:
    """The column's name; `events` are a table or a DataFrame, whose schemas both name their types."""
    for field in events.schema:
        if str(getattr(field, "dataType", None) or field.type).lower().startswith("timestamp"):
            return str(field.name)
    there = f"{events.schema.names} are there"
    message = f"no column of the events is a timestamp: name the event time by --time, or give --no-time; {there}"
    raise PatternError([Problem(message), *problems_without_events(opened, options.measures)])
