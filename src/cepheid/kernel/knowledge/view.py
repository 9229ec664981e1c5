"""What a session knows, as filters ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np

from cepheid.compile.arrays import NONE
from cepheid.compile.knowledge.compiled import LOOKUPS
from cepheid.compile.knowledge.tables import Lookup
from cepheid.kernel.knowledge.layout import Store
from cepheid.kernel.knowledge.store import select
from cepheid.knowledge.closure.closure import Closure, Pattern
from cepheid.knowledge.closure.facts import Fact
from cepheid.knowledge.terms import Term, Terms

_ROOM = 64

Stored: TypeAlias = Callable[[Pattern, Lookup], Store]
"""The store, for one that finds the facts for a pattern so."""


class ViewedFacts:
    """The facts of a session and those that are shared. A view: it is not used after something is added."""

    def __init__(self, base: Closure, stored: Stored, session: int) -> None:
        self._base, self._stored, self._session = base.facts, stored, session
        self._shared = len(base.terms)
        self._found = np.zeros((_ROOM, 4), np.int64)
        self._times: dict[Fact, int] = {}
        """Of the facts that were found."""

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.matching(None, None, None))

    def time(self, fact: Fact) -> int | None:
        """The earliest time at which the fact holds; None if it is not known."""
        if fact not in self._times and max(fact) < self._shared and (time := self._base.time(fact)) is not None:
            return time
        if fact not in self._times:
            self._own(*fact)
        return self._times.get(fact)

    def about(self, term: int) -> Iterator[Fact]:
        """The facts that have the term in one of their parts."""
        yield from self.matching(term, None, None)
        yield from self.matching(None, None, term)
        yield from self.matching(None, term, None)

    def objects(self, subject: int, predicate: int) -> set[int]:
        return {fact[2] for fact in self.matching(subject, predicate, None)}

    def matching(self, subject: int | None, predicate: int | None, object_: int | None) -> Iterable[Fact]:
        """The facts with these parts; None: any."""
        own = self._own(subject, predicate, object_)
        if max(subject or 0, predicate or 0, object_ or 0) >= self._shared:
            return own
        return [*self._base.matching(subject, predicate, object_), *own]

    def _own(self, subject: int | None, predicate: int | None, object_: int | None) -> list[Fact]:
        parts = (subject, predicate, object_)
        asked = np.array([NONE if part is None else part for part in parts], np.int64)
        lookup = LOOKUPS[subject is not None, predicate is not None, object_ is not None]
        store = self._stored(asked.tolist(), lookup)
        while (count := select(store, self._session, lookup, asked, self._found)) > len(self._found):
            self._found = np.zeros((2 * count, 4), np.int64)
        found: list[Fact] = []
        for s, p, o, time in self._found[:count].tolist():
            self._times[s, p, o] = time
            found.append((s, p, o))
        return found


class SessionView:
    """What a session knows."""

    def __init__(self, base: Closure, terms: Terms, stored: Stored, session: int) -> None:
        self.terms = terms
        self.facts = ViewedFacts(base, stored, session)
        self._base = base

    def lists_of(self, predicate: Term, kind: Term) -> Iterator[tuple[tuple[Term, ...], int]]:
        """The lists that are the values of a property of nodes of this type, each with the time since when."""
        return self._base.lists_of(predicate, kind)
