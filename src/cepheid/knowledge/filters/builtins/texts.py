"""Built-ins of SWRL for strings and booleans. Strings are sequences of code points."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from cepheid.knowledge.filters.builtins.numbers import numbers
from cepheid.knowledge.filters.builtins.patterns import pattern, replacement
from cepheid.knowledge.filters.values import NoValue, Value, as_double


def text(value: Value) -> str:
    """
    Raises:
        NoValue: the value is no string.
    """
    if not isinstance(value, str):
        raise NoValue(f"{value} is no string")
    return value


def _concat(*values: Value) -> str:
    return "".join(map(text, values))


def _substring(value: Value, start: Value, length: Value = math.inf) -> str:
    """As XPath: positions count from 1, are rounded, and may lie before the first."""
    given, first, most = text(value), _rounded(start), _rounded(length)
    return "".join(char for at, char in enumerate(given, 1) if first <= at < first + most)


def _rounded(value: Value) -> float:
    (number,) = numbers(value)
    double = as_double(number)
    return math.floor(double + 0.5) if math.isfinite(double) else double


def _normalize(value: Value) -> str:
    return re.sub(r"[ \t\r\n]+", " ", text(value)).strip(" ")


def _translate(value: Value, old: Value, new: Value) -> str:
    before, after = text(old), text(new)
    table = {ord(char): after[at] if at < len(after) else None for at, char in reversed([*enumerate(before)])}
    return text(value).translate(table)


def _before(value: Value, part: Value) -> str:
    head, found, _ = text(value).partition(text(part)) if part else ("", "", "")
    return head if found else ""


def _after(value: Value, part: Value) -> str:
    if part == "":
        return text(value)
    return text(value).partition(text(part))[2]


def _replace(value: Value, searched: Value, new: Value, flags: Value = "") -> str:
    compiled = pattern(text(searched), text(flags))
    if compiled.search(""):
        raise NoValue("the pattern matches the empty string")
    return compiled.sub(replacement(text(new), compiled.groups), text(value))


def _matches(value: Value, searched: Value, flags: Value = "") -> bool:
    return pattern(text(searched), text(flags)).search(text(value)) is not None


def _not(value: Value) -> bool:
    if not isinstance(value, bool):
        raise NoValue(f"{value} is no boolean")
    return not value


COMPUTED: Mapping[str, tuple[Callable[..., Value], int, int | None]] = {
    "stringConcat": (_concat, 1, None),
    "substring": (_substring, 2, 3),
    "stringLength": (lambda value: len(text(value)), 1, 1),
    "normalizeSpace": (_normalize, 1, 1),
    "upperCase": (lambda value: text(value).upper(), 1, 1),
    "lowerCase": (lambda value: text(value).lower(), 1, 1),
    "translate": (_translate, 3, 3),
    "substringBefore": (_before, 2, 2),
    "substringAfter": (_after, 2, 2),
    "replace": (_replace, 3, 4),
    "booleanNot": (_not, 1, 1),
}
TESTED: Mapping[str, tuple[Callable[..., bool], int, int | None]] = {
    "stringEqualIgnoreCase": (lambda one, other: text(one).lower() == text(other).lower(), 2, 2),
    "contains": (lambda value, part: text(part) in text(value), 2, 2),
    "containsIgnoreCase": (lambda value, part: text(part).lower() in text(value).lower(), 2, 2),
    "startsWith": (lambda value, part: text(value).startswith(text(part)), 2, 2),
    "endsWith": (lambda value, part: text(value).endswith(text(part)), 2, 2),
    "matches": (_matches, 2, 3),
}
