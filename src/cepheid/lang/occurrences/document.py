"""Pattern files with an expression of the event algebra ⇄ the OccurrencePattern values that Python code makes.

Such a document has the key `occurrence`; `schema.json` says what else it may contain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

from cepheid.errors import PatternError, Problem
from cepheid.lang.document.knowledge import meaning_document
from cepheid.lang.document.knowledge_problems import meaning_problems, place_in_mapping, read_meaning
from cepheid.lang.document.marked_text import MarkedText, Value
from cepheid.lang.document.problems import place, shared_problems, span_of_text, text_problems
from cepheid.lang.document.values import head_document, parameters_of, taxonomy_of, version_of
from cepheid.lang.expression import Span
from cepheid.lang.occurrences.expression import RestrictedType
from cepheid.lang.occurrences.parser import parse_occurrences, parse_restricted
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.occurrences.printer import expression_text, restricted_text

KEY = "occurrence"
SCHEMA = "occurrences/schema.json"


def document_problems(marked: MarkedText) -> Iterator[Problem]:
    """The problems of the structure, the declared types and the expression."""
    yield from shared_problems(marked, SCHEMA)
    document = cast("dict[str, Any]", marked.value)
    declared = document.get("types")
    semantic = "knowledge" in document
    for name, text in declared.items() if isinstance(declared, dict) else ():
        yield from text_problems(partial(parse_restricted, name, semantic=semantic), text, ("types", name), marked)
    yield from text_problems(partial(parse_occurrences, semantic=semantic), document[KEY], (KEY,), marked)
    yield from meaning_problems(marked, SCHEMA)


def read_document(marked: MarkedText) -> OccurrencePattern:
    """The pattern of a document without problems.

    Raises:
        PatternError: its knowledge cannot be read, or contradicts itself.
    """
    document = cast("dict[str, Any]", marked.value)
    knowledge, mapping = read_meaning(document, marked)
    pattern = OccurrencePattern.of(document[KEY], knowledge=knowledge, mapping=mapping)
    pattern = pattern.named(document.get("name", "pattern"))
    types: tuple[RestrictedType, ...] = tuple(
        parse_restricted(name, text, semantic=knowledge is not None) for name, text in document.get("types", {}).items()
    )
    pattern = replace(pattern, restricted=(*types, *pattern.restricted), version=version_of(marked))
    if "policy" in document:
        pattern = pattern.policy(document["policy"])
    if "taxonomy" in document:
        pattern = replace(pattern, types=taxonomy_of(document["taxonomy"]))
    return replace(pattern, parameters=parameters_of(document))


def write_document(pattern: OccurrencePattern) -> dict[str, Value]:
    """The document from which `read_document` reads `pattern`.

    Raises:
        PatternError: the pattern has neither a taxonomy nor knowledge, one of which a document needs.
    """
    semantic = pattern.knowledge is not None
    if pattern.types is None and not semantic:
        raise PatternError(Problem("a pattern file of occurrences must name the column of the types", "taxonomy"))
    document = head_document(pattern)
    document |= meaning_document(pattern.knowledge, pattern.mapping)
    if pattern.restricted:
        document["types"] = {one.name: restricted_text(one, semantic=semantic) for one in pattern.restricted}
    if pattern.chosen is not None:
        document["policy"] = pattern.chosen.value
    document[KEY] = expression_text(pattern.expression, semantic=semantic)
    return document


def span_in_document(problem: Problem, marked: MarkedText) -> Span | None:
    """The place of a problem in the document from which the pattern was read; None if it is not about a part of the
    document.
    """
    document, where = cast("dict[str, Any]", marked.value), problem.where or ""
    if where in ("policy", "taxonomy"):
        return place((where, "column") if where == "taxonomy" else (where,), marked)
    if (found := place_in_mapping(problem, marked)) is not None:
        return found
    for name in document.get("types", {}):
        if where == f"type {name!r}":
            return span_of_text(problem, ("types", name), marked)
    return span_of_text(problem, (KEY,), marked) if problem.text else None
