"""How names (IRIs) are written in mappings: whole, with a prefix, or as templates with columns in braces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import KnowledgeError
from cepheid.knowledge.filters.syntax import named
from cepheid.knowledge.terms import Iri

TYPE = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(?:urn|tag):")
_NOT_IN_NAMES = re.compile(r'[\x00-\x20<>"{}|^`\\]')
# The characters that R2RML leaves as they are: `iunreserved` of RFC 3987.
_NOT_SAFE = re.compile(
    "[^A-Za-z0-9._~\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd"
    "\U00030000-\U0003fffd\U000e1000-\U000efffd-]"
)
TemplatePart: TypeAlias = tuple[str, bool]
"""A part of a template, and whether it is a column; otherwise it is text."""
_PART = re.compile(r"\\(?P<escaped>[{}\\])|\{(?P<column>[^{}]+)\}|(?P<text>[^{}\\]+)")


def is_whole(text: str) -> bool:
    """Whether a name is written whole, and not with a prefix."""
    return _WHOLE.match(text) is not None


def name_of(text: str, prefixes: Mapping[str, str]) -> Iri:
    """The name that is written as `http://…`, `urn:…`, `tag:…`, `<any IRI>`, `prefix:name`, or `name` in the prefix "".

    Raises:
        KnowledgeError: the prefix is unknown, or no name has these characters.
    """
    bare = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    found = Iri(bare) if bare is not text or is_whole(text) else named(text, prefixes)
    if not bare or bare.startswith("_:") or _NOT_IN_NAMES.search(bare):
        raise KnowledgeError(f"{text!r} is no name: a name is an IRI, prefix:name, or a name in the prefix ''")
    return found


def property_of(text: str, prefixes: Mapping[str, str]) -> Iri:
    """The name of a property; `a` is the property of an individual's classes, as in Turtle.

    Raises:
        KnowledgeError: as `name_of`.
    """
    return TYPE if text == "a" else name_of(text, prefixes)


def encoded(text: str) -> str:
    """The text as a part of a name: other characters than letters, digits and `-._~` are percent-encoded."""
    return _NOT_SAFE.sub(lambda found: quote(found[0], safe=""), text)


def percent_encoded(values: pa.Array) -> pa.Array:
    """The same for many texts; most have only such characters, and are found without looking at each."""
    if pc.any(pc.match_substring_regex(values, "[^A-Za-z0-9._~-]")).as_py():
        return pa.array([None if one is None else encoded(one) for one in values.to_pylist()], values.type)
    return values


@dataclass(frozen=True)
class Template:
    """A name with columns in braces, whose values are percent-encoded."""

    text: str

    @cached_property
    def parts(self) -> tuple[TemplatePart, ...]:
        """Texts and columns in order, each with whether it is a column.

        Raises:
            KnowledgeError: braces are not in pairs, or empty.
        """
        parts, at = list[TemplatePart](), 0
        while at < len(self.text):
            found = _PART.match(self.text, at)
            if found is None:
                message = f"column {at + 1}: a column is expected in braces, as in http://shop.example/event/{{id}}"
                raise KnowledgeError(f"{message}; a brace itself is written \\{{ or \\}}")
            kind = str(found.lastgroup)
            parts.append((found[kind], kind == "column"))
            at = found.end()
        return tuple(parts)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(text for text, is_column in self.parts if is_column)

    def whole(self, prefixes: Mapping[str, str]) -> tuple[TemplatePart, ...]:
        """The parts, with the IRI of the prefix in place of the prefix.

        Raises:
            KnowledgeError: the prefix is unknown, or no name has these characters.
        """
        if self.text.startswith("<") and self.text.endswith(">"):
            head, rest = "", Template(self.text[1:-1]).parts
        else:
            until = next((number for number, part in enumerate(self.parts) if part[1]), len(self.parts))
            head, rest = "".join(text for text, _ in self.parts[:until]), self.parts[until:]
            # A name that begins with a column is in the prefix "": encoded values have no colon.
            head = (name_of(head, prefixes) if head else named("", prefixes)).value
        if _NOT_IN_NAMES.search("".join(text for text, is_column in rest if not is_column)):
            raise KnowledgeError(f'{self.text!r} makes no names: they have no spaces and none of <>"{{}}|^`\\')
        return ((head, False), *rest)


_COLUMN = None
"""Where a name has the value of a column."""


def may_be_alike(one: Sequence[TemplatePart], other: Sequence[TemplatePart]) -> bool:
    """Whether some values of the columns make a name of both; the parts are those of `Template.whole`, or a text alone.
    As values are encoded, a column never has the characters that divide names, such as `/`, `:` and `#`.
    """
    left, right = _characters(one), _characters(other)
    reached = {(0, 0)}
    open_ = [(0, 0)]
    while open_:
        at, there = open_.pop()
        if (at, there) == (len(left), len(right)):
            return True
        for place in _next(left, right, at, there):
            if place not in reached:
                reached.add(place)
                open_.append(place)
    return False


def _characters(parts: Sequence[TemplatePart]) -> list[str | None]:
    return [one for text, is_column in parts for one in ((_COLUMN,) if is_column else text)]


def _next(left: Sequence[str | None], right: Sequence[str | None], at: int, there: int) -> Iterator[tuple[int, int]]:
    """The places that are reached when both names have the same next character, or a column ends."""
    one = left[at] if at < len(left) else ""
    other = right[there] if there < len(right) else ""
    if one is _COLUMN:
        yield at + 1, there
    if other is _COLUMN:
        yield at, there + 1
    if one and one == other:
        yield at + 1, there + 1
    elif one is _COLUMN and other and _in_value(other):
        yield at, there + 1
    elif other is _COLUMN and one and _in_value(one):
        yield at + 1, there


def _in_value(character: str) -> bool:
    return character == "%" or encoded(character) == character


def is_template(text: str) -> bool:
    """Whether the text is a template; otherwise it is the name of a column."""
    return "{" in text or "}" in text
