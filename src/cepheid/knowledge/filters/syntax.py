"""The text of a filter: atoms joined by `∧` or `^`, such as `Book(?c) ∧ hasPrice(?c, ?p) ∧ greaterThan(?p, 1000)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

from cepheid.errors import FilterError, KnowledgeError, Problem, closest
from cepheid.knowledge.filters.builtins import BUILTINS
from cepheid.knowledge.terms import XSD, Iri, Literal

SWRLB = "http://www.w3.org/2003/11/swrlb#"
_SAME: Mapping[str, AtomKind] = {"sameAs": "same", "differentFrom": "different"}


class Variable(NamedTuple):
    name: str


Argument: TypeAlias = Variable | Iri | Literal
AtomKind: TypeAlias = OneOf["class", "property", "same", "different", "builtin"]


class Atom(NamedTuple):
    """A part of a filter."""

    kind: AtomKind
    name: Iri
    """The name of the class or property. That of a built-in is in the namespace of SWRL."""
    arguments: tuple[Argument, ...]


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<and>[∧^](?!\^))
      | (?P<variable>\?\w+)
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<type>\^\^)
      | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
      | (?P<iri><(?!_:)[^\x00-\x20<>"{}|^`\\]+>)
      | (?P<name>(?:[\w.-]*:)?[\w][\w.-]*)
      | (?P<mark>[(),])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_WORD = re.compile(r"\w+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_KINDS = {"and": "'∧'", "variable": "a ?variable", "text": "a text", "number": "a number", "iri": "<a name>"}
_KINDS |= {"name": "a name", "end": "the end"}
"""The kinds of tokens in words."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def span(self) -> tuple[int, int]:
        return self.at, self.at + len(self.text)


def is_word(name: str) -> bool:
    """Whether a variable can have the name."""
    return _WORD.fullmatch(name) is not None


class Located(NamedTuple):
    """An atom, and where its name is in the text."""

    atom: Atom
    span: tuple[int, int]


def parsed(text: str, prefixes: Mapping[str, str]) -> tuple[Atom, ...]:
    """The atoms of a filter. Names without a prefix are built-ins, or in the prefix "".

    Raises:
        FilterError: the text is no filter; the message says where.
    """
    return tuple(atom for atom, _ in located(text, prefixes))


def located(text: str, prefixes: Mapping[str, str]) -> list[Located]:
    """The atoms of a filter, as `parsed`, each with its place."""
    return _Parser(text, prefixes).filter()


def named(name: str, prefixes: Mapping[str, str]) -> Iri:
    """The name `prefix:name`, or `name` in the prefix "".

    Raises:
        KnowledgeError: the prefix is unknown.
    """
    prefix, _, local = name.partition(":") if ":" in name else ("", "", name)
    known = {"xsd": XSD, "swrlb": SWRLB, **prefixes}
    if prefix not in known:
        listed = ", ".join(f"{one}:" for one in sorted(known))
        near = "".join(f"Did you mean {one + ':'!r}? " for one in closest(prefix, sorted(known))[:1])
        raise KnowledgeError(f"the prefix {prefix + ':'!r} is unknown. {near}There are {listed}")
    return Iri(known[prefix] + local)


