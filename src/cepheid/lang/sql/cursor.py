"""A position in the tokens of one text, and what every rule of the grammar does there: look ahead, take, refuse.

A rule is a function that takes the cursor, moves it past what it reads, and returns what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Expression, Literal, Span
from cepheid.lang.sql.habits import habit_of
from cepheid.lang.sql.tokens import Kind, Token, tokenize

_T = TypeVar("_T")

MAX_DEPTH = 50
"""The most levels of nested parentheses; each takes ten of Python's stack frames."""


class Cursor:
    """`at` is the index of the next token. The last token is of kind END, and is never taken."""

    def __init__(self, text: str, parameters: Mapping[str, Literal | tuple[Literal, ...]]) -> None:
        self.text = text
        self.parameters = parameters
        self.at = 0
        self.problems: list[Problem] = []
        """Problems in parts whose end is known, so that reading can continue after them. The caller raises all of them
        at the end.
        """
        self._tokens = tokenize(text)
        self._depth = 0

    @property
    def next(self) -> Token:
        return self._tokens[self.at]

    def peek(self, offset: int = 1) -> Token:
        return self._tokens[min(self.at + offset, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self.at = min(self.at + 1, len(self._tokens) - 1)
        return token

    def is_after(self, text: str) -> bool:
        """Whether the last token that was taken is this one."""
        return self.at > 0 and self._tokens[self.at - 1].text == text

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words (in upper case) or symbols."""
        return self.next.kind in (Kind.WORD, Kind.SYMBOL) and self.next.text in texts

    def accept(self, *texts: str) -> Token | None:
        return self.take() if self.sees(*texts) else None

    def expect(self, text: str) -> Token:
        if not self.sees(text):
            raise self.unexpected(f"{text} is expected")
        return self.take()

    def span(self, start: int) -> Span:
        """From the token at index `start` to the last one taken."""
        return self._tokens[start].start, self._tokens[self.at - 1].end

    def written(self, span: Span) -> str:
        return self.text[slice(*span)]

    def nested(self, rule: Rule) -> Expression:
        """What the rule reads, one level deeper; PatternError if that is too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise refused(f"parentheses are nested more than {MAX_DEPTH} levels deep", self.next.span)
        result = rule(self)
        self._depth -= 1
        return result

    def checked(self, span: Span, read: Callable[..., _T], *args: str) -> _T:
        """What `read` returns for the arguments; its ValueError becomes a PatternError at `span`."""
        try:
            return read(*args)
        except ValueError as error:
            raise refused(str(error), span) from error

    def report(self, error: PatternError) -> None:
        """Adds the error to `problems`, so that reading continues and finds other problems, too."""
        self.problems += error.problems

    def unexpected(self, expected: str) -> PatternError:
        token = self.next
        if token.kind is Kind.END:
            return refused(f"{expected}, but the text ends here", (max(token.start - 1, 0), max(token.end, 1)))
        hint = habit_of(self._tokens[: self.at], token, self.peek())
        return refused(f"{expected}, found {self.written(token.span)!r}", token.span, hint)


Rule: TypeAlias = Callable[[Cursor], Expression]


def refused(message: str, span: Span, hint: str | None = None) -> PatternError:
    """The error for a problem at `span`. The caller that knows the text adds the text."""
    return PatternError(Problem(message, span=span, hint=hint))
