"""SQL text → tokens with exact places. This is the only module that imports sqlglot, whose tokenizer for Spark's
dialect does the work.

sqlglot's parser was tried and dropped. It reads `a = b IS NULL` as `a = (b IS NULL)` where Spark reads `(a = b) IS
NULL`. It replaces names and the order of arguments by its own, and loses the 2 of `last(x.price, 2)`. So its tree could
differ in meaning from the text that Spark evaluates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Span

if TYPE_CHECKING:
    from sqlglot.dialects.spark import Spark
    from sqlglot.tokens import TokenType  # type: ignore[attr-defined] # it is re-exported, not in __all__


class Kind(Enum):
    NUMBER = "number"
    STRING = "string"
    BYTES = "bytes"
    WORD = "word"
    QUOTED = "quoted name"
    SYMBOL = "symbol"
    PARAMETER = "parameter"
    END = "end"


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    """A word is in upper case and a quoted name without its quotes. Other tokens are as written, a parameter with its
    `$`.
    """
    start: int
    end: int
    """Exclusive."""

    @property
    def span(self) -> Span:
        return self.start, self.end


_WORD = re.compile(r"\w+")
CURLED = re.compile("[\u2018-\u201f]")
"""Quotes of word processors."""
STRAIGHT = "A text is written in straight quotes, as in 'x'."
QUOTE_IN_TEXT = "A text with a quote in it is written \"it's\" or 'it\\'s'."
_QUOTE_IN_WORD = re.compile(r"[^\W\d]'[^\W\d]")


def hint_of_unclosed(text: str) -> str | None:
    """What to write where a quote or comment is not closed, None if that is not known."""
    if CURLED.search(text):
        return STRAIGHT
    return QUOTE_IN_TEXT if _QUOTE_IN_WORD.search(text) else None


def tokenize(text: str) -> list[Token]:
    """The tokens of the text without comments, then one of kind END; PatternError if a quote or a comment is not
    closed.
    """
    from sqlglot.errors import TokenError

    try:
        found = _dialect().tokenize(text)
    except TokenError as error:
        problem = Problem(
            "a quote or comment is not closed", text=text, span=(0, len(text)), hint=hint_of_unclosed(text)
        )
        raise PatternError(problem) from error
    tokens: list[Token] = []
    for token in found:
        # sqlglot gives `1L` as a number, a cast sign and a type, all at one place: the written text is one number.
        if tokens and token.start == tokens[-1].start:
            continue
        if (
            tokens
            and token.start == tokens[-1].end
            and text[token.start] == tokens[-1].text
            and tokens[-1].text in "<>"
        ):
            tokens[-1] = Token(Kind.SYMBOL, tokens[-1].text * 2, tokens[-1].start, token.end + 1)  # a shift
            continue
        following = _token(token.token_type, text[token.start : token.end + 1], token.start)
        if (
            following.kind is Kind.WORD
            and tokens
            and tokens[-1] == Token(Kind.SYMBOL, "$", token.start - 1, token.start)
        ):
            tokens[-1] = Token(Kind.PARAMETER, text[token.start - 1 : following.end], token.start - 1, following.end)
            continue
        tokens.append(following)
    return [*tokens, Token(Kind.END, "", len(text), len(text))]


# sqlglot is imported when the first text is read: the import takes a third of the time of `import cepheid`, and the
# process that Spark starts for each stream reads no text.
@cache
def _dialect() -> Spark:
    from sqlglot.dialects.spark import Spark

    return Spark()


@cache
def _kinds() -> dict[TokenType, Kind]:
    from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

    return {
        TokenType.STRING: Kind.STRING,
        TokenType.RAW_STRING: Kind.STRING,
        TokenType.HEX_STRING: Kind.BYTES,
        TokenType.NUMBER: Kind.NUMBER,
        TokenType.IDENTIFIER: Kind.QUOTED,
    }


def _token(type_: TokenType, source: str, start: int) -> Token:
    end = start + len(source)
    kind = _kinds().get(type_)
    if kind is Kind.QUOTED:
        return Token(kind, source[1:-1].replace("``", "`"), start, end)
    if kind is not None:
        return Token(kind, source, start, end)
    if _WORD.fullmatch(source):
        return Token(Kind.WORD, source.upper(), start, end)
    return Token(Kind.SYMBOL, source, start, end)
