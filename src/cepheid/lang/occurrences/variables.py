"""Variables of occurrences, and conditions over them: SQL text in which `v` may be written as `?v`."""

from __future__ import annotations

import re
from itertools import pairwise

from cepheid.errors import PatternError
from cepheid.lang.arguments import shown
from cepheid.lang.sql.tokens import Kind, tokenize

_NAME = re.compile(r"[^\W\d]\w*")


def variable_name(given: object) -> str:
    """The name of a variable without its `?`, which `given` may have.

    Raises:
        PatternError: it is not a name.
    """
    name = given.removeprefix("?") if isinstance(given, str) else ""
    if not _NAME.fullmatch(name):
        form = "is made of letters, digits and underscores and does not begin with a digit"
        raise PatternError(f"a variable's name {form}, got {shown(given)}")
    return name


def plain_condition(given: object) -> str:
    """The condition without the `?` before its variables, as conditions are stored.

    Raises:
        PatternError: it is not text, or it is empty.
    """
    if not isinstance(given, str) or not given.strip():
        raise PatternError(f"a condition is SQL text, as in 'a.user = b.user', got {shown(given)}")
    try:
        tokens = tokenize(given)
    except PatternError:
        return given.strip()  # a quote is not closed; the parser reports it, with its place
    marks = [
        token.start
        for token, after in pairwise(tokens)
        if (token.kind, token.text) == (Kind.SYMBOL, "?")
        and token.end == after.start
        and after.kind in (Kind.WORD, Kind.QUOTED)
    ]
    return "".join(char for at, char in enumerate(given) if at not in marks).strip()
