"""Pattern files with an interval pattern ⇄ the IntervalPattern values that Python code makes.

Such a document has the key `interval`, with the query text; `schema.json` says what else it may contain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from cepheid.errors import Problem
from cepheid.lang.document.knowledge import meaning_document
from cepheid.lang.document.knowledge_problems import meaning_problems, place_in_mapping, read_meaning
from cepheid.lang.document.marked_text import MarkedText, Value
from cepheid.lang.document.problems import place, shared_problems, span_of_text, text_problems
from cepheid.lang.document.values import head_document, parameters_of, taxonomy_of, version_of
from cepheid.lang.expression import Span
from cepheid.lang.intervals.pattern import IntervalPattern, interval_pattern
from cepheid.lang.intervals.printer import interval_text

KEY = "interval"
SCHEMA = "intervals/schema.json"


def document_problems(marked: MarkedText) -> Iterator[Problem]:
    """The problems of the structure, the query, the knowledge and the mapping."""
    yield from shared_problems(marked, SCHEMA)
    document = cast("dict[str, Any]", marked.value)
    yield from text_problems(interval_pattern, document[KEY], (KEY,), marked)
    yield from meaning_problems(marked, SCHEMA)


def read_document(marked: MarkedText) -> IntervalPattern:
    """The pattern of a document without problems.

    Raises:
        PatternError: its knowledge cannot be read, or contradicts itself.
    """
    document = cast("dict[str, Any]", marked.value)
    knowledge, mapping = read_meaning(document, marked)
    types = taxonomy_of(document["taxonomy"]) if "taxonomy" in document else None
    pattern = interval_pattern(document[KEY], knowledge=knowledge, mapping=mapping)
    pattern = pattern.named(document.get("name", "pattern"))
    return replace(pattern, types=types, parameters=parameters_of(document), version=version_of(marked))


def write_document(pattern: IntervalPattern) -> dict[str, Value]:
    """The document from which `read_document` reads `pattern`."""
    meaning = meaning_document(pattern.knowledge, pattern.mapping)
    return {**head_document(pattern), **meaning, KEY: interval_text(pattern)}


_CLAUSES = {"relate": "RELATE", "order": "ORDER", "hierarchy": "TREE", "EVENT": "EVENT"}


def span_in_document(problem: Problem, marked: MarkedText) -> Span | None:
    """The place of a problem in the document from which the pattern was read; None if it is not about a part of the
    document. A problem that is not about a condition is placed at its clause.
    """
    where = problem.where or ""
    if where == "taxonomy":
        return place((where, "column"), marked)
    if (span := place_in_mapping(problem, marked)) is not None:
        return span
    if where == "where" or where.endswith(", where"):
        return span_of_text(problem, (KEY,), marked)
    if where.startswith("parameter "):  # the file does not declare it
        return None
    start, end = marked.spans[KEY,]
    words = [_CLAUSES.get(where, ""), "EVENT"]
    found = [re.search(rf"\b{word}\b", marked.text[start:end], re.IGNORECASE) for word in words if word]
    first = next(filter(None, found), None)
    return None if first is None else (start + first.start(), start + first.end())
