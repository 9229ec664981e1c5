"""Pattern files: YAML or JSON documents ⇄ the pattern values that Python code makes.

Each kind of pattern has its own key in such a document, and a module that reads and writes what is under that key.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import shown
from cepheid.lang.document.marked_text import MarkedText, Value, dump_yaml, load_marked
from cepheid.lang.document.problems import in_order, parameter_span, pattern_schema
from cepheid.lang.expression import Span
from cepheid.lang.intervals import document as intervals
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.known_arguments import known_arguments
from cepheid.lang.occurrences import document as occurrences
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.stages import document as stages
from cepheid.lang.stages.pattern import Pattern

__all__ = [
    "located_in_document",
    "pattern_from_text",
    "pattern_schema",
    "pattern_to_document",
    "pattern_to_yaml",
    "read_pattern",
    "read_text",
]

AnyPattern: TypeAlias = Pattern | OccurrencePattern | IntervalPattern


class _Documents(Protocol):
    """A module for the documents of one kind of pattern."""

    KEY: str

    def document_problems(self, marked: MarkedText, /) -> Iterable[Problem]: ...
    def read_document(self, marked: MarkedText, /) -> AnyPattern: ...
    def write_document(self, pattern: Any, /) -> dict[str, Value]: ...
    def span_in_document(self, problem: Problem, marked: MarkedText, /) -> Span | None: ...


class _Kind(NamedTuple):
    pattern: type[AnyPattern]
    documents: _Documents


_KINDS = (_Kind(Pattern, stages), _Kind(OccurrencePattern, occurrences), _Kind(IntervalPattern, intervals))
"""A document with none of the keys is read as the first kind."""


@known_arguments()
def read_pattern(path: str | pathlib.Path) -> AnyPattern:
    """The pattern in a YAML or JSON file. The key `occurrence` marks a pattern of occurrences and the key `interval` an
    interval pattern; without these keys it is a pattern of stages.

    Raises:
        OSError: the file cannot be read.
        PatternError: the file does not hold a pattern; lists all problems, with line and column.
    """
    return pattern_from_text(read_text(path), source=str(path), folder=pathlib.Path(path).parent)


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
        raise PatternError(
            Problem(f"a pattern file must be UTF-8 text, this one is not ({path}, line {line})")
        ) from None


@known_arguments()
def pattern_from_text(text: str, *, source: str = "<text>", folder: pathlib.Path | None = None) -> AnyPattern:
    """The pattern in a YAML or JSON document; `source` is its name in messages. Files of knowledge that the document
    names are in `folder`; without it the document must not name files.

    Raises:
        PatternError: lists all problems of the document, with line and column.
    """
    if not isinstance(text, str):
        hint = "read_pattern(path) reads a file." if isinstance(text, bytes | pathlib.PurePath) else None
        raise PatternError(Problem(f"a pattern document is text, got {shown(text)}", hint=hint))
    marked = load_marked(text, source=source, folder=folder)
    keys = [kind.documents.KEY for kind in _KINDS]
    given = [key for key in keys if isinstance(marked.value, dict) and key in marked.value]
    if len(given) > 1:
        message = f"a pattern file has one of the keys {', '.join(keys)}; this has {' and '.join(given)}"
        raise PatternError(marked.problem(message, marked.key_spans[given[-1],], "Write a file for each."))
    documents = _documents_in(marked)
    if problems := [*documents.document_problems(marked)]:
        raise PatternError(in_order(problems))
    return documents.read_document(marked)


def _documents_in(marked: MarkedText) -> _Documents:
    """The module for the kind of pattern whose key the document has."""
    document = marked.value if isinstance(marked.value, dict) else {}
    return next((kind.documents for kind in _KINDS if kind.documents.KEY in document), _KINDS[0].documents)


@known_arguments()
def pattern_to_document(pattern: AnyPattern) -> dict[str, Value]:
    """The document from which `read_pattern` reads `pattern`. It leaves out defaults, except for the name.

    Raises:
        PatternError: the pattern has conditions in Python, or is a pattern of occurrences with neither a taxonomy nor
            knowledge.
    """
    documents = next((kind.documents for kind in _KINDS if isinstance(pattern, kind.pattern)), None)
    if documents is None:
        raise PatternError(f"a pattern is expected, got {shown(pattern)}")
    return documents.write_document(pattern)


@known_arguments()
def pattern_to_yaml(pattern: AnyPattern) -> str:
    """The document of `pattern_to_document` as YAML text."""
    return dump_yaml(pattern_to_document(pattern))


def located_in_document(problem: Problem, text: str, *, source: str) -> Problem:
    """The problem with its place in `text`, the document from which the pattern was read.

    A problem in a condition is placed at the condition's text, in the stage that `problem.where` names. If the file
    writes that text differently (escapes in quotes, folded lines), the place is the whole condition. A problem of a
    whole stage is placed at the stage's name, and a problem of `within`, `skip`, `taxonomy` or a parameter at that key.
    Other problems are returned unchanged.
    """
    marked = load_marked(text, source=source)
    span = parameter_span(problem, marked) or _documents_in(marked).span_in_document(problem, marked)
    if span is None:
        return problem
    where = f"{source}, {problem.where}" if problem.where else source
    return Problem(problem.message, where=where, text=text, span=span, hint=problem.hint)
