"""Lists of names as SQL. A long one is one constant, which is split: a list of constants takes too long to plan.

Both hosts look for these texts, and make a table of each (`DuckDbEngine`, `cepheid.hosts.spark.lists`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cepheid.lang.parameters import string_literal

MARK = "\x1f"
"""What is between the names of a long list."""
BETWEEN = "\x1e"
"""What is between the columns of which a name is made, in a long list."""
LONG = 1000
"""Longer lists are one constant."""


def in_list(column: str, values: Collection[str], *, of_texts: bool) -> str:
    """SQL: whether a column of texts, or of integers, has one of these values."""
    listed = sorted(values)
    if not listed:
        return "FALSE"
    if len(listed) <= LONG or any(MARK in value for value in listed):
        return f"{column} IN ({', '.join(map(string_literal, listed) if of_texts else listed)})"
    text = _text(column, of_texts=of_texts)
    return f"array_contains(split({string_literal(MARK.join(listed))}, '{MARK}'), {text})"


def joined(columns: Sequence[str], of_texts: Sequence[bool]) -> str:
    """SQL of the values of several columns as one text."""
    texts = (_text(column, of_texts=of_text) for column, of_text in zip(columns, of_texts, strict=True))
    between = f", '{BETWEEN}', "
    return f"concat({between.join(texts)})"


def _text(column: str, *, of_texts: bool) -> str:
    return column if of_texts else f"CAST({column} AS STRING)"
