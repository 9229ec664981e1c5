"""The terms of RDF: names of things, and literals. In facts they are numbers.

A term also has a text, by which it is found. That of a name is the name; that of a literal begins with a quote, which
no name has. So millions of terms get numbers without an object for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
        self._find_shared = _none if base is None else base.find_text if base._base else base._numbers.get
        self._numbers: dict[str, int] = {}
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
        own, shared = self._numbers, self._find_shared
        found: list[int] = [*map(own.get, texts)]  # type: ignore[arg-type]  # the loop fills in what is missing
        following = len(self)
        for place, text in enumerate(texts) if None in found else ():
            if found[place] is None:
                number = shared(text)
                if number is None and (number := own.setdefault(text, following)) == following:
                    self._texts.append(text)
                    following += 1
                found[place] = number
        return found

    def kept(self, numbers: Iterable[int]) -> Terms:
        """New numbers, in the same order, for the base's terms and these ones, which ascend."""
        found = Terms(self._base)
        found._texts = [self._texts[number - self._first] for number in numbers]
        found._numbers = {text: self._first + place for place, text in enumerate(found._texts)}
        return found

    def since(self, number: int) -> list[str]:
        """The texts of the terms from a number on, which is none of the base's."""
        return self._texts[number - self._first :]

    def find(self, term: Term) -> int | None:
        """The number of the term; None if it has none."""
        return self.find_text(text_of(term))

    def find_text(self, text: str) -> int | None:
        known = self._numbers.get(text)
        return self._find_shared(text) if known is None else known

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


def _none(text: str) -> int | None:  # noqa: ARG001 - as those that find a term
    return None
