"""The terms of RDF: names of things, and literals. In facts they are numbers.

A term also has a text, by which it is found. That of a name is the name; that of a literal begins with a quote, which
no name has. So millions of terms get numbers without an object for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

XSD = "http://www.w3.org/2001/XMLSchema#"
STRING = f"{XSD}string"
_QUOTE = '"'


@dataclass(frozen=True, slots=True)
class Iri:
    """The name of a thing. One that begins with `_:` is made up, for a node that a document has without a name."""

    value: str

    @property
    def is_made_up(self) -> bool:
        return self.value.startswith("_:")

    def __str__(self) -> str:
        return self.value if self.is_made_up else f"<{self.value}>"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value, as text with its type."""

    text: str
    datatype: str = STRING
    language: str | None = None

    def __str__(self) -> str:
        text = self.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        if self.language is not None:
            return f'"{text}"@{self.language}'
        return f'"{text}"' if self.datatype == STRING else f'"{text}"^^<{self.datatype}>'


Term: TypeAlias = Iri | Literal
Triple: TypeAlias = tuple[Term, Term, Term]
"""Subject, predicate, object."""


def literal_text(datatype: str, language: str | None = None) -> str:
    """What the text of a literal of a type begins with; its own text follows."""
    return f'"{datatype}"' if language is None else f'"{datatype} {language}"'


def text_of(term: Term) -> str:
    """The text by which the term is found."""
    return term.value if isinstance(term, Iri) else literal_text(term.datatype, term.language) + term.text


def is_literal(text: str) -> bool:
    return text.startswith(_QUOTE)


def term_of(text: str) -> Term:
    """The term with this text."""
    if not is_literal(text):
        return Iri(text)
    type_, _, own = text[1:].partition(_QUOTE)
    datatype, _, language = type_.partition(" ")
    return Literal(own, datatype, language or None)


class Terms:
    """Numbers for terms, from 0. Those of `base` keep theirs."""

    def __init__(self, base: Terms | None = None) -> None:
        self._base = base
        self._first = 0 if base is None else len(base)
        self._numbers: dict[str, int] = {}
        """Those of its own terms, and of others that were asked for."""
        self._texts: list[str] = []
        self._made: dict[int, Term] = {}
        """The terms that somebody asked for."""

    def __len__(self) -> int:
        return self._first + len(self._texts)

    def number(self, term: Term) -> int:
        """The number of the term, which gets one if it has none."""
        return self.numbers((text_of(term),))[0]

    def numbers(self, texts: Sequence[str]) -> list[int]:
        """The numbers of the terms with these texts, which get some if they have none."""
        own = self._numbers
        found: list[Any] = [*map(own.get, texts)]
        if None not in found:
            return found
        missing = [text for text, number in zip(texts, found, strict=True) if number is None]
        if self._base is not None:
            own.update(self._base.known(missing))
        new = [text for text in dict.fromkeys(missing) if text not in own]
        own.update(zip(new, range(len(self), len(self) + len(new)), strict=True))
        self._texts += new
        return [own[text] for text in texts]

    def known(self, texts: Sequence[str]) -> dict[str, int]:
        """The numbers of the terms with these texts that have some."""
        found = zip(texts, map(self.find_text, texts) if self._base else map(self._numbers.get, texts), strict=True)
        return {text: number for text, number in found if number is not None}

    def kept(self, numbers: Iterable[int]) -> Terms:
        """New numbers, in the same order, for the base's terms and these ones, which ascend."""
        found = Terms(self._base)
        found._texts = [self._texts[number - self._first] for number in numbers]
        found._numbers = {text: self._first + place for place, text in enumerate(found._texts)}
        return found

    def literals_since(self, number: int) -> list[bool]:
        """Whether each term is a literal, from the term with this number on. The number is not one of the base's."""
        return [text[:1] == _QUOTE for text in self._texts[number - self._first :]]

    def find(self, term: Term) -> int | None:
        """The number of the term; None if it has none."""
        return self.find_text(text_of(term))

    def find_text(self, text: str) -> int | None:
        known = self._numbers.get(text)
        return self._base.find_text(text) if known is None and self._base is not None else known

    def term(self, number: int) -> Term:
        if (made := self._made.get(number)) is None:
            made = self._made[number] = term_of(self.text(number))
        return made

    def text(self, number: int) -> str:
        if number < self._first:
            assert self._base is not None
            return self._base.text(number)
        return self._texts[number - self._first]

    def is_literal(self, number: int) -> bool:
        return is_literal(self.text(number))
