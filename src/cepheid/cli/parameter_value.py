"""The value of a parameter as written on a command line."""

from __future__ import annotations

import re
from datetime import date, timedelta

from cepheid.errors import PatternError, did_you_mean
from cepheid.lang.expression import Literal
from cepheid.lang.parameters import ParameterValue, SingleValue, make_parameter
from cepheid.lang.sql.parser import parse_expression

_NUMBER = re.compile(r"[-+]?([0-9]+|([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?)")
_LISTED = re.compile(r"\s*((?:'(?:[^'\\]|\\.)*'|[^',])*)(,|$)")
"""An item of a list, in which a comma between quotes is text, and the comma after it."""
_COLUMN = re.compile(r"@(.+\.(?:parquet|csv|jsonl|ndjson|json)):(.+)", re.IGNORECASE | re.DOTALL)
"""A file, and a column in it."""
_QUOTED = re.compile(r"(DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ)?\s*'|INTERVAL\s+['0-9+-]", re.IGNORECASE)


def parameter_value(text: str) -> ParameterValue:
    """The value that `text` denotes. Numbers, true and false are written as in pattern files; `DATE '…'`, `TIMESTAMP
    '…'`, `INTERVAL …` and quoted text as in SQL. `[a, b]` is a list of such values, and
    `@watchlist.csv:symbol` the list of the values in a column of a file. Anything else is text.

    Raises:
        PatternError: the text begins like a date, time, quoted text or list, but is invalid; the file has no such
            column, or one whose values cannot be a list.
        FileProblem: the file cannot be read.
    """
    if in_file := _COLUMN.fullmatch(text):
        return _in_column(in_file[1], in_file[2])
    if text.startswith("[") and text.endswith("]"):
        return _listed(text[1:-1])
    return _single_value(text)


def _in_column(file: str, name: str) -> ParameterValue:
    """The values of the column with this name."""
    from cepheid.cli.files import event_files, read_events

    table = read_events(event_files([file]), times=[])
    if name not in table.column_names:
        hint = did_you_mean(name, table.column_names)
        raise PatternError(f"{file} has no column {name!r}. {hint}")
    try:
        value = make_parameter("values", table[name]).value
    except PatternError as error:
        raise PatternError(f"{file}, column {name!r}: {error.problems[0].message}") from None
    assert value is not None
    return value


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
        case Literal(value=str() | date() | timedelta() as value):
            return value
    expected = "a date, time, interval of days to seconds or quoted text as in SQL is expected"
    raise PatternError(f"{expected}: DATE '2026-01-31', INTERVAL 5 MINUTES or 'text'")
