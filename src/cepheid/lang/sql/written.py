"""How a call is written, for messages: the names of some calls are the parser's own."""

from __future__ import annotations

_WRITTEN = {
    "index": "[ ]",
    "field": ".",
    "negate": "-",
    "positive": "+",
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "lambda": "->",
    "interval": "INTERVAL",
    "case": "CASE",
    "case_of": "CASE",
    "in": "IN",
    "between": "BETWEEN",
    "like": "LIKE",
    "like_any": "LIKE ANY",
    "like_all": "LIKE ALL",
    "ilike": "ILIKE",
    "ilike_any": "ILIKE ANY",
    "ilike_all": "ILIKE ALL",
    "rlike": "RLIKE",
    "and": "AND",
    "or": "OR",
    "not": "NOT",
    "trim_from": "trim(… FROM …)",
    "substring_from": "substring(… FROM …)",
    "substr_from": "substr(… FROM …)",
    "overlay_from": "overlay(… PLACING …)",
    "position_from": "position(… IN …)",
}


def written_form(function: str) -> str:
    """The operator or function as one writes it."""
    return _WRITTEN.get(function, function)


_FUNCTIONS_TOO = {"positive", "like", "ilike", "rlike"}
"""Names that Spark has functions of, too."""


def is_operator(name: str) -> bool:
    """Whether the name is the parser's own, which cannot be called as a function."""
    return name in _WRITTEN and name not in _FUNCTIONS_TOO


def as_written(function: str, text: str = "") -> str:
    """The operator or function as it is written in its text."""
    if function == "concat" and text and "concat" not in text.lower():
        return "||"
    if function == "<=>" and text and "<=>" not in text:
        return "IS"
    if function in _FUNCTIONS_TOO and f"{function}(" in text.lower():
        return function
    return written_form(function)


def in_words(message: str, function: str, text: str) -> str:
    """The message about a call of the function in the text, in which the call is named as it is written."""
    written = as_written(function, text)
    if written == function:
        return message
    begin = f"{function} "
    message = message.replace(repr(function), repr(written))
    return f"{written} {message.removeprefix(begin)}" if message.startswith(begin) else message
