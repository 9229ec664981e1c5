"""Rules for constants: numbers, strings, bytes, NULL and booleans, dates and timestamps, intervals.

This module finds where a constant's text begins and ends; `literals` says what it means.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import TypeAlias

import pyarrow as pa

from cepheid.lang import literals
from cepheid.lang.expression import Call, Expression, Literal
from cepheid.lang.sql.cursor import Cursor, refused
from cepheid.lang.sql.tokens import Kind, Token

_Reader: TypeAlias = Callable[[str], date | datetime]
_TIME_READERS: dict[str, tuple[_Reader, pa.DataType]] = {
    "DATE": (literals.read_date, pa.date32()),
    "TIMESTAMP": (literals.read_timestamp, literals.TIMESTAMP),
    "TIMESTAMP_LTZ": (literals.read_timestamp, literals.TIMESTAMP),
    "TIMESTAMP_NTZ": (literals.read_timestamp, pa.timestamp("us")),
}
_TRUTH_VALUES = {"NULL": None, "UNKNOWN": None, "TRUE": True, "FALSE": False}


def constant(cursor: Cursor) -> Expression | None:
    """The constant that begins here; None, with nothing taken, if there is none. An interval with months is a Call."""
    token, after = cursor.next, cursor.peek()
    if token.kind is Kind.NUMBER or cursor.sees("-", "."):
        return _number(cursor)
    if token.kind is Kind.STRING:
        return _string(cursor)
    if token.kind is Kind.BYTES:
        return _bytes(cursor)
    if token.kind is Kind.WORD and after.kind is Kind.STRING and token.text in _TIME_READERS:
        return _time(cursor)
    if token.kind is Kind.WORD and after.kind is Kind.PARAMETER and token.text in _TIME_READERS:
        hint = f"Write {after.text} alone, and give it a {'date' if token.text == 'DATE' else 'datetime'}."
        raise refused(f"{token.text} is for text in quotes, not for a parameter", (token.start, after.end), hint)
    if token.text == "INTERVAL" and (after.kind in (Kind.NUMBER, Kind.STRING) or after.text in ("-", "+")):
        return _interval(cursor)
    return truth_value(cursor, "NULL", "TRUE", "FALSE")


def truth_value(cursor: Cursor, *words: str) -> Literal | None:
    """The constant for the next token if it is one of these words (NULL, UNKNOWN, TRUE or FALSE); None if it is not."""
    token = cursor.accept(*words)
    if token is None:
        return None
    value = _TRUTH_VALUES[token.text]
    return Literal(value, pa.null() if value is None else pa.bool_(), token.span)


def _number(cursor: Cursor) -> Literal:
    start = cursor.at
    cursor.accept("-")
    has_point = cursor.accept(".") is not None
    if cursor.next.kind is not Kind.NUMBER:
        raise cursor.unexpected("a number is expected")
    number = cursor.take()
    span = cursor.span(start)
    if has_point and "." in number.text:
        raise refused(f"{cursor.written(span)!r} is no number: it has two points", span, f"Write {number.text}.")
    value, type_ = cursor.checked(span, literals.read_number, cursor.written(span))
    return Literal(value, type_, span)


def _string(cursor: Cursor) -> Literal:
    """A string; adjacent strings are joined to one."""
    start = cursor.at
    text = ""
    previous: Token | None = None
    while cursor.next.kind is Kind.STRING:
        token = cursor.take()
        if previous is not None and previous.end == token.start and token.text[0] == previous.text[-1]:
            text += token.text[0]  # a doubled quote
        text += literals.read_string(token.text)
        previous = token
    return Literal(text, pa.string(), cursor.span(start))


def _bytes(cursor: Cursor) -> Literal:
    token = cursor.take()
    digits = token.text[2:-1]
    return Literal(bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)), pa.binary(), token.span)


def _time(cursor: Cursor) -> Literal:
    start = cursor.at
    read, type_ = _TIME_READERS[cursor.take().text]
    text = str(_string(cursor).value)
    span = cursor.span(start)
    value = cursor.checked(span, read, text)
    if isinstance(value, datetime) and type_ == pa.timestamp("us"):
        value = value.replace(tzinfo=None)
    return Literal(value, type_, span)


def _interval(cursor: Cursor) -> Expression:
    start = cursor.at
    cursor.expect("INTERVAL")
    if cursor.next.kind is Kind.STRING and cursor.peek(2).text == "TO":
        text = str(_string(cursor).value)
        first = cursor.take()
        cursor.expect("TO")
        last = cursor.take()
        words = (text, _singular(first), _singular(last))
        value = cursor.checked(cursor.span(start), literals.read_interval_fields, *words)
    else:
        text = _quantities(cursor)
        value = cursor.checked(cursor.span(start), literals.read_interval, text)
    span = cursor.span(start)
    if value is None:
        return Call("interval", (Literal(text, pa.string(), span),), span)
    return Literal(value, pa.duration("us"), span, days=literals.is_of_days(text))


def _quantities(cursor: Cursor) -> str:
    """`'3 hours 2 minutes'`, `3 hours 2 minutes` or `'3' HOURS` as the text `3 HOURS 2 MINUTES`."""
    if cursor.next.kind is Kind.STRING and not _is_unit(cursor.peek()):
        return str(_string(cursor).value)
    quantities: list[str] = []
    while cursor.next.kind in (Kind.NUMBER, Kind.STRING) or cursor.sees("-", "+"):
        sign = cursor.take().text if cursor.sees("-", "+") else ""
        amount = str(_string(cursor).value) if cursor.next.kind is Kind.STRING else cursor.take().text
        if not _is_unit(cursor.next):
            raise cursor.unexpected("a unit (days, hours, minutes, …) is expected")
        quantities.append(f"{sign}{amount} {cursor.take().text}")
        if not _is_unit(cursor.peek()):
            break
    return " ".join(quantities)


def _is_unit(token: Token) -> bool:
    return token.kind is Kind.WORD and literals.unit_name(token.text) is not None


def _singular(token: Token) -> str:
    return literals.unit_name(token.text) or token.text.lower()