class _Parser:
    def __init__(self, text: str, prefixes: Mapping[str, str]) -> None:
        self._text, self._prefixes = text, prefixes
        self._tokens = [*self._read()]
        self._at = 0

    def _read(self) -> Sequence[_Token]:
        tokens, at = list[_Token](), 0
        while not tokens or tokens[-1].kind != "end":
            found = _TOKEN.match(self._text, at)
            if found is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise self._error("this cannot be read", _Token("", self._text[at : at + 1], at))
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found[kind], found.start(kind)))
            at = found.end()
        return tokens

    def _error(self, what: str, token: _Token) -> FilterError:
        return FilterError(Problem(what, "filter", self._text, token.span))

    def _next(self, *kinds: str) -> _Token:
        token = self._tokens[self._at]
        if kinds and token.kind not in kinds:
            found = repr(token.text) if token.text else "the end"
            expected = " or ".join(_KINDS[kind] for kind in kinds)
            raise self._error(f"{expected} is expected, not {found}", token)
        self._at += 1
        return token

    def _mark(self, *texts: str) -> str:
        token = self._next()
        if token.text not in texts:
            found = repr(token.text) if token.text else "the end"
            raise self._error(f"{' or '.join(map(repr, texts))} is expected, not {found}", token)
        return token.text

    def filter(self) -> list[Located]:
        atoms = [self._located()]
        while self._next("and", "end").kind == "and":
            atoms.append(self._located())
        return atoms

    def _located(self) -> Located:
        token = self._next("name", "iri", "text")
        begin = self._at
        atom = self._atom(token)
        self._check_individuals(atom, self._tokens[begin : self._at])
        return Located(atom, token.span)

    def _check_individuals(self, atom: Atom, tokens: Sequence[_Token]) -> None:
        """Raises FilterError for a literal where an individual must stand; `tokens` are those of the arguments."""
        literals = [one for one in tokens if one.kind in ("text", "number") or one.text in ("true", "false")]
        literals = [one for one in literals if not one.text.startswith('"&')]  # names
        places = {"class": (0,), "property": (0,), "same": (0, 1), "different": (0, 1), "builtin": ()}[atom.kind]
        for place in places:
            if isinstance(atom.arguments[place], Literal):
                raise self._error("an individual must stand here, and this is a literal", literals[-1 if place else 0])

    def _atom(self, token: _Token) -> Atom:
        name, arguments = token.text, tuple(self._arguments())
        if name in _SAME and len(arguments) == 2:
            return Atom(_SAME[name], Iri(name), arguments)
        builtin = self._builtin(token)
        if builtin is not None:
            self._check_number(builtin, len(arguments), token)
            return Atom("builtin", Iri(SWRLB + builtin), arguments)
        iri = self._iri(token)
        if len(arguments) in (1, 2):
            return Atom("class" if len(arguments) == 1 else "property", iri, arguments)
        what = f"{name} has {len(arguments)} arguments: a class has one, a property two"
        raise self._error(f"{what}{_suggested(name)}", token)

    def _builtin(self, token: _Token) -> str | None:
        """The local name, if the token names a built-in."""
        if token.kind != "name":
            return None
        prefix, _, local = token.text.rpartition(":")
        if ":" not in token.text:
            return local if local in BUILTINS else None
        if self._prefixes.get(prefix, SWRLB if prefix == "swrlb" else None) != SWRLB:
            return None
        if local not in BUILTINS:
            raise self._error(f"there is no built-in {local!r} here{_suggested(local)}", token)
        return local

    def _check_number(self, name: str, given: int, token: _Token) -> None:
        least, most = BUILTINS[name].least, BUILTINS[name].most
        if given < least or (most is not None and given > most):
            takes = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
            raise self._error(f"{name} has {given} arguments, and takes {takes}", token)

    def _arguments(self) -> Sequence[Argument]:
        self._mark("(")
        arguments = [self._argument()]
        while self._mark(",", ")") == ",":
            arguments.append(self._argument())
        return arguments

    def _argument(self) -> Argument:
        token = self._next("variable", "text", "number", "name", "iri")
        match token.kind:
            case "variable":
                return Variable(token.text[1:])
            case "number":
                return Literal(token.text, XSD + _number_type(token.text))
            case "name" | "iri":
                if token.text in ("true", "false"):
                    return Literal(token.text, f"{XSD}boolean")
                return self._iri(token)
        if token.text.startswith('"&'):
            return self._iri(token)
        text = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token.text[1:-1])
        if self._tokens[self._at].kind == "type":
            self._next("type")
            return Literal(text, self._iri(self._next("name", "iri", "text")).value)
        return Literal(text)

    def _iri(self, token: _Token) -> Iri:
        """The name `prefix:name`, `name` in the prefix "", `<IRI>` or `"&prefix;name"`."""
        text = token.text
        if token.kind == "iri":
            return Iri(text[1:-1])
        if token.kind == "text":
            found = re.fullmatch(r'"&([\w.-]*);(.*)"', text)
            if found is None:
                raise self._error(f"a name is expected, not the text {text}", token)
            text = f"{found[1]}:{found[2]}"
        try:
            return named(text, self._prefixes)
        except KnowledgeError as error:
            raise self._error(str(error), token) from None


def _number_type(text: str) -> str:
    if "e" in text.lower():
        return "double"
    return "decimal" if "." in text else "integer"


def _suggested(name: str) -> str:
    near = get_close_matches(name.rpartition(":")[2], BUILTINS)
    return f". Built-ins with a name like it: {', '.join(near)}" if near else ""
