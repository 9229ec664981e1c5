"""How columns write the names of individuals: the ways of one name, and the values from which a template makes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cepheid.knowledge.events.names import TemplatePart, name_of
from cepheid.knowledge.terms import Iri


def written_names(name: Iri, prefixes: Mapping[str, str]) -> list[str]:
    """The ways in which a column of names may have this name."""
    rests = [
        (prefix, rest)
        for prefix, iri in prefixes.items()
        if name.value.startswith(iri) and (rest := name.value.removeprefix(iri))
    ]
    short = [way for prefix, rest in rests for way in ([f"{prefix}:{rest}"] if prefix else [rest, f":{rest}"])]
    ways = [name.value, f"<{name.value}>", *short]
    if _PLAIN.fullmatch(name.value) and all(_LOCAL.fullmatch(rest) and prefix not in _WHOLE for prefix, rest in rests):
        return ways  # most names are so; to read each way of many takes long
    return [way for way in dict.fromkeys(ways) if _reads_as(way, name, prefixes)]


_PLAIN = re.compile(r"https?://[A-Za-z0-9._~/#-]*")
"""Names that need no look at their characters."""
_LOCAL = re.compile(r"[A-Za-z0-9_-]+")
"""What is surely a name after a prefix, or in the prefix "" without it."""
_WHOLE = ("urn", "tag")
"""Prefixes with which a name is taken as whole."""


def _reads_as(text: str, name: Iri, prefixes: Mapping[str, str]) -> bool:
    try:
        return name_of(text, prefixes) == name
    except ValueError:
        return False


def divisions(text: str, parts: Sequence[TemplatePart]) -> Iterator[tuple[str, ...]]:
    """The ways in which a template with these parts (`Template.whole`) makes the text, each with the encoded value of
    each column. Several columns may divide a text in several ways.
    """
    if not parts:
        if not text:
            yield ()
        return
    (first, is_column), *rest = parts
    if not is_column:
        if text.startswith(first):
            yield from divisions(text.removeprefix(first), rest)
        return
    for end in _ends(text, rest):
        yield from ((text[:end], *more) for more in divisions(text[end:], rest))


def _ends(text: str, after: Sequence[TemplatePart]) -> Iterator[int]:
    """Where a column at the beginning of the text may end, if these parts come after it."""
    if not any(is_column for _, is_column in after):
        end = len(text) - sum(len(one) for one, _ in after)
        yield from (end,) if end >= 0 else ()
    elif after[0][1]:
        yield from range(len(text) + 1)
    else:
        end = text.find(after[0][0])
        while end >= 0:
            yield end
            end = text.find(after[0][0], end + 1)
