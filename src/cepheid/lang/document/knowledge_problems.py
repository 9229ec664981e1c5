"""What is wrong with the parts `knowledge` and `mapping` of a pattern document, with places."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

from cepheid.errors import KnowledgeError, PatternError, Problem
from cepheid.lang.document.knowledge import knowledge_of, mapping_of
from cepheid.lang.document.marked_text import MarkedText
from cepheid.lang.document.problems import is_valid, place, refused
from cepheid.lang.expression import Span

if TYPE_CHECKING:
    from cepheid.knowledge.events.mapping import EventMapping
    from cepheid.knowledge.knowledge import Knowledge


def meaning_problems(marked: MarkedText, schema: str) -> Iterator[Problem]:
    """The problems of `knowledge` and `mapping` before the knowledge is read; `schema` is that of the document."""
    document = marked.value
    if not isinstance(document, dict):
        return
    yield from _knowledge_problems(document, marked)
    if is_valid(mapping := document.get("mapping"), "mapping", schema):
        assert isinstance(mapping, dict)
        yield from refused(partial(mapping_of, mapping), ("mapping",), marked)


def _knowledge_problems(document: dict[str, Any], marked: MarkedText) -> Iterator[Problem]:
    """The problems of `knowledge` before it is read."""
    knowledge = document.get("knowledge")
    if not isinstance(knowledge, dict):
        return
    given = [key for key in ("files", "ntriples") if key in knowledge]
    if len(given) != 1:
        found = "this has both" if given else "this has none"
        yield marked.problem(
            f"'knowledge' has one of the keys files and ntriples; {found}", place(("knowledge",), marked)
        )
    elif given == ["files"] and marked.folder is None:
        message = "files of knowledge can be named only in a pattern file, which they are relative to"
        hint = "Read the pattern with read_pattern, and write it with pattern_to_document: that has the facts in it."
        yield marked.problem(message, marked.key_spans["knowledge", "files"], hint)


def place_in_mapping(problem: Problem, marked: MarkedText) -> Span | None:
    """The place of a problem of the mapping: the name that it is about, else the key; None if it is about another part
    of the document.
    """
    head, _, name = (problem.where or "").partition(", ")
    if head != "mapping":
        return None
    keys = (span for path, span in marked.key_spans.items() if path[:1] == ("mapping",) and repr(path[-1]) == name)
    values = (
        span
        for path, span in marked.spans.items()
        if path[:1] == ("mapping",) and repr(reduce(_part, path, marked.value)) == name
    )
    return next(chain(keys, values), marked.key_spans["mapping",])


def _part(value: Any, at: str | int) -> Any:
    return value[at]


def read_meaning(document: dict[str, Any], marked: MarkedText) -> tuple[Knowledge | None, EventMapping | None]:
    """The knowledge and the mapping of a document without problems; None if it has none.

    Raises:
        PatternError: the knowledge cannot be read, or contradicts itself; with its place in the document.
    """
    if "knowledge" not in document:
        return None, None
    try:
        return knowledge_of(document["knowledge"], marked.folder), mapping_of(document["mapping"])
    except KnowledgeError as error:
        raise PatternError(marked.problem(str(error), marked.key_spans["knowledge",])) from None
