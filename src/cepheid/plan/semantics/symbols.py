"""What the arguments of atoms are, where events are columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from cepheid.knowledge.filters.syntax import Argument, Atom, Variable
from cepheid.knowledge.terms import STRING, XSD, Iri, Literal, Term
from cepheid.plan.conditions.types import is_integer, is_string
from cepheid.plan.semantics.inert import NotLifted, Related
from cepheid.plan.semantics.name_lists import in_list
from cepheid.plan.semantics.names_sql import Names, quoted

_INTEGER = re.compile(r"0|-?[1-9]\d{0,19}", re.ASCII)
"""How an integer of a column is written, which has at most 64 bits."""


@dataclass(frozen=True)
class Event:
    """The individual of an event, whose columns are written after `prefix`."""

    prefix: str


@dataclass(frozen=True)
class OwnNode:
    """A node of an event."""

    prefix: str
    related: Related


@dataclass(frozen=True, eq=False)
class Named:
    """An individual that an event names."""

    prefix: str
    related: Related
    names: Names

    def among(self, terms: Collection[Term]) -> str:
        """SQL: whether it is one of these."""
        return self.names.among([one for one in terms if isinstance(one, Iri)], self.prefix)


@dataclass(frozen=True)
class Valued:
    """A literal of an event."""

    prefix: str
    column: str
    type: pa.DataType

    @property
    def sql(self) -> str:
        return f"{self.prefix}{quoted(self.column)}"

    def among(self, terms: Collection[Term]) -> str:
        """SQL: whether it is one of these terms. "1.0" and "1" are two.

        Raises:
            NotLifted: literals of the column's type are not compared as terms.
        """
        if not (is_string(self.type) or is_integer(self.type)):
            raise NotLifted("literals of the knowledge are those of events, and neither texts nor integers")
        values = {one.text for one in terms if isinstance(one, Literal) and self._has(one)}
        return in_list(self.sql, values, of_texts=is_string(self.type))

    def _has(self, literal: Literal) -> bool:
        """Whether a value of the column may be the literal."""
        if literal.language is not None:
            return False
        if is_string(self.type):
            return literal.datatype == STRING
        if literal.datatype != f"{XSD}integer" or not _INTEGER.fullmatch(literal.text):
            return False
        return bool(abs(int(literal.text)) < 2 ** (self.type.bit_width - 1))


Symbol: TypeAlias = Event | OwnNode | Named | Valued | Iri | Literal
"""What a variable is, or a constant."""


@dataclass(frozen=True)
class Way:
    """One way in which a filter may be true."""

    conditions: tuple[str, ...] = ()
    """SQL, all of which must be true."""
    bound: Mapping[str, Symbol] = field(default_factory=dict)
    remaining: tuple[Atom, ...] = ()

    def so(self, *conditions: str, **bound: Symbol) -> Way:
        return Way((*self.conditions, *conditions), {**self.bound, **bound}, self.remaining)

    def term(self, argument: Argument) -> Symbol | None:
        """What the argument is; None: a free variable."""
        return self.bound.get(argument.name) if isinstance(argument, Variable) else argument


def shown(atom: Atom) -> str:
    """The atom, for messages."""
    name = atom.name.value.rpartition("#")[2].rpartition("/")[2]
    arguments = ", ".join(f"?{one.name}" if isinstance(one, Variable) else str(one) for one in atom.arguments)
    return f"{name}({arguments})"
