r"""Java's regular expressions as RE2's, which DuckDB has, if their meaning is the same in both.

Java's `.` excludes more line ends, its `$` allows one line end after it, and its `\s` has one more character. These are
written out. Parts that may differ are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cepheid.hosts.duckdb.rule import NotInProcess, WrongArguments

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0b\f\r"}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_QUANTIFIER = re.compile(r"[*+?]|\{([0-9]{1,3})(?:,([0-9]{1,3})?)?\}")
LINE_END = rf"(?:\r\n|[{_LINE_ENDS}])?"
"""What may be between the place of `$` and the end of the text."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression for RE2."""

    text: str
    groups: int
    """Of the Java pattern. The RE2 pattern has none if it says only whether it matches."""
    nullable: bool
    """Whether it may match the empty text."""
    ends: bool
    """Whether it has a `$`, so that its match may include the line end after it."""


def matching(pattern: str) -> str:
    """The RE2 expression that matches where the Java one does. It has no groups."""
    return _read(pattern, spans=False).text


def spanning(pattern: str) -> Pattern:
    """The RE2 expression whose match and groups are those of the Java one, apart from a line end after `$`."""
    return _read(pattern, spans=True)


def _read(pattern: str, *, spans: bool) -> Pattern:
    reader = _Reader(pattern, spans=spans)
    text, nullable = reader.alternatives()
    if pattern[reader.position :].startswith(")"):
        raise WrongArguments("a ')' without '(' in a regular expression")
    if reader.position != len(pattern):
        raise NotInProcess(f"{pattern[reader.position :]!r} in a regular expression")
    if reader.ends and reader.carriage:
        # Java's $ does not match between \r and \n; RE2 cannot express that.
        raise NotInProcess("'$' beside a class that contains line ends")
    return Pattern(text, reader.groups, nullable, reader.ends)


def _repeats_nothing(sign: str) -> WrongArguments:
    return WrongArguments(f"{sign!r} repeats nothing here in a regular expression. The character is '\\\\{sign}'")


class _Reader:
    r"""Reads a Java expression from left to right; `ends` and `carriage`: whether it has $ and a class with \r. Its
    methods return RE2's text, most of them also whether it may match the empty text.
    """

    def __init__(self, pattern: str, *, spans: bool) -> None:
        self.pattern = pattern
        self.spans = spans
        self.folds = pattern.startswith("(?i)")
        self.position = 4 if self.folds else 0
        self.groups = 0
        self.ends = False
        self.carriage = False

    def alternatives(self) -> tuple[str, bool]:
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        return "|".join(text for text, _ in branches), any(nullable for _, nullable in branches)

    def _branch(self) -> tuple[str, bool]:
        items, nullable = "", True
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            item, empty = self._item()
            items += item
            nullable &= empty
        return items, nullable

    def _item(self) -> tuple[str, bool]:
        start = self.pattern[self.position]
        if start in "^$":
            self.position += 1
            self.ends |= start == "$"
            if _QUANTIFIER.match(self.pattern, self.position):
                raise NotInProcess(f"a repeated {start!r} in a regular expression")
            return (r"\A" if start == "^" else rf"{LINE_END}\z"), True
        before = self.groups
        atom, nullable = self._atom(start)
        quantifier = self._quantifier()
        if quantifier and self.spans and (nullable or (self.groups > before and quantifier[0] != "?")):
            # Engines differ in what the group has after several rounds, and in rounds that match nothing.
            raise NotInProcess("a repeated group in a regular expression whose match is taken")
        return atom + quantifier, nullable or quantifier[:1] in ("*", "?") or quantifier.startswith(("{0,", "{0}"))

    def _atom(self, start: str) -> tuple[str, bool]:
        if self._take("("):
            return self._group()
        if self._take("["):
            return self._class(), False
        self.position += 1
        if start == "\\":
            return self._escape(), False
        if start == ".":
            return f"[^{_LINE_ENDS}]", False
        if start in "*+?":
            raise _repeats_nothing(start)
        if start in "{}]":
            raise NotInProcess(f"{start!r} at this place of a regular expression")
        return self._letter(start), False

    def _letter(self, letter: str) -> str:
        if self.folds and letter.isascii() and letter.isalpha():
            return f"[{letter}{letter.swapcase()}]"
        return re.escape(letter) if letter.isascii() else letter

    def _group(self) -> tuple[str, bool]:
        captures = not self._take("?:")
        if self._take("?"):
            raise NotInProcess("'(?' in a regular expression")
        self.groups += captures
        inner, nullable = self.alternatives()
        if not self._take(")"):
            raise WrongArguments("a '(' without ')' in a regular expression")
        return f"({'' if captures and self.spans else '?:'}{inner})", nullable

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
        if not letter:
            raise WrongArguments("a regular expression ends with a backslash")
        if letter.isalnum() or not letter.isascii():
            raise NotInProcess(f"'\\{letter}' in a regular expression")
        return re.escape(letter)

    def _class(self) -> str:
        negated = self._take("^")
        self.carriage |= negated
        members: list[str] = []
        while not self._take("]"):
            members.append(self._member())
        if not members:
            raise NotInProcess("'[]' in a regular expression")
        return f"[{'^' if negated else ''}{''.join(self._folded(members))}]"

    def _folded(self, members: list[str]) -> list[str]:
        """The members of a class, with the other case of their letters if case does not matter."""
        if not self.folds:
            return members
        text = "".join(members)
        for first, last in re.findall(r"(\w)-(\w)", text):
            if not (first.isdigit() and last.isdigit()) and first.islower() != last.islower():
                raise NotInProcess(f"'{first}-{last}' in a regular expression without case")
        plain = not any(member in _CLASSES.values() or member.startswith("\\") for member in members)
        if not plain and any(len(member) == 1 and member.isalpha() for member in members):
            raise NotInProcess("letters beside '\\' in '[…]' of a regular expression without case")
        other = "".join(letter.swapcase() if letter.isascii() else letter for letter in text) if plain else ""
        return [*members, other] if other != text else members

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
            return self._dash(self.pattern[self.position - 2], self._next())
        if not first:
            raise WrongArguments("a '[' without ']' in a regular expression")
        if first in "[&^~":
            raise NotInProcess(f"{first!r} inside '[…]' of a regular expression")
        return re.escape(first) if first.isascii() else first

    def _dash(self, before: str, after: str) -> str:
        if not (before.isalnum() and after.isalnum()):
            return r"\-"
        if before > after:
            raise WrongArguments(f"in a regular expression '{before}-{after}' has its last character first")
        return "-"

    def _quantifier(self) -> str:
        found = _QUANTIFIER.match(self.pattern, self.position)
        if not found:
            return ""
        self.position = found.end()
        if (most := found.group(2)) and int(most) < int(found.group(1)):
            raise WrongArguments(f"in a regular expression {found.group()!r} has its larger number first")
        lazy = "?" if self._take("?") else ""
        if (after := self._next()) in ("*", "?") or (after == "+" and lazy):
            raise _repeats_nothing(after)
        if after in ("+", "{"):
            raise NotInProcess("a repetition of a repetition in a regular expression")
        return found.group() + lazy

    def _next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.position):
            return False
        self.position += len(text)
        return True
