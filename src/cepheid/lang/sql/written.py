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
