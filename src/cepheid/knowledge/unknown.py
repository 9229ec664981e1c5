"""Names of classes and properties that the knowledge does not have, or that it has as the other of the two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from cepheid.errors import Problem
from cepheid.knowledge.filters.builtins import BUILTINS
from cepheid.knowledge.filters.syntax import Atom, Located
from cepheid.knowledge.terms import Iri
from cepheid.knowledge.vocabulary import KNOWN_PREFIXES

if TYPE_CHECKING:
    from cepheid.knowledge.knowledge import Knowledge


def unknown_names(knowledge: Knowledge, names: Iterable[Iri], where: str | None) -> Iterator[Problem]:
    """The classes and properties among these that the knowledge does not have."""
    vocabularies = tuple(KNOWN_PREFIXES.values())
    for name in names:
        if name not in knowledge.names and not name.value.startswith(vocabularies):
            near = _names_like(name, knowledge)
            hint = f"Names like it: {', '.join(near)}" if near else None
            yield Problem(f"the knowledge has no class or property {name}", where, hint=hint)


def unknown_in_filter(knowledge: Knowledge, text: str, atoms: Iterable[Located], where: str) -> Iterator[Problem]:
    """The classes and properties of a filter that the knowledge does not have, or that it has as the other of the two,
    each with its place in the text.
    """
    for atom, span in atoms:
        if atom.kind in ("class", "property"):
            for problem in unknown_names(knowledge, [atom.name], where):
                near = get_close_matches(_last(atom.name), BUILTINS)
                hints = [problem.hint] if problem.hint else []
                hints += [f"Built-ins with a name like it: {', '.join(near)}"] if near else []
                yield replace(problem, text=text, span=span, hint="\n".join(hints) or None)
            yield from (replace(one, text=text, span=span) for one in mistaken_name(knowledge, atom, where))


def mistaken_name(knowledge: Knowledge, atom: Atom, where: str | None) -> Iterator[Problem]:
    """The problem of an atom whose name is a property used as a class, or a class used as a property."""
    is_class, is_property = atom.name in knowledge.classes, atom.name in knowledge.properties
    if atom.kind == "class" and is_property and not is_class:
        yield Problem(f"{atom.name} is a property, which takes two arguments, and not a class", where)
    if atom.kind == "property" and is_class and not is_property:
        yield Problem(f"{atom.name} is a class, which takes one argument, and not a property", where)


def _names_like(name: Iri, knowledge: Knowledge) -> list[str]:
    """Names of the knowledge whose last part is like that of the name."""
    by_last: dict[str, list[str]] = {}
    for one in knowledge.names:
        by_last.setdefault(_last(one), []).append(one.value)
    return [full for last in get_close_matches(_last(name), by_last, cutoff=0.75) for full in sorted(by_last[last])]


def _last(name: Iri) -> str:
    """The part of the name that the prefix does not have."""
    return re.split("[/#:]", name.value)[-1]
