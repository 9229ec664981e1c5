"""Rules for names: of columns, stages and fields, of lambda parameters, of types."""

from __future__ import annotations

from dataclasses import replace

from cepheid.errors import PatternError
from cepheid.lang.expression import Literal, Name, Span
from cepheid.lang.sql.cursor import Cursor, refused
from cepheid.lang.sql.tokens import Kind, Token
from cepheid.lang.type_names import read_type

_RESERVED_WORDS = """AND OR NOT IN IS LIKE ILIKE RLIKE REGEXP BETWEEN CASE WHEN THEN ELSE END DIV SELECT FROM DISTINCT
    AS NULL TRUE FALSE ESCAPE OVER"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_AROUND_VALUES = ("(", ")", ",")


def is_reserved(token: Token) -> bool:
    """Whether the word needs back-quotes to be a name."""
    return token.kind is Kind.WORD and token.text in _RESERVED


def identifier(cursor: Cursor, expected: str) -> tuple[str, Span]:
    """One part of a name, as written but without back-quotes; `expected` begins the message if there is no name."""
    token = cursor.next
    if token.kind not in (Kind.WORD, Kind.QUOTED):
        raise cursor.unexpected(expected)
    cursor.take()
    return token.text if token.kind is Kind.QUOTED else cursor.written(token.span), token.span


def name(cursor: Cursor) -> Name:
    if is_reserved(cursor.next):
        raise _reserved(cursor)
    parts = [identifier(cursor, "a value is expected")]
    while cursor.accept("."):
        if cursor.sees("*"):
            raise refused("'*' is refused: name a column", cursor.span(cursor.at))
        parts.append(identifier(cursor, "a name is expected after the point"))
    return Name(tuple(part for part, _ in parts), tuple(span for _, span in parts))


def _reserved(cursor: Cursor) -> PatternError:
    error = cursor.unexpected("a value is expected")
    after = cursor.peek()
    if after.kind not in (Kind.SYMBOL, Kind.END) or after.text in _AROUND_VALUES:
        return error  # a value is missing here
    word = cursor.written(cursor.next.span)
    hint = f"{word} is a word of SQL: a stage or column of this name is written in back-quotes, `{word}`."
    return PatternError([replace(problem, hint=hint) for problem in error.problems])


def type_name(cursor: Cursor) -> Literal:
    """The target type of a cast: its text, and the type."""
    start = cursor.at
    identifier(cursor, "a type is expected")
    if cursor.accept("("):
        while cursor.next.kind is Kind.NUMBER or cursor.sees(","):
            cursor.take()
        cursor.expect(")")
    span = cursor.span(start)
    text = cursor.written(span)
    return Literal(text, cursor.checked(span, read_type, text), span)
