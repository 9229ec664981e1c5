"""Facts as numbers, each with the earliest time at which it holds, and found by any of their parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

Fact: TypeAlias = tuple[int, int, int]
"""Subject, predicate, object: numbers of terms."""

_NONE: frozenset[int] = frozenset()


class Facts:
    """Facts beside those of `base`, which does not change any more."""

    def __init__(self, base: Facts | None = None) -> None:
        self._base = base
        self._times: dict[Fact, int] = {}
        self._objects: dict[tuple[int, int], set[int]] = {}
        """By subject and predicate."""
        self._subjects: dict[tuple[int, int], set[int]] = {}
        """By predicate and object."""
        self._with_predicate: dict[int, set[int]] = {}
        """Subjects by predicate."""
        self._from: dict[int, set[int]] = {}
        """Predicates by subject."""
        self._to: dict[int, set[int]] = {}
        """Predicates by object."""

    def __len__(self) -> int:
        return len(self._times) + (0 if self._base is None else len(self._base))

    def __iter__(self) -> Iterator[Fact]:
        if self._base is not None:
            yield from self._base
        yield from self._times

    def own(self) -> Iterable[tuple[Fact, int]]:
        """The facts that are not of the base, each with its time."""
        return self._times.items()

    @property
    def own_count(self) -> int:
        """The number of facts that are not of the base."""
        return len(self._times)

    def time(self, fact: Fact) -> int | None:
        """The earliest time at which the fact holds; None if it is not known."""
        known = None if self._base is None else self._base.time(fact)
        return self._times.get(fact) if known is None else known

    def put(self, fact: Fact, time: int) -> None:
        """Adds the fact, or gives it another time."""
        if fact not in self._times:
            subject, predicate, object_ = fact
            self._objects.setdefault((subject, predicate), set()).add(object_)
            self._subjects.setdefault((predicate, object_), set()).add(subject)
            self._with_predicate.setdefault(predicate, set()).add(subject)
            self._from.setdefault(subject, set()).add(predicate)
            self._to.setdefault(object_, set()).add(predicate)
        self._times[fact] = time

    def has(self, predicate: int, object_: int) -> bool:
        """Whether there are facts with this predicate and object; if the object is negative, with any."""
        found = predicate in self._with_predicate if object_ < 0 else (predicate, object_) in self._subjects
        return found or (self._base is not None and self._base.has(predicate, object_))

    def objects(self, subject: int, predicate: int) -> set[int] | frozenset[int]:
        own = self._objects.get((subject, predicate), _NONE)
        return own if self._base is None else own | self._base.objects(subject, predicate)

    def subjects(self, predicate: int, object_: int) -> set[int] | frozenset[int]:
        own = self._subjects.get((predicate, object_), _NONE)
        return own if self._base is None else own | self._base.subjects(predicate, object_)

    def with_predicate(self, predicate: int) -> set[int] | frozenset[int]:
        """The subjects of facts with this predicate."""
        own = self._with_predicate.get(predicate, _NONE)
        return own if self._base is None else own | self._base.with_predicate(predicate)

    def from_subject(self, subject: int) -> set[int] | frozenset[int]:
        """The predicates of facts with this subject."""
        own = self._from.get(subject, _NONE)
        return own if self._base is None else own | self._base.from_subject(subject)

    def to_object(self, object_: int) -> set[int] | frozenset[int]:
        """The predicates of facts with this object."""
        own = self._to.get(object_, _NONE)
        return own if self._base is None else own | self._base.to_object(object_)

    def about(self, term: int) -> Iterator[Fact]:
        """The facts that have the term in one of their parts."""
        yield from self.matching(term, None, None)
        yield from self.matching(None, None, term)
        yield from self.matching(None, term, None)

    def matching(self, subject: int | None, predicate: int | None, object_: int | None) -> Iterable[Fact]:
        """The facts with these parts; None: any. They may not change while this is read, unless it is listed first."""
        match subject, predicate, object_:
            case int(s), int(p), int(o):
                return [(s, p, o)] if self.time((s, p, o)) is not None else []
            case int(s), int(p), None:
                return [(s, p, o) for o in self.objects(s, p)]
            case None, int(p), int(o):
                return [(s, p, o) for s in self.subjects(p, o)]
            case None, int(p), None:
                return [(s, p, o) for s in self.with_predicate(p) for o in self.objects(s, p)]
            case int(s), None, None:
                return [(s, p, o) for p in self.from_subject(s) for o in self.objects(s, p)]
            case None, None, int(o):
                return [(s, p, o) for p in self.to_object(o) for s in self.subjects(p, o)]
            case int(s), None, int(o):
                return [(s, p, o) for p in self.from_subject(s) if self.time((s, p, o)) is not None]
        return list(self)
