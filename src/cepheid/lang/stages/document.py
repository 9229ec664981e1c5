"""Pattern files with stages ⇄ the Pattern values that the fluent interface makes.

What such a document may contain is defined once, in `schema.json`: editors complete from it, and the reader checks with
it. A stage is a mapping whose keys are the calls of the fluent interface. A group is a list of stages in place of the
stage's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, cast

from cepheid.errors import PatternError, Problem
from cepheid.lang.document.knowledge import meaning_document
from cepheid.lang.document.knowledge_problems import meaning_problems, place_in_mapping, read_meaning
from cepheid.lang.document.marked_text import MarkedText, Path, Value
from cepheid.lang.document.problems import NAME_KEYS, PATTERN_SCHEMA, place, shared_problems
from cepheid.lang.document.values import head_document, parameters_of, taxonomy_of, version_of
from cepheid.lang.expression import Span
from cepheid.lang.stages.conditions_document import (
    condition_document,
    condition_value,
    given_condition,
    with_conditions,
)
from cepheid.lang.stages.document_problems import condition_problems, stages_in, value_problems
from cepheid.lang.stages.parametric import given_counts, given_length, given_window
from cepheid.lang.stages.pattern import BeginWithout, Pattern, Quantifier, Skip, SkipTo, Stage, Times

KEY = "stages"
SCHEMA = PATTERN_SCHEMA

_FLAGS = {
    "optional": "optional",
    "greedy": "greedy",
    "consecutive": "consecutive",
    "allow_combinations": "combinations",
    "longest": "longest",
}
"""Keys of a stage that are true or false, and the fields of its quantifier that they set."""


def document_problems(marked: MarkedText) -> list[Problem]:
    """All problems of the document; those of its conditions only if there are others."""
    found = [*shared_problems(marked, SCHEMA), *value_problems(marked), *meaning_problems(marked, SCHEMA)]
    return [*found, *condition_problems(marked)] if found else []


def read_document(marked: MarkedText) -> Pattern:
    """The pattern of a document without problems.

    Raises:
        PatternError: its knowledge cannot be read, or contradicts itself.
    """
    document = cast("dict[str, Any]", marked.value)
    knowledge, mapping = read_meaning(document, marked)
    return replace(_pattern(document), version=version_of(marked), knowledge=knowledge, mapping=mapping)


def write_document(pattern: Pattern) -> dict[str, Value]:
    """The document from which `read_document` reads `pattern`.

    Raises:
        PatternError: the pattern has conditions in Python.
    """
    hint = "Write the condition in SQL, or keep the pattern in Python."
    refused = [
        Problem(f"function {function.name} cannot be written to a pattern file", label, hint=hint)
        for label, function in pattern.functions
    ]
    if refused:
        raise PatternError(refused)
    return pattern_form(pattern)


def pattern_form(pattern: Pattern) -> dict[str, Value]:
    """The document of any pattern, with names in place of functions. Patterns are compared by this document."""
    document = head_document(pattern) | meaning_document(pattern.knowledge, pattern.mapping)
    if (window := given_window(pattern)) is not None:
        document["within"] = window
    if pattern.gap is not None:
        document["max_gap"] = given_length(pattern, "gap", pattern.gap)
    if pattern.skip_strategy != Skip():
        document["skip"] = _skip_document(pattern.skip_strategy)
    first, *later = _stage_documents(pattern.stages)
    if pattern.without is not None:
        first["begin_without"] = _without_document(pattern.without)
    document["stages"] = [first, *later]
    return document


def span_in_document(problem: Problem, marked: MarkedText) -> Span | None:
    """The place of a problem in the document from which the pattern was read; None if it is not about a part of the
    document.
    """
    document, where = cast("dict[str, Any]", marked.value), problem.where or ""
    if where in ("within", "max_gap", "skip"):
        return place((where,), marked)
    if where.startswith("begin_without "):
        path: Path = ("stages", 0, "begin_without")
        return _span_in(marked, (*path, "where"), problem) if problem.text else place((*path, "name"), marked)
    if (found := place_in_mapping(problem, marked)) is not None:
        return found
    if where == "taxonomy":  # the problem is about its column, as the kinds do not depend on the events
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
    """The span of the stage's name; for a group, of the key."""
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
    if "max_gap" in document:
        pattern = pattern.max_gap(document["max_gap"])
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
    """The pattern of these stages, which may be those of a group."""
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
    if "until" in stage:
        pattern = pattern.until(given_condition(stage["until"]))
    if "within_previous" in stage:
        pattern = pattern.within_previous(stage["within_previous"])
    if "begin_without" in stage:
        without = stage["begin_without"]
        where = given_condition(without["where"]) if "where" in without else None
        pattern = pattern.begin_without(without["name"], within=without["within"], where=where)
    return pattern


def _with_quantifier(pattern: Pattern, stage: dict[str, Any]) -> Pattern:
    for call in ("one_or_more", "times", "times_or_more"):
        given = stage.get(call, False)
        if given is not False:
            window = given.get("window") if isinstance(given, dict) else None
            count = given.get("count", True) if isinstance(given, dict) else given
            counts = [] if count is True else count if isinstance(count, list) else [count]
            # a JSON Schema takes 2.0 for an integer, and so do we
            numbers = [one if isinstance(one, str) else int(one) for one in counts]
            pattern = getattr(pattern, call)(*numbers, window=window)
    return pattern


# Pattern → document


def _skip_document(skip: Skip) -> Value:
    if skip.stage is None:
        return skip.to.value
    missed: dict[str, Value] = {"error_on_miss": True} if skip.error_on_miss else {}
    return {skip.to.value: skip.stage, **missed}


def _without_document(without: BeginWithout) -> Value:
    where: dict[str, Value] = {} if without.condition is None else {"where": condition_value(without.condition)}
    return {"name": without.name, **where, "within": given_length(without, "window", without.window)}


def _stage_documents(stages: tuple[Stage, ...]) -> list[dict[str, Value]]:
    first, *later = stages
    return [_stage_document("begin", first), *(_stage_document(stage.contiguity.value, stage) for stage in later)]


def _stage_document(key: str, stage: Stage) -> dict[str, Value]:
    document: dict[str, Value] = {key: [*_stage_documents(stage.group)] if stage.group else stage.name}
    document |= condition_document(stage.conditions)
    document |= _quantifier_document(stage.quantifier)
    if stage.until is not None:
        document["until"] = condition_value(stage.until)
    if stage.window is not None:
        document["within_previous"] = given_length(stage, "window", stage.window)
    return document


def _quantifier_document(quantifier: Quantifier) -> dict[str, Value]:
    flags: dict[str, Value] = {flag: True for flag, field in _FLAGS.items() if getattr(quantifier, field)}
    return flags if quantifier.times is None else {**_times_document(quantifier.times, quantifier), **flags}


def _times_document(times: Times, quantifier: Quantifier) -> dict[str, Value]:
    window: dict[str, Value] = {}
    if quantifier.window is not None:
        window = {"window": given_length(quantifier, "window", quantifier.window)}
    counts = given_counts(quantifier)
    if times.maximum is not None:
        count: Value = counts[0] if len(counts) == 1 else [*counts]
        return {"times": {"count": count, **window} if window else count}
    if counts != [1]:
        return {"times_or_more": {"count": counts[0], **window} if window else counts[0]}
    return {"one_or_more": window or True}
