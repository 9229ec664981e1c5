"""Operators as users write them, for messages. In the tree they have names like those of functions."""

from __future__ import annotations

_OPERATORS = {
    "and": "AND",
    "or": "OR",
    "not": "NOT",
    "in": "IN",
    "between": "BETWEEN",
    "case": "CASE",
    "case_of": "CASE",
    "div": "DIV",
    "interval": "INTERVAL",
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "like_any": "LIKE ANY",
    "like_all": "LIKE ALL",
    "ilike_any": "ILIKE ANY",
    "ilike_all": "ILIKE ALL",
    "negate": "-",
    "index": "[…]",
    "field": ".",
    "lambda": "->",
    "trim_from": "trim(… FROM …)",
    "substr_from": "substr(… FROM …)",
    "substring_from": "substring(… FROM …)",
    "overlay_from": "overlay(… PLACING …)",
    "position_from": "position(… IN …)",
}
"""Names in the tree that are no functions of Spark → what is written."""
_ALSO_FUNCTIONS = {"positive": "+", "concat": "||", "<=>": "IS"}
"""Names in the tree that may also be written as they are → the other way to write them."""


def is_operator(name: str) -> bool:
    """Whether the name is that of an operator in the tree, which cannot be called as a function."""
    return name in _OPERATORS


def as_written(function: str, text: str = "") -> str:
    """The operator or function as it is written in its text."""
    if function in _ALSO_FUNCTIONS and text and function not in text.lower():
        return _ALSO_FUNCTIONS[function]
    return _OPERATORS.get(function, function)


def in_words(message: str, function: str, text: str) -> str:
    """The message about a call of the function in the text, in which the call is named as it is written."""
    written = as_written(function, text)
    if written == function:
        return message
    begin = f"{function} "
    message = message.replace(repr(function), repr(written))
    return f"{written} {message.removeprefix(begin)}" if message.startswith(begin) else message
