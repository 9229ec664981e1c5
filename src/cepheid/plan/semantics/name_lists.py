"""Lists of names as SQL. A long one is one constant, which is split: a list of constants takes too long to plan.

Both hosts look for these texts, and make a table of each (`DuckDbEngine`, `cepheid.hosts.spark.lists`).
"""

from __future__ import annotations

from collections.abc import Collection

from cepheid.lang.parameters import string_literal

MARK = "\x1f"
"""What is between the names of a long list."""
LONG = 1000
"""Longer lists are one constant."""


def in_list(column: str, values: Collection[str], *, of_texts: bool) -> str:
    """SQL: whether a column of texts, or of integers, has one of these values."""
    listed = sorted(values)
    if not listed:
        return "FALSE"
    if len(listed) <= LONG or any(MARK in value for value in listed):
        return f"{column} IN ({', '.join(map(string_literal, listed) if of_texts else listed)})"
    text = column if of_texts else f"CAST({column} AS STRING)"
    return f"array_contains(split({string_literal(MARK.join(listed))}, '{MARK}'), {text})"
