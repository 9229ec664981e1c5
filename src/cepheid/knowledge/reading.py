"""Reads triples from texts and files. The only module that imports pyoxigraph, which is an extra."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, get_args
from typing import Literal as OneOf

from cepheid.errors import KnowledgeError
from cepheid.knowledge.terms import Triple, literal_text, term_of

Format: TypeAlias = OneOf["turtle", "ntriples", "rdfxml"]
FORMATS: tuple[str, ...] = get_args(Format)
_ENDINGS: Mapping[str, Format] = {".ttl": "turtle", ".nt": "ntriples", ".rdf": "rdfxml", ".owl": "rdfxml"}
_DOCUMENTS = count()


def format_of(path: Path) -> Format:
    """The format that the ending of a file says.

    Raises:
        KnowledgeError: the ending is unknown.
    """
    if (found := _ENDINGS.get(path.suffix.lower())) is None:
        known = ", ".join(_ENDINGS)
        raise KnowledgeError(f"{path}: the format is not known. Files end in {known}, or give format=")
    return found


def is_name_of_file(text: str) -> bool:
    """Whether a text that is no document may be meant as the name of a file."""
    return len(text.split()) == 1 and Path(text).suffix.lower() in _ENDINGS


def triples(
    text: str | bytes,
    format: Format,  # noqa: A002 - as rdflib's
    source: str = "the text",
    scope: str | None = None,
) -> list[Triple]:
    """The triples of a document. Nothing is fetched. Nodes without a name are numbered, and named after the scope: in
    facts that are used together each document has another one. None: one that no other document has.

    Raises:
        KnowledgeError: the text has an error; the message has its line. Or pyoxigraph is not installed.
    """
    scope = f"d{next(_DOCUMENTS)}" if scope is None else scope
    found = triple_texts(text, format, source, scope)
    return [(term_of(subject), term_of(predicate), term_of(object_)) for subject, predicate, object_ in found]


def triple_texts(
    text: str | bytes,
    format: Format,  # noqa: A002 - as above
    source: str,
    scope: str,
    head: str = "",
) -> list[tuple[str, str, str]]:
    """The same triples as texts of terms. The text begins with `head`, whose columns are not counted in messages.

    Raises:
        KnowledgeError: as `triples`.
    """
    pyoxigraph = _pyoxigraph()
    made_up: dict[str, str] = {}

    def text_of(found: Any) -> str:
        kind = type(found)
        if kind is pyoxigraph.NamedNode:
            return str(found.value)
        if kind is pyoxigraph.Literal:
            return literal_text(found.datatype.value, found.language) + str(found.value)
        if kind is pyoxigraph.BlankNode:
            return made_up.setdefault(found.value, f"_:{scope}.{len(made_up)}")
        raise KnowledgeError(f"{source}: {found} is neither a name, a node nor a literal")

    try:
        return [(text_of(one.subject), one.predicate.value, text_of(one.object)) for one in _parsed(text, format)]
    except SyntaxError as error:
        raise KnowledgeError(f"{source}: {_without(head, str(error))}") from error


_PLACE = re.compile(
    r"(?<=line 1 )(?P<before>column |between columns )(?P<from>\d+)(?P<and> and )?(?P<to>(?<=and )\d+)?"
)
"""A place in the first line, as pyoxigraph writes it."""


def _without(head: str, message: str) -> str:
    """The message, with columns counted from the end of `head`, which the reader has put before the text."""

    def moved(found: re.Match[str]) -> str:
        columns = [str(max(1, int(one) - len(head))) for one in (found["from"], found["to"]) if one]
        return found["before"] + " and ".join(columns)

    return _PLACE.sub(moved, message)


def prefixes_of(text: str | bytes, format: Format, source: str = "the text") -> dict[str, str]:  # noqa: A002
    """The prefixes that a document declares.

    Raises:
        KnowledgeError: as `triples`.
    """
    try:
        parser = _parsed(text, format)
        for _ in parser:
            pass  # prefixes are declared anywhere
        return dict(parser.prefixes)
    except SyntaxError as error:
        raise KnowledgeError(f"{source}: {error}") from error


def _parsed(text: str | bytes, format: Format) -> Any:  # noqa: A002
    """The parser of the text, which is an iterator of triples."""
    pyoxigraph = _pyoxigraph()
    formats = {
        "turtle": pyoxigraph.RdfFormat.TURTLE,
        "ntriples": pyoxigraph.RdfFormat.N_TRIPLES,
        "rdfxml": pyoxigraph.RdfFormat.RDF_XML,
    }
    if format not in formats:
        raise KnowledgeError(f"format: {format!r} is unknown. There are {', '.join(FORMATS)}")
    return pyoxigraph.parse(input=text.encode() if isinstance(text, str) else text, format=formats[format])


def _pyoxigraph() -> Any:
    try:
        import pyoxigraph
    except ImportError as error:
        raise KnowledgeError("knowledge needs pyoxigraph: pip install 'cepheid[semantic]'") from error
    return pyoxigraph
