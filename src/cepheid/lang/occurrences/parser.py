"""The notation of the event algebra: text → expressions and declarations.

    Big = ?p: Payment [ p.amount > 1000 ]
    (?a: Login; ?b: Login)_120s [ ?a.user = ?b.user ] - Logout

The notation has these forms:

    A; B        sequence
    A & B       and
    A | B       or
    A - B       minus
    A -[F] B    minus where F holds
    (A)_120s    within
    A + 10s     delay
    ?v: A       binds the variable v
    A [F]       filters; F is SQL, or in a pattern with knowledge a semantic filter or [sql: …]

The signs of logic and the true minus sign are accepted, too. What follows a single expression (`_120s`, `+ 10s`, `[F]`)
binds more strongly than an operator between two. Different operators between expressions need parentheses, as in the
paper; equal ones are grouped from the left. A length of time is `120s` or, in braces, `{2 minutes}`. Names with
characters other than letters, digits and underscores need back-quotes. `cepheid.lang.occurrences.printer` is the
inverse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple, TypeVar

from cepheid.errors import PatternError, Problem
from cepheid.lang.duration import WORD, parse_duration
from cepheid.lang.occurrences.expression import (
    Both,
    Bound,
    Condition,
    Delayed,
    Either,
    Filtered,
    Leaf,
    Occurrence,
    OfTwo,
    RestrictedType,
    Then,
    Within,
    Without,
    depth_of,
)
from cepheid.lang.occurrences.variables import plain_condition
from cepheid.lang.semantic import SemanticFilter, semantic

_T = TypeVar("_T")

MAX_NESTING = 50
"""The most levels of nested parentheses; each takes a few of Python's stack frames."""
MAX_DEPTH = 200
"""The most levels of nested operators."""

PLAIN_NAME = re.compile(r"[^\W\d_]\w*")
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)+)`")
_VARIABLE = re.compile(r"\?([^\W\d]\w*)\s*:")
_SPACE = re.compile(r"\s*")
_LENGTH = re.compile(rf"\d+\s*{WORD}(?:\s*\d+\s*{WORD})*")
_IN_BRACES = re.compile(r"\{([^{}]*)\}")

_WORD_BETWEEN = re.compile(r"([^\W\d_]\w*)\s*(?=[(?`]|\s[^\W\d_])")

_OPERATORS: dict[str, type[OfTwo]] = {
    ";": Then,
    "&": Both,
    "\N{LOGICAL AND}": Both,
    "|": Either,
    "\N{LOGICAL OR}": Either,
    "-": Without,
    "\N{MINUS SIGN}": Without,
}
SQL = "sql:"
"""What SQL in brackets begins with in a pattern with knowledge."""
_QUOTES = "'\"`"


class Declared(NamedTuple):
    """What a text contains: an expression, and the types that it declares."""

    expression: Occurrence
    restricted: tuple[RestrictedType, ...]


def parse_occurrences(text: str, *, semantic: bool = False) -> Declared:
    """The expression, and the types that are declared before it. `semantic`: conditions are semantic filters, but for
    those that begin with `sql:`.

    Raises:
        PatternError: the text is not valid; lists all problems, each with its place.
    """
    return _read(text, _whole, semantic=semantic)


def parse_restricted(name: str, text: str, *, semantic: bool = False) -> RestrictedType:
    """The declaration of the restricted type `name`; the text is its right side, `?v: A [F]`. `semantic` as above.

    Raises:
        PatternError: the text is not valid; lists all problems, each with its place.
    """
    return _read(text, lambda reader: _declared(reader, name), semantic=semantic)


def _read(text: str, rule: Callable[[_Reader], _T], *, semantic: bool) -> _T:
    reader = _Reader(text, semantic)
    try:
        found = rule(reader)
        if not reader.at_end():
            raise reader.unexpected("the end is expected")
        if not reader.problems:
            return found
    except PatternError as error:
        reader.problems += error.problems
    raise PatternError([replace(problem, text=text) for problem in reader.problems])


