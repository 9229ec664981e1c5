"""Pattern files with an expression of the event algebra ⇄ the same OccurrencePattern values as Python makes.

Such a document has the key `occurrence`; `schema.json` says what else it may have.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

from cepheid.errors import PatternError, Problem
from cepheid.lang.document.marked_text import MarkedText, Value
from cepheid.lang.document.problems import (
    in_order,
    parameter_problems,
    place,
    span_of_text,
    structure_problems,
    taxonomy_problems,
    text_problems,
)
from cepheid.lang.document.values import head_document, parameters_of, taxonomy_of, version_of
from cepheid.lang.expression import Span
from cepheid.lang.occurrences.expression import OccurrencePattern, RestrictedType
from cepheid.lang.occurrences.parser import parse_occurrences, parse_restricted
from cepheid.lang.occurrences.printer import expression_text, restricted_text

KEY = "occurrence"
SCHEMA = "occurrences/schema.json"


def is_occurrence(marked: MarkedText) -> bool:
    """Whether the document is one of these."""
    return isinstance(marked.value, dict) and KEY in marked.value


def occurrence_from_document(marked: MarkedText) -> OccurrencePattern:
    """The pattern of the document.

    Raises:
        PatternError: all its problems, with line and column.
    """
    problems = [*marked.problems, *structure_problems(marked, SCHEMA)]
    document = cast("dict[str, Any]", marked.value)
    problems += taxonomy_problems(document, marked)
    problems += parameter_problems(document, marked)
    declared = document.get("types")
    for name, text in declared.items() if isinstance(declared, dict) else ():
        problems += text_problems(partial(parse_restricted, name), text, ("types", name), marked)
    problems += text_problems(parse_occurrences, document[KEY], (KEY,), marked)
    if problems:
        raise PatternError(in_order(problems))
    pattern = parse_occurrences(document[KEY]).named(document.get("name", "pattern"))
    types: tuple[RestrictedType, ...] = tuple(
        parse_restricted(name, text) for name, text in document.get("types", {}).items()
    )
    pattern = replace(pattern, restricted=(*types, *pattern.restricted), version=version_of(marked))
    if "policy" in document:
        pattern = pattern.policy(document["policy"])
    return replace(pattern, types=taxonomy_of(document["taxonomy"]), parameters=parameters_of(document))


def occurrence_to_document(pattern: OccurrencePattern) -> dict[str, Value]:
    """The document that reads as `pattern`.

    Raises:
        PatternError: it has no taxonomy, without which there is no such document.
    """
    if pattern.types is None:
        raise PatternError(Problem("a pattern file of occurrences names the column of the types", "taxonomy"))
    document = head_document(pattern)
    if pattern.restricted:
        document["types"] = {one.name: restricted_text(one) for one in pattern.restricted}
    if pattern.chosen is not None:
        document["policy"] = pattern.chosen.value
    document[KEY] = expression_text(pattern.expression)
    return document


def span_in_occurrence(problem: Problem, marked: MarkedText) -> Span | None:
    """Where the problem of the pattern that the document was read as stands in it; None if it is about none of it."""
    document, where = cast("dict[str, Any]", marked.value), problem.where or ""
    if where in ("policy", "taxonomy"):
        return place((where, "column") if where == "taxonomy" else (where,), marked)
    for name in document.get("types", {}):
        if where == f"type {name!r}":
            return span_of_text(problem, ("types", name), marked)
    return span_of_text(problem, (KEY,), marked) if problem.text else None
