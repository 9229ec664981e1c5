"""LIKE and RLIKE: translates Java's patterns to DuckDB's, if their meaning is the same in both."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import Fragment, quoted
from cepheid.hosts.duckdb.operators import NotInProcess, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import is_string, sql_name

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0b\f\r"}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_QUANTIFIER = re.compile(r"[*+?]|\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\}")


def like(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """`value LIKE pattern [ESCAPE character]`; a backslash escapes unless another character is named."""
    _check_text(args[0], "LIKE")
    pattern, escape = _constant(args[1], "LIKE"), _constant(args[2], "ESCAPE") if len(args) > 2 else "\\"
    if len(escape) != 1 or escape in "%_":
        raise NotInProcess("ESCAPE takes one character other than % and _; anything else")
    if not re.fullmatch(rf"(?:[^{re.escape(escape)}]|{re.escape(escape)}[%_{re.escape(escape)}])*", pattern, re.DOTALL):
        raise NotInProcess(f"{escape!r} before anything but %, _ and itself")
    return guarded(args[:1], f"{args[0].text} LIKE {quoted(pattern)} ESCAPE {quoted(escape)}", pa.bool_())


def rlike(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """Whether the regular expression matches anywhere in the value."""
    _check_text(args[0], "RLIKE")
    pattern = regular_expression(_constant(args[1], "RLIKE"))
    return guarded(args[:1], f"regexp_matches({args[0].text}, {quoted(pattern)})", pa.bool_())


def _check_text(value: Fragment, word: str) -> None:
    if not (is_string(value.type) or arrow.is_null(value.type)):
        raise NotInProcess(f"{word} takes STRING, got {sql_name(value.type)}")


def _constant(arg: Fragment, word: str) -> str:
    if arg.literal is None or not isinstance(arg.literal.value, str):
        raise NotInProcess(f"{word} with a pattern that is not a constant")
    return arg.literal.value


def regular_expression(pattern: str) -> str:
    r"""The RE2 expression that matches where the Java one does. Raises NotInProcess for parts that may differ.

    It matters only whether the expression matches, not whether it is greedy. Java's `.` excludes more line ends, its
    `$` allows one line end after it, and its `\s` has one more character. These are written out.
    """
    reader = _Reader(pattern)
    text = reader.alternatives()
    if reader.position != len(pattern):
        raise NotInProcess(f"{pattern[reader.position :]!r} in a regular expression")
    if reader.ends and reader.carriage:
        # Java's $ does not match between \r and \n; RE2 cannot express that.
        raise NotInProcess("'$' beside a class that contains line ends")
    return text


class _Reader:
    r"""Reads a Java expression from left to right; `ends` and `carriage`: whether it has $ and a class with \r."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.ends = False
        self.carriage = False

    def alternatives(self) -> str:
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        return "|".join(branches)

    def _branch(self) -> str:
        items = ""
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            items += self._item()
        return items

    def _item(self) -> str:
        start = self.pattern[self.position]
        if start in "^$":
            self.position += 1
            self.ends |= start == "$"
            if _QUANTIFIER.match(self.pattern, self.position):
                raise NotInProcess(f"a repeated {start!r} in a regular expression")
            return r"\A" if start == "^" else rf"(?:\r\n|[{_LINE_ENDS}])?\z"
        return self._atom(start) + self._quantifier()

    def _atom(self, start: str) -> str:
        if self._take("("):
            return self._group()
        if self._take("["):
            return self._class()
        self.position += 1
        if start == "\\":
            return self._escape()
        if start == ".":
            return f"[^{_LINE_ENDS}]"
        if start in "*+?{}]":
            raise NotInProcess(f"{start!r} at this place of a regular expression")
        return re.escape(start) if start.isascii() else start

    def _group(self) -> str:
        self._take("?:")
        if self._take("?"):
            raise NotInProcess("'(?' in a regular expression")
        inner = self.alternatives()
        if not self._take(")"):
            raise NotInProcess("a '(' without ')' in a regular expression")
        return f"(?:{inner})"

    def _escape(self) -> str:
        letter = self.pattern[self.position : self.position + 1]
        self.position += 1
        if letter.lower() in _CLASSES:
            self.carriage |= letter in "sDW"
            return f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]"
        return self._character(letter)

    def _character(self, letter: str) -> str:
        if letter in _CONTROLS:
            self.carriage |= letter in "rn"
            return _CONTROLS[letter]
        if not letter or letter.isalnum() or not letter.isascii():
            raise NotInProcess(f"'\\{letter}' in a regular expression")
        return re.escape(letter)

    def _class(self) -> str:
        members = "^" if self._take("^") else ""
        self.carriage |= bool(members)
        while not self._take("]"):
            members += self._member()
        if members in ("", "^"):
            raise NotInProcess("'[]' in a regular expression")
        return f"[{members}]"

    def _member(self) -> str:
        first = self.pattern[self.position : self.position + 1]
        self.position += 1
        if first == "\\":
            letter = self.pattern[self.position : self.position + 1]
            self.position += 1
            if letter in _CLASSES:
                self.carriage |= letter == "s"
                return _CLASSES[letter]
            return self._character(letter)
        if first == "-":
            return "-" if self.pattern[self.position - 2].isalnum() and self._next().isalnum() else r"\-"
        if not first or first in "[&^~":
            raise NotInProcess(f"{first!r} inside '[…]' of a regular expression")
        return re.escape(first) if first.isascii() else first

    def _quantifier(self) -> str:
        found = _QUANTIFIER.match(self.pattern, self.position)
        if not found:
            return ""
        self.position = found.end()
        self._take("?")
        if self._next() in ("*", "+", "?", "{"):
            raise NotInProcess("a repetition of a repetition in a regular expression")
        return found.group()

    def _next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.position):
            return False
        self.position += len(text)
        return True
