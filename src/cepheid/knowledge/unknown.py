"""Names of classes and properties that the knowledge does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from cepheid.errors import Problem
from cepheid.knowledge.terms import Iri
from cepheid.knowledge.vocabulary import KNOWN_PREFIXES

if TYPE_CHECKING:
    from cepheid.knowledge.knowledge import Knowledge


def unknown_names(knowledge: Knowledge, names: Iterable[Iri], where: str | None) -> Iterator[Problem]:
    """The classes and properties among these that the knowledge does not have."""
    vocabularies = tuple(KNOWN_PREFIXES.values())
    for name in names:
        if name not in knowledge.names and not name.value.startswith(vocabularies):
            hint = _names_like(name, knowledge)
            yield Problem(f"the knowledge has no class or property {name}", where, hint=hint)


def _names_like(name: Iri, knowledge: Knowledge) -> str | None:
    """Names of the knowledge whose last part is like that of the name."""
    by_last: dict[str, list[str]] = {}
    for one in knowledge.names:
        by_last.setdefault(_last(one), []).append(one.value)
    near = [full for last in get_close_matches(_last(name), by_last, cutoff=0.75) for full in sorted(by_last[last])]
    return f"Names like it: {', '.join(near)}" if near else None


def _last(name: Iri) -> str:
    """The part of the name that the prefix does not have."""
    return re.split("[/#:]", name.value)[-1]
