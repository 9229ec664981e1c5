"""Pattern files: YAML or JSON documents ⇄ the same Pattern values as the fluent interface makes.

What a document may contain is said once, in `schema.json`: editors complete from it and the reader checks with
it (`document_problems`). A stage is a mapping whose keys are the calls of the fluent interface; a group is a list of
stages where the stage's name would stand.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias, cast

from cepheid.errors import PatternError, Problem
from cepheid.lang.document.marked_text import MarkedText, Path, Value, dump_yaml, load_marked
from cepheid.lang.document.problems import (
    NAME_KEYS,
    document_problems,
    in_order,
    parameter_span,
    pattern_schema,
    place,
    stages_in,
)
from cepheid.lang.document.values import (
    condition_document,
    condition_value,
    head_document,
    parameters_of,
    taxonomy_of,
    version_of,
    with_conditions,
)
from cepheid.lang.duration import format_duration
from cepheid.lang.expression import Span
from cepheid.lang.intervals.document import KEY as INTERVAL
from cepheid.lang.intervals.document import (
    interval_from_document,
    interval_to_document,
    is_interval,
    span_in_interval,
)
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.occurrences.document import KEY as OCCURRENCE
from cepheid.lang.occurrences.document import (
    is_occurrence,
    occurrence_from_document,
    occurrence_to_document,
    span_in_occurrence,
)
from cepheid.lang.occurrences.expression import OccurrencePattern
from cepheid.lang.stages.pattern import Pattern, Quantifier, Skip, SkipTo, Stage, Times

__all__ = [
    "located_in_document",
    "pattern_form",
    "pattern_from_text",
    "pattern_schema",
    "pattern_to_document",
    "pattern_to_yaml",
    "read_pattern",
    "read_text",
]

_FLAGS = {
    "optional": "optional",
    "greedy": "greedy",
    "consecutive": "consecutive",
    "allow_combinations": "combinations",
    "longest": "longest",
}
"""Keys of a stage that are true or false, and the fields of its quantifier that they set."""


_KINDS = ("stages", OCCURRENCE, INTERVAL)
"""Keys of which a file has one: what kind of pattern it holds."""


AnyPattern: TypeAlias = Pattern | OccurrencePattern | IntervalPattern


def read_pattern(path: str | pathlib.Path) -> AnyPattern:
    """The pattern in a YAML or JSON file: of stages; with the key `occurrence` of occurrences, with `interval` of
    intervals.

    Raises:
        OSError: the file cannot be read.
        PatternError: it does not hold a pattern; all problems, with line and column.
    """
    return pattern_from_text(read_text(path), source=str(path))


def read_text(path: str | pathlib.Path) -> str:
    """The text of a pattern file.

    Raises:
        OSError: the file cannot be read.
        PatternError: it is not UTF-8.
    """
    content = pathlib.Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PatternError(Problem(f"a pattern file is UTF-8 text, this is not ({path}, line {line})")) from None


def pattern_from_text(text: str, *, source: str = "<text>") -> AnyPattern:
    """The pattern in a YAML or JSON document; `source` names it in messages.

    Raises:
        PatternError: all problems of the document, with line and column.
    """
    marked = load_marked(text, source=source)
    kinds = [key for key in _KINDS if isinstance(marked.value, dict) and key in marked.value]
    if len(kinds) > 1:
        message = f"a pattern file has one of the keys {', '.join(_KINDS)}; this has {' and '.join(kinds)}"
        raise PatternError(marked.problem(message, marked.key_spans[kinds[-1],], "Write a file for each."))
    if is_occurrence(marked):
        return occurrence_from_document(marked)
    if is_interval(marked):
        return interval_from_document(marked)
    problems = [*marked.problems, *document_problems(marked)]
    if problems:
        raise PatternError(in_order(problems))
    return replace(_pattern(cast("dict[str, Any]", marked.value)), version=version_of(marked))


def pattern_to_document(pattern: AnyPattern) -> dict[str, Value]:
    """The document that reads as `pattern`, with nothing in it that is the default anyway, except the name.

    Raises:
        PatternError: it has conditions in Python or, of occurrences, no taxonomy.
    """
    if isinstance(pattern, OccurrencePattern):
        return occurrence_to_document(pattern)
    if isinstance(pattern, IntervalPattern):
        return interval_to_document(pattern)
    hint = "Write the condition in SQL, or keep the pattern in Python."
    refused = [
        Problem(f"function {function.name} cannot stand in a pattern file", label, hint=hint)
        for label, function in pattern.functions
    ]
    if refused:
        raise PatternError(refused)
    return pattern_form(pattern)


def pattern_form(pattern: Pattern) -> dict[str, Value]:
    """The same of any pattern, with names in the place of functions: two patterns are compared by it."""
    document = head_document(pattern)
    if pattern.window is not None:
        document["within"] = format_duration(pattern.window)
    if pattern.skip_strategy != Skip():
        document["skip"] = _skip_document(pattern.skip_strategy)
    document["stages"] = _stage_documents(pattern.stages)
    return document


def pattern_to_yaml(pattern: AnyPattern) -> str:
    """The same document as YAML text."""
    return dump_yaml(pattern_to_document(pattern))


def located_in_document(problem: Problem, text: str, *, source: str) -> Problem:
    """A problem of the pattern that `text` was read as, placed in that document.

    A problem in a condition is placed by the condition's text, in the stage that `problem.where` names; where the file
    writes it in another way (quotes with escapes, folded lines), the whole condition is the place. A problem of a whole
    stage is placed at the stage's name, one of `within`, `skip`, `taxonomy` or a parameter there; others stay as they
    are.
    """
    marked = load_marked(text, source=source)
    if is_occurrence(marked):
        span = span_in_occurrence(problem, marked)
    else:
        span = span_in_interval(problem, marked) if is_interval(marked) else _span_of(problem, marked)
    span = parameter_span(problem, marked) or span
    if span is None:
        return problem
    where = f"{source}, {problem.where}" if problem.where else source
    return Problem(problem.message, where=where, text=text, span=span, hint=problem.hint)


def _span_of(problem: Problem, marked: MarkedText) -> Span | None:
    document, where = cast("dict[str, Any]", marked.value), problem.where or ""
    if where in ("within", "skip"):
        return place((where,), marked)
    if where == "taxonomy":  # its column: what the events have is no matter of the kinds
        return place(("taxonomy", "column"), marked)
    for path, stage in stages_in(document["stages"], ("stages",)):
        label = _sequence([stage]).stages[0].label
        if where == label or where.startswith(f"{label}, "):
            if problem.text is None:
                return _name_span(path, stage, marked)
            for key in ("until",) if where == f"{label}, until" else ("where", "subtype"):
                for inner, value in _leaves(stage.get(key), (*path, key)):
                    if value == problem.text:
                        return _span_in(marked, inner, problem)
    return None


def _name_span(path: Path, stage: dict[str, Any], marked: MarkedText) -> Span:
    """Of the name or, of a group, of the key."""
    key = next(key for key in NAME_KEYS if key in stage)
    return marked.spans[(*path, key)] if isinstance(stage[key], str) else marked.key_spans[(*path, key)]


def _span_in(marked: MarkedText, path: Path, problem: Problem) -> Span:
    start, end = marked.spans[path]
    verbatim = marked.text.find(problem.text or "", start, end)
    if verbatim < 0 or problem.span is None:
        return start, end
    return verbatim + problem.span[0], verbatim + problem.span[1]


def _leaves(value: Value, path: Path) -> Iterator[tuple[Path, Value]]:
    match value:
        case dict():
            yield from chain.from_iterable(_leaves(part, (*path, key)) for key, part in value.items())
        case list():
            yield from chain.from_iterable(_leaves(part, (*path, index)) for index, part in enumerate(value))
        case _:
            yield path, value


# Document → pattern


def _pattern(document: dict[str, Any]) -> Pattern:
    pattern = _sequence(document["stages"]).named(document.get("name", "pattern"))
    if "within" in document:
        pattern = pattern.within(document["within"])
    if "taxonomy" in document:
        pattern = replace(pattern, types=taxonomy_of(document["taxonomy"]))
    pattern = replace(pattern, parameters=parameters_of(document))
    return pattern.skip(_skip(document.get("skip", SkipTo.NO_SKIP.value)))


def _skip(value: str | dict[str, Any]) -> Skip:
    match value:
        case str():
            return Skip(SkipTo(value))
        case {"to_first": stage}:
            return Skip.to_first(stage, error_on_miss=value.get("error_on_miss", False))
    return Skip.to_last(value["to_last"], error_on_miss=value.get("error_on_miss", False))


def _sequence(stages: list[dict[str, Any]]) -> Pattern:
    """The pattern of these stages; that of a group too."""
    pattern = None
    for stage in stages:
        call = next(key for key in NAME_KEYS if key in stage)
        added = stage[call] if isinstance(stage[call], str) else _sequence(stage[call])
        pattern = _with_stage(Pattern.begin(added) if pattern is None else getattr(pattern, call)(added), stage)
    assert pattern is not None, "the schema asks for a stage"
    return pattern


def _with_stage(pattern: Pattern, stage: dict[str, Any]) -> Pattern:
    pattern = _with_quantifier(with_conditions(pattern, stage), stage)
    for flag in _FLAGS:
        if stage.get(flag):
            pattern = getattr(pattern, flag)()
    for call in ("until", "within_previous"):
        if call in stage:
            pattern = getattr(pattern, call)(stage[call])
    return pattern


def _with_quantifier(pattern: Pattern, stage: dict[str, Any]) -> Pattern:
    for call in ("one_or_more", "times", "times_or_more"):
        given = stage.get(call, False)
        if given is not False:
            window = given.get("window") if isinstance(given, dict) else None
            count = given.get("count", True) if isinstance(given, dict) else given
            counts = [] if count is True else count if isinstance(count, list) else [count]
            # a JSON Schema takes 2.0 for an integer, and so do we
            pattern = getattr(pattern, call)(*map(int, counts), window=window)
    return pattern


# Pattern → document


def _skip_document(skip: Skip) -> Value:
    if skip.stage is None:
        return skip.to.value
    missed: dict[str, Value] = {"error_on_miss": True} if skip.error_on_miss else {}
    return {skip.to.value: skip.stage, **missed}


def _stage_documents(stages: tuple[Stage, ...]) -> list[Value]:
    first, *later = stages
    return [_stage_document("begin", first), *(_stage_document(stage.contiguity.value, stage) for stage in later)]


def _stage_document(key: str, stage: Stage) -> Value:
    document: dict[str, Value] = {key: _stage_documents(stage.group) if stage.group else stage.name}
    document |= condition_document(stage.conditions)
    document |= _quantifier_document(stage.quantifier)
    if stage.until is not None:
        document["until"] = condition_value(stage.until)
    if stage.window is not None:
        document["within_previous"] = format_duration(stage.window)
    return document


def _quantifier_document(quantifier: Quantifier) -> dict[str, Value]:
    flags: dict[str, Value] = {flag: True for flag, field in _FLAGS.items() if getattr(quantifier, field)}
    return flags if quantifier.times is None else {**_times_document(quantifier.times, quantifier), **flags}


def _times_document(times: Times, quantifier: Quantifier) -> dict[str, Value]:
    window: dict[str, Value] = {} if quantifier.window is None else {"window": format_duration(quantifier.window)}
    if times.maximum is not None:
        count: Value = times.minimum if times.minimum == times.maximum else [times.minimum, times.maximum]
        return {"times": {"count": count, **window} if window else count}
    if times.minimum > 1:
        return {"times_or_more": {"count": times.minimum, **window} if window else times.minimum}
    return {"one_or_more": window or True}
