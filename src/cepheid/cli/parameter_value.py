"""The value of a parameter as written on a command line."""

from __future__ import annotations

import re
from datetime import date

from cepheid.errors import PatternError
from cepheid.lang.expression import Literal
from cepheid.lang.parameters import ParameterValue
from cepheid.lang.sql.parser import parse_expression

_NUMBER = re.compile(r"[-+]?([0-9]+|([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?)")
_QUOTED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ)?\s*'", re.IGNORECASE)


def parameter_value(text: str) -> ParameterValue:
    """The value that `text` denotes. Numbers, true and false are written as in pattern files; `DATE '…'`, `TIMESTAMP
    '…'` and quoted text as in SQL. Anything else is text.

    Raises:
        PatternError: the text begins like a date, time or quoted text, but is invalid.
    """
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
