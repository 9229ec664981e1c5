"""The cases' language of conditions: text → tree → SQL in Spark's dialect.

Operators from lowest to highest precedence: `|| or`, `&& and`, `! not`, one comparison, `+ -`, `* / %`, unary `-`.
Logic has two values: a comparison with NULL is false, so a condition that is unknown in SQL is made false at once. All
numbers are doubles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>'[^']*')"
    r"|(?P<quoted>`[^`]+`)|(?P<name>[A-Za-z_$][\w$]*)|(?P<sign>\|\||&&|[=!<>]=|[-+*/%<>!().,]))"
)
WORDS = {"or": "||", "and": "&&", "not": "!"}
CONSTANTS = {"true": True, "false": False, "null": None}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
AGGREGATES = ("sum", "count", "avg", "min", "max", "first", "last")
FUNCTIONS = {"startsWith": "startswith", "contains": "contains", "abs": "abs"}


@dataclass(frozen=True)
class Literal:
    value: float | str | bool | None


@dataclass(frozen=True)
class Field:
    """A field of the current event."""

    name: str


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the events that a stage has so far; without a field: count(stage)."""

    function: str
    stage: str
    field: str | None


@dataclass(frozen=True)
class Operation:
    """An operator or function, by its symbol or name in the cases' language; unary minus is `negate`."""

    function: str
    arguments: tuple[Node, ...]


Node: TypeAlias = Literal | Field | Aggregate | Operation


def parse(text: str) -> Node:
    """The tree of a condition; raises ValueError if the text is not a condition."""
    return _Parser(text).whole()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ValueError(f"{text[at:].strip()!r} is no token, in {text!r}")
        at, kind, token = found.end(), found.lastgroup, found[found.lastgroup]
        if kind == "name" and token in WORDS:
            kind, token = "sign", WORDS[token]
        yield _Token(kind, token)


class _Parser:
    """One function per level of precedence, the lowest first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*_tokens(text), _Token("end", "")]
        self.at = 0

    def whole(self) -> Node:
        node = self._either()
        self._take("end")
        return node

    def _either(self) -> Node:
        return self._chain(("||",), self._both)

    def _both(self) -> Node:
        return self._chain(("&&",), self._negation)

    def _negation(self) -> Node:
        return Operation("!", (self._negation(),)) if self._accept("!") else self._comparison()

    def _comparison(self) -> Node:
        left = self._sum()
        sign = self._accept(*COMPARISONS)
        return Operation(sign, (left, self._sum())) if sign else left

    def _sum(self) -> Node:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._chain(("*", "/", "%"), self._signed)

    def _signed(self) -> Node:
        return Operation("negate", (self._signed(),)) if self._accept("-") else self._primary()

    def _primary(self) -> Node:
        if self._accept("("):
            node = self._either()
            self._take("sign", ")")
            return node
        token = self._take("number", "text", "quoted", "name")
        if token.kind == "number":
            return Literal(float(token.text))
        if token.kind == "text":
            return Literal(token.text[1:-1])
        if token.kind == "name" and token.text in CONSTANTS:
            return Literal(CONSTANTS[token.text])
        if token.kind == "name" and self._accept("("):
            return self._call(token.text)
        return self._reference(token)

    def _reference(self, token: _Token) -> Node:
        name = _unquoted(token)
        return Aggregate("last", name, self._name()) if self._accept(".") else Field(name)

    def _call(self, function: str) -> Node:
        """The arguments in the parentheses after a function's name, up to and including the closing parenthesis."""
        if function in AGGREGATES:
            stage = self._name()
            field = self._name() if self._accept(".") else None
            self._take("sign", ")")
            return Aggregate(function, stage, field)
        if function not in FUNCTIONS:
            raise ValueError(f"{function!r} is no function, in {self.text!r}")
        arguments = [self._either()]
        while self._accept(","):
            arguments.append(self._either())
        self._take("sign", ")")
        return Operation(function, tuple(arguments))

    def _chain(self, signs: tuple[str, ...], operand: Callable[[], Node]) -> Node:
        node = operand()
        while sign := self._accept(*signs):
            node = Operation(sign, (node, operand()))
        return node

    def _name(self) -> str:
        return _unquoted(self._take("name", "quoted"))

    def _accept(self, *signs: str) -> str | None:
        token = self.tokens[self.at]
        if token.kind != "sign" or token.text not in signs:
            return None
        self.at += 1
        return token.text

    def _take(self, *wanted: str) -> _Token:
        """The next token, which must be of one of these kinds (or be this symbol)."""
        token = self.tokens[self.at]
        if token.kind not in wanted or (token.kind == "sign" and token.text not in wanted):
            raise ValueError(f"{token.text or 'the end'!r} is not expected there, in {self.text!r}")
        self.at += 1
        return token


def _unquoted(token: _Token) -> str:
    return token.text.strip("`")


def fields(node: Node) -> dict[str, bool]:
    """The event fields that a condition reads, each with whether it is used as text."""
    match node:
        case Field(name) | Aggregate(field=str(name)):
            return {name: False}
        case Operation(function, arguments):
            texts = function in ("startsWith", "contains") or (
                function in COMPARISONS and any(isinstance(a, Literal) and isinstance(a.value, str) for a in arguments)
            )
            found: dict[str, bool] = {}
            for argument in arguments:
                for name, text in fields(argument).items():
                    found[name] = found.get(name, False) or text or texts
            return found
        case _:
            return {}


def to_sql(node: Node) -> str:
    """The condition as SQL that is true or false, never unknown."""
    return _truth(node)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _truth(node: Node) -> str:
    match node:
        case Operation(("||" | "&&") as sign, (left, right)):
            return f"({_truth(left)} {'OR' if sign == '||' else 'AND'} {_truth(right)})"
        case Operation("!", (operand,)):
            return f"(NOT {_truth(operand)})"
        case Operation(function, (left, right)) if function in COMPARISONS:
            return _comparison(function, left, right)
        case Literal(bool(value)):
            return "TRUE" if value else "FALSE"
        case _:
            return f"coalesce({_value(node)}, FALSE)"


def _comparison(sign: str, left: Node, right: Node) -> str:
    if sign in ("==", "!="):
        negation = "" if sign == "==" else "NOT "
        null = Literal(None)
        if null in (left, right):
            return f"({_value(left if right == null else right)} IS {negation}NULL)"
        same = f"({_value(left)} <=> {_value(right)})"
        return f"(NOT {same})" if negation else same
    return f"coalesce({_value(left)} {sign} {_value(right)}, FALSE)"


def _value(node: Node) -> str:
    match node:
        case Literal(None):
            return "NULL"
        case Literal(str(text)):
            return "'" + text.replace("\\", "\\\\") + "'"
        case Literal(float(number)):
            return f"{number!r}D"
        case Field(name):
            return quoted(name)
        case Aggregate(function, stage, field):
            of = quoted(stage) if field is None else f"{quoted(stage)}.{quoted(field)}"
            return f"coalesce(sum({of}), 0D)" if function == "sum" else f"{function}({of})"
        case Operation("negate", (operand,)):
            return f"(-{_value(operand)})"
        case Operation(("+" | "-" | "*" | "/" | "%") as sign, (left, right)):
            return f"({_value(left)} {sign} {_value(right)})"
        case Operation(function, arguments) if function in FUNCTIONS:
            return f"{FUNCTIONS[function]}({', '.join(map(_value, arguments))})"
        case _:
            return _truth(node)
