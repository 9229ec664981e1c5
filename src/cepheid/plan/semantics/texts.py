"""SWRL's built-ins for texts and booleans as SQL, where Spark and DuckDB give exactly their results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from sys import maxunicode

import pyarrow as pa

from cepheid.lang.parameters import string_literal
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.numbers import Computation
from cepheid.plan.semantics.values import SqlValue

Test = Callable[[Sequence[SqlValue]], str | None]
"""SQL of a test; None: it fails for all values of these kinds. NotLifted: it has no SQL."""
_LONGEST = 2**31 - 1
_DOTTED = "\u0130"
"""The only character whose lower case has two: i, and a point above."""


def _are_texts(given: Sequence[SqlValue]) -> bool:
    if len(frozenset[str]().union(*(value.events for value in given))) > 1:
        raise NotLifted("texts of several events are computed with")
    return all(value.kind == "text" for value in given)


def _joined(given: Sequence[SqlValue]) -> SqlValue | None:
    if not _are_texts(given):
        return None
    if len(given) == 1:
        return given[0]
    events = frozenset[str]().union(*(value.events for value in given))
    return SqlValue(f"concat({', '.join(value.sql for value in given)})", "text", pa.string(), events)


def _length(given: Sequence[SqlValue]) -> SqlValue | None:
    if not _are_texts(given):
        return None
    return SqlValue(f"length({given[0].sql})", "integer", pa.int32(), given[0].events, (0, _LONGEST))


def _not(given: Sequence[SqlValue]) -> SqlValue | None:
    return replace(given[0], sql=f"(NOT {given[0].sql})", literal=None) if given[0].kind == "boolean" else None


def _function(name: str) -> Test:
    def test(given: Sequence[SqlValue]) -> str | None:
        return f"{name}({', '.join(value.sql for value in given)})" if _are_texts(given) else None

    return test


def _ignoring_case(*, whole: bool) -> Test:
    """Whether the second text, a constant, is the first, or is in it, in lower case."""

    def test(given: Sequence[SqlValue]) -> str | None:
        if not _are_texts(given):
            return None
        value, part = given
        text = _constant(part)
        if whole and text is None and _constant(value) is not None:
            (value, part), text = (part, value), _constant(value)
        if text is None or not text.isascii() or not text.isprintable():
            raise NotLifted("case is ignored in texts other than constants in ASCII")
        classes = [_any_case(char) for char in text.lower()]
        if not whole and text.lower().endswith("i"):
            classes[-1] = f"[iI{_DOTTED}]"
        # ^ and $ would be ends of lines, too: so a whole text has also as many characters.
        same = f"{value.sql} RLIKE {string_literal(''.join(classes))}"
        return f"length({value.sql}) = {len(text)} AND {same}" if whole else same

    return test


def _constant(value: SqlValue) -> str | None:
    return None if value.literal is None else value.literal.text


def _any_case(char: str) -> str:
    """The characters that are this one in lower case, as a part of a regular expression."""
    found = _by_lower_case().get(char, (char,))
    return f"[{''.join(found)}]" if len(found) > 1 or found[0].isalnum() else re.escape(found[0])


@lru_cache(maxsize=1)
def _by_lower_case() -> Mapping[str, tuple[str, ...]]:
    """The characters of which each letter of ASCII is the lower case."""
    return {
        letter: tuple(chr(code) for code in range(maxunicode) if chr(code).lower() == letter)
        for letter in map(chr, range(ord("a"), ord("z") + 1))
    }


COMPUTED: Mapping[str, Computation] = {"stringConcat": _joined, "stringLength": _length, "booleanNot": _not}
TESTED: Mapping[str, Test] = {
    "startsWith": _function("startswith"),
    "endsWith": _function("endswith"),
    "contains": _function("contains"),
    "stringEqualIgnoreCase": _ignoring_case(whole=True),
    "containsIgnoreCase": _ignoring_case(whole=False),
}
"""By name: what tests all arguments."""
