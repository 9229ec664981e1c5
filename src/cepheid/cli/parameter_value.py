"""The value of a parameter as written on a command line."""

from __future__ import annotations

import re
from datetime import date

from cepheid.errors import PatternError
from cepheid.lang.expression import Literal
from cepheid.lang.parameters import ParameterValue, SingleValue
from cepheid.lang.sql.parser import parse_expression

_NUMBER = re.compile(r"[-+]?([0-9]+|([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?)")
_LISTED = re.compile(r"\s*((?:'(?:[^'\\]|\\.)*'|[^',])*)(,|$)")
"""An item of a list, in which a comma between quotes is text, and the comma after it."""
_QUOTED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ)?\s*'", re.IGNORECASE)


def parameter_value(text: str) -> ParameterValue:
    """The value that `text` denotes. Numbers, true and false are written as in pattern files; `DATE '…'`, `TIMESTAMP
    '…'` and quoted text as in SQL. `[a, b]` is a list of such values. Anything else is text.

    Raises:
        PatternError: the text begins like a date, time, quoted text or list, but is invalid.
    """
    if text.startswith("[") and text.endswith("]"):
        return _listed(text[1:-1])
    return _single_value(text)


def _listed(text: str) -> tuple[SingleValue, ...]:
    """The values between the brackets of a list."""
    items, position = [], 0
    while item := _LISTED.match(text, position):
        items.append(item[1].strip())
        position = item.end()
        if not item[2]:
            break
    else:
        raise PatternError(f"a quote is not closed: [{text}]")
    if not all(items):
        raise PatternError(f"an item of a list is missing: [{text}]. Write '' for empty text")
    return tuple(_single_value(item) for item in items)


def _single_value(text: str) -> SingleValue:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if number := _NUMBER.fullmatch(text):
        return float(text) if number[2] else int(text)
    if not _QUOTED.match(text):
        return text
    match parse_expression(text):
        case Literal(value=str() | date() as value):
            return value
    raise PatternError("a date, time or quoted text as in SQL is expected: DATE '2026-01-31' or 'text'")
