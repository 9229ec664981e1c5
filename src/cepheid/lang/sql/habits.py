"""What people write who come from another language, and what it is in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.lang.expression import Call, Expression
from cepheid.lang.sql.tokens import Kind, Token

_SIGNS = {"&&": "Write AND.", "=>": "Write >=."}
_PAIRS = {
    ("=", "<"): "Write <=.",
    ("==", "="): "Write =.",
    ("!=", "="): "Write <>.",
    ("!", "="): "Write <>.",
    ("IN", "["): "A list is written in parentheses, as in IN ('x', 'y').",
    ("IS", "NONE"): "Write IS NULL.",
    ("NOT", "NONE"): "Write IS NOT NULL.",
}
_LITERALS = (Kind.NUMBER, Kind.STRING)
_MISSING = ("none", "nan", "nil", "na")


def habit_of(before: Sequence[Token], token: Token, after: Token) -> str | None:
    """The hint for a token that cannot be where it is, after those `before`."""
    point, previous = ["", "", *(one.text for one in before)][-2:]
    if token.kind in _LITERALS:
        return {"IS": "Write = to compare with a value.", "NOT": "Write <> to compare with a value."}.get(previous)
    if point == "." and token.text == "(":
        return "SQL has no methods: a function has its value as an argument, as in startswith(kind, 'p')."
    return _PAIRS.get((previous, token.text)) or _PAIRS.get((token.text, after.text)) or _SIGNS.get(token.text)


def habit_of_name(name: str) -> str:
    """The hint for a name that no column has and that is similar to none."""
    if name.lower() in _MISSING:
        return "A missing value is NULL: write IS NULL. "
    return f"If it is a text, write '{name}'. " if name.isidentifier() else ""


def habit_of_arguments(arguments: tuple[Expression, ...]) -> str | None:
    """The hint for arguments that are of other types than their operator needs."""
    joined = any(isinstance(one, Call) and one.function == "concat" for one in arguments)
    return "|| joins texts: between conditions write OR." if joined else None
