"""The terms of RDF: names of things, and literals. In facts they are numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

XSD = "http://www.w3.org/2001/XMLSchema#"
STRING = f"{XSD}string"


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


class Terms:
    """Numbers for terms, from 0. Those of `base` keep theirs."""

    def __init__(self, base: Terms | None = None) -> None:
        self._base = base
        self._first = 0 if base is None else len(base)
        self._numbers: dict[Term, int] = {}
        self._terms: list[Term] = []

    def __len__(self) -> int:
        return self._first + len(self._terms)

    def number(self, term: Term) -> int:
        """The number of the term, which gets one if it has none."""
        known = self.find(term)
        if known is None:
            known = self._numbers[term] = len(self)
            self._terms.append(term)
        return known

    def kept(self, numbers: Iterable[int]) -> Terms:
        """New numbers, in the same order, for the base's terms and these ones, which ascend."""
        found = Terms(self._base)
        found._terms = [self._terms[number - self._first] for number in numbers]
        found._numbers = {term: self._first + place for place, term in enumerate(found._terms)}
        return found

    def since(self, number: int) -> list[Term]:
        """The terms from a number on, which is none of the base's."""
        return self._terms[number - self._first :]

    def find(self, term: Term) -> int | None:
        """The number of the term; None if it has none."""
        known = None if self._base is None else self._base.find(term)
        return self._numbers.get(term) if known is None else known

    def term(self, number: int) -> Term:
        if number < self._first:
            assert self._base is not None
            return self._base.term(number)
        return self._terms[number - self._first]

    def is_literal(self, number: int) -> bool:
        return isinstance(self.term(number), Literal)