@dataclass
class _Reader:
    """A position in the text, and functions that read from there."""

    text: str
    semantic: bool
    at: int = 0
    nesting: int = 0
    problems: list[Problem] = field(default_factory=list)
    """Problems in parts whose end is known, so that reading can continue after them."""

    def skip(self) -> int:
        """Skips spaces, and returns the new position."""
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return self.at

    def at_end(self) -> bool:
        return self.skip() == len(self.text)

    def sees(self, *symbols: str) -> str | None:
        """The symbol that comes next, if it is one of these."""
        at = self.skip()
        return next((symbol for symbol in symbols if self.text.startswith(symbol, at)), None)

    def accept(self, *symbols: str) -> str | None:
        symbol = self.sees(*symbols)
        self.at += len(symbol or "")
        return symbol

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            raise self.unexpected(f"{symbol!r} is expected")

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Takes what the pattern matches next; None, with nothing taken, if it does not match."""
        found = pattern.match(self.text, self.skip())
        if found is not None:
            self.at = found.end()
        return found

    def unexpected(self, expected: str) -> PatternError:
        if self.at_end():
            last = max(len(self.text.rstrip()) - 1, 0)
            return _refused(f"{expected}, but the text ends here", (last, last + 1))
        name = PLAIN_NAME.match(self.text, self.at)
        found = name[0] if name else self.text[self.at]
        return _refused(f"{expected}, found {found!r}", (self.at, self.at + len(found)))

    def checked(self, start: int, read: Callable[[], _T], instead: _T) -> _T:
        """The result of `read`. If it raises, its problems are placed from `start` to here, and the result is
        `instead`.
        """
        try:
            return read()
        except PatternError as error:
            self.problems += [replace(problem, span=(start, self.at)) for problem in error.problems]
            return instead


def _refused(message: str, span: tuple[int, int], hint: str | None = None) -> PatternError:
    return PatternError(Problem(message, span=span, hint=hint))


# Declarations


def _whole(reader: _Reader) -> Declared:
    restricted = _declarations(reader)
    expression = _combined(reader)
    if not reader.at_end():
        raise reader.unexpected("an operator or the end is expected")
    if depth_of(expression) > MAX_DEPTH:
        raise _refused(f"operators are nested more than {MAX_DEPTH} levels deep", (0, len(reader.text)))
    return Declared(expression, restricted)


def _declarations(reader: _Reader) -> tuple[RestrictedType, ...]:
    """`T = ?v: A [F]`, any number of times."""
    declared: list[RestrictedType] = []
    while True:
        start = reader.skip()
        name = _name(reader)
        if name is None or not reader.accept("="):
            reader.at = start
            return tuple(declared)
        declared.append(_declared(reader, name))


def _declared(reader: _Reader, name: str) -> RestrictedType:
    variable = reader.take(_VARIABLE)
    base = _name(reader)
    if base is None:
        raise reader.unexpected("a type is expected")
    if not reader.sees("["):
        raise reader.unexpected("a condition in brackets is expected, as in T = ?v: A [ v.amount > 10 ]")
    return RestrictedType(name, base, _condition(reader), variable[1] if variable else None)


# Expressions


def _combined(reader: _Reader) -> Occurrence:
    """One expression, or several with the same operator between them."""
    found = _followed(reader)
    first: str | None = None
    while (symbol := _operator(reader)) is not None:
        if first is not None and _OPERATORS[symbol] is not _OPERATORS[first]:
            one, other = (f"{';' if sign == ';' else f' {sign}'} " for sign in (first, symbol))
            hint = f"Write (A{one}B){other}C or A{one}(B{other}C), whichever is meant."
            message = "different operators need parentheses, which say what belongs together"
            reader.problems.append(Problem(message, span=(reader.at - len(symbol), reader.at), hint=hint))
        first = first or symbol
        made = _OPERATORS[symbol]
        if made is Without:
            condition = _condition(reader) if reader.sees("[") else None
            found = Without(found, _followed(reader), condition)
        else:
            found = made(found, _followed(reader))
    return found


def _operator(reader: _Reader) -> str | None:
    """Takes the sign of the next operator; None if there is none. A word in its place is reported, and read as `;`."""
    if (symbol := reader.accept(*_OPERATORS)) is not None or (word := reader.take(_WORD_BETWEEN)) is None:
        return symbol
    hint = "Write A; B for A before B, A & B for both, A | B for any, A - B for A without B."
    reader.problems.append(Problem(f"no operator is named {word[1]!r}", span=word.span(1), hint=hint))
    return ";"


def _followed(reader: _Reader) -> Occurrence:
    """One expression and what follows it: a window, delays, conditions."""
    found = _single(reader)
    while True:
        if reader.accept("_"):
            found = Within(found, _length(reader, "_120s"))
        elif reader.accept("+"):
            found = Delayed(found, _length(reader, "+ 10s"))
        elif reader.sees("["):
            found = Filtered(found, _condition(reader))
        else:
            return found


def _single(reader: _Reader) -> Occurrence:
    variable = reader.take(_VARIABLE)
    if variable is not None:
        if reader.sees("?"):
            raise reader.unexpected("a type or '(' is expected: an occurrence has one variable")
        return Bound(_single(reader), variable[1])
    start = reader.at
    if reader.accept("("):
        reader.nesting += 1
        if reader.nesting > MAX_NESTING:
            raise _refused(f"parentheses are nested more than {MAX_NESTING} levels deep", (start, start + 1))
        found = _combined(reader)
        reader.expect(")")
        reader.nesting -= 1
        return found
    name = _name(reader)
    if name is None:
        raise reader.unexpected("a type, '(' or '?variable:' is expected")
    return Leaf(name)


def _name(reader: _Reader) -> str | None:
    if (quoted := reader.take(_QUOTED_NAME)) is not None:
        return quoted[1].replace("``", "`")
    plain = reader.take(PLAIN_NAME)
    return None if plain is None else plain[0]


def _length(reader: _Reader, example: str) -> timedelta:
    start = reader.skip()
    braces = reader.take(_IN_BRACES)
    found = braces or reader.take(_LENGTH)
    if found is None:
        raise reader.unexpected(f"a length of time with its unit is expected, as in {example}")
    return reader.checked(start, lambda: parse_duration(found[1] if braces else found[0], or_zero=True), timedelta(0))


def _condition(reader: _Reader) -> Condition:
    """The text between a bracket and its closing bracket."""
    start = reader.skip()
    end = _closing(reader.text, start)
    if end is None:
        raise _refused("this bracket is not closed", (start, start + 1))
    reader.at = end + 1
    written = reader.text[start + 1 : end]
    sql = written.lstrip().removeprefix(SQL)
    if reader.semantic and sql == written.lstrip():
        return reader.checked(start, lambda: semantic(written), SemanticFilter(""))
    return reader.checked(start, lambda: plain_condition(sql or written), "TRUE")


def _closing(text: str, start: int) -> int | None:
    """Where the bracket at `start` closes; brackets in quotes do not count."""
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char in _QUOTES:
            at = _end_of_quote(text, at)
        depth += (char == "[") - (char == "]")
        if not depth:
            return at
        at += 1
    return None


def _end_of_quote(text: str, start: int) -> int:
    """The place of the quote that closes the one at `start`, or the end of the text."""
    at = start + 1
    while at < len(text) and text[at] != text[start]:
        at += 2 if text[at] == "\\" and text[start] != "`" else 1
    return at
