"""The operators of texts, as Spark computes them: in characters, that is in code points, from place 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from cepheid.errors import ConditionError
from cepheid.plan.conditions.script import Operator


def _substring(text: str, place: int, length: int) -> str:
    """Places below 0 count from the end; place 0 is place 1. What is before the text counts as part of the length."""
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def _right(text: str, length: int) -> str:
    return text[-length:] if length > 0 else ""


def _replace(text: str, searched: str, replacement: str) -> str:
    return text.replace(searched, replacement) if searched else text


def _like(text: str, pattern: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """LIKE's pattern as a regular expression: `%` is any text, `_` any character, and a backslash takes what it means
    from the `%`, `_` or backslash after it.
    """
    pieces, characters = [], iter(pattern)
    for character in characters:
        match character:
            case "%":
                pieces.append(".*")
            case "_":
                pieces.append(".")
            case "\\":
                pieces.append(re.escape(_escaped(next(characters, None), pattern)))
            case _:
                pieces.append(re.escape(character))
    return re.compile("".join(pieces), re.DOTALL)


def _escaped(character: str | None, pattern: str) -> str:
    if character is None or character not in "%_\\":
        where = "ends with one backslash" if character is None else f"has {character!r} after a backslash"
        raise ConditionError(f"the pattern {pattern!r} of LIKE {where}; a backslash takes a '%', '_' or backslash")
    return character


TEXT_OPERATORS: Mapping[Operator, Callable[..., Any]] = {
    Operator.CONCAT: lambda *texts: "".join(texts),
    Operator.LIKE: _like,
    Operator.LOWER: str.lower,
    Operator.UPPER: str.upper,
    Operator.LENGTH: len,
    Operator.TRIM: lambda text: text.strip(" "),
    Operator.TRIM_LEFT: lambda text: text.lstrip(" "),
    Operator.TRIM_RIGHT: lambda text: text.rstrip(" "),
    Operator.SUBSTRING: _substring,
    Operator.RIGHT: _right,
    Operator.STARTS_WITH: str.startswith,
    Operator.ENDS_WITH: str.endswith,
    Operator.CONTAINS: lambda text, part: part in text,
    Operator.POSITION: lambda text, part: text.find(part) + 1,
    Operator.REPLACE: _replace,
    Operator.REVERSE: lambda text: text[::-1],
}
"""What each computes from its operands, which are never NULL."""
