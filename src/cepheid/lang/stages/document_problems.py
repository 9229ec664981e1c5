"""The problems of a pattern file of stages that a schema cannot find."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from cepheid.errors import Problem
from cepheid.lang.arguments import times_of
from cepheid.lang.calendar import parse_calendar
from cepheid.lang.document.marked_text import MarkedText, Path, Value
from cepheid.lang.document.problems import (
    NAME_KEYS,
    duration_problems,
    is_valid,
    place,
    refused,
    text_problems,
)
from cepheid.lang.sql.parser import parse_expression


def value_problems(marked: MarkedText) -> Iterator[Problem]:
    """The problems that the schema cannot find, in parts whose structure is valid."""
    document = marked.value
    if not isinstance(document, dict):
        return
    yield from _window_problems(document, marked)
    yield from duration_problems(document, (), "max_gap", marked)
    for path, stage in stages_in(document.get("stages"), ("stages",)):
        yield from _group_problems(stage, path, marked)
        yield from duration_problems(stage, path, "within_previous", marked)
        match stage.get("begin_without"):
            case dict(without):
                yield from _without_problems(without, (*path, "begin_without"), marked)
        for key in ("one_or_more", "times", "times_or_more"):
            match stage.get(key):
                case dict(quantifier):
                    yield from duration_problems(quantifier, (*path, key), "window", marked)
        match stage.get("times"):
            case {"count": count}:
                yield from _count_problems(count, (*path, "times", "count"), marked)
            case count:
                yield from _count_problems(count, (*path, "times"), marked)


def condition_problems(marked: MarkedText) -> Iterator[Problem]:
    """The problems of the conditions as SQL. A pattern reports them itself once it meets its events. So this is asked
    only if the document has other problems and gives no pattern.
    """
    document = marked.value
    for path, stage in stages_in(document.get("stages") if isinstance(document, dict) else None, ("stages",)):
        for key in ("where", "until", "begin_without"):
            for inner, text in _conditions_in(stage.get(key), (*path, key)):
                yield from text_problems(parse_expression, text, inner, marked)


def _conditions_in(value: Value, path: Path) -> Iterator[tuple[Path, str]]:
    """The SQL of conditions, with its path. Without what has parameters, as their values may be part of the problem."""
    match value:
        case str() if value.strip() and "$" not in value:
            yield path, value
        case list():
            for index, part in enumerate(value):
                yield from _conditions_in(part, (*path, index))
        case dict():
            for key in ("or", "where"):
                yield from _conditions_in(value.get(key), (*path, key))


def _window_problems(document: dict[str, Any], marked: MarkedText) -> Iterator[Problem]:
    """The problems of `within`, which may follow the calendar."""
    given = document.get("within")
    calendar: list[object] = []
    if is_valid(given, "window"):
        yield from refused(lambda: calendar.append(parse_calendar(given)), ("within",), marked)
    if calendar == [None]:
        yield from duration_problems(document, (), "within", marked)


def stages_in(stages: Value, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The stages of the list at `path`, each group before the stages in it; entries that are not stages are skipped."""
    for index, stage in enumerate(stages if isinstance(stages, list) else ()):
        if isinstance(stage, dict):
            yield (*path, index), stage
            for key in NAME_KEYS:
                yield from stages_in(stage.get(key), (*path, index, key))


def _group_problems(stage: dict[str, Any], path: Path, marked: MarkedText) -> Iterator[Problem]:
    if any(isinstance(stage.get(key), list) for key in NAME_KEYS):
        for key in ("where", "subtype"):
            if key in stage:
                message = f"{key}: a group has no condition of its own; give the stages in it theirs"
                yield marked.problem(message, place((*path, key), marked))


def _without_problems(without: dict[str, Any], path: Path, marked: MarkedText) -> Iterator[Problem]:
    yield from duration_problems(without, path, "within", marked)
    if len(path) > len(("stages", 0, "begin_without")):
        message = "begin_without belongs to the whole pattern, not to a group in it"
        yield marked.problem(message, marked.key_spans[path])


def _count_problems(count: object, path: Path, marked: MarkedText) -> Iterator[Problem]:
    known = isinstance(count, list) and not any(isinstance(one, str) for one in count)  # otherwise a parameter decides
    if isinstance(count, list) and known and is_valid(count, "count"):
        yield from refused(partial(times_of, *map(int, count)), path, marked)
