"""The assignments of terms to variables that make a filter true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from cepheid.knowledge.closure.facts import Fact
from cepheid.knowledge.closure.lists import DIFFERENT, SAME, TYPE
from cepheid.knowledge.closure.rules import name
from cepheid.knowledge.filters.builtins import BUILTINS, Builtin
from cepheid.knowledge.filters.syntax import (
    SWRLB,
    Argument,
    Atom,
    Variable,
)
from cepheid.knowledge.filters.values import NoValue, compared, literal_of, value_of
from cepheid.knowledge.terms import Iri, Literal, Term, Terms

FOREVER = 2**63 - 1
"""A time (microseconds) after all events."""
Solution: TypeAlias = dict[str, Term]
"""The term of each variable."""


class ClosedFacts(Protocol):
    """Facts as `closure.Facts` has them."""

    def __iter__(self) -> Iterator[Fact]: ...

    def time(self, fact: Fact) -> int | None: ...

    def about(self, term: int) -> Iterable[Fact]: ...

    def matching(self, subject: int | None, predicate: int | None, object_: int | None) -> Iterable[Fact]: ...


class Closed(Protocol):
    """What filters ask of a closure."""

    @property
    def terms(self) -> Terms: ...

    @property
    def facts(self) -> ClosedFacts: ...

    def lists_of(self, predicate: Term, kind: Term) -> Iterator[tuple[tuple[Term, ...], int]]: ...


_DISJOINT, _COMPLEMENT = name("owl:disjointWith"), name("owl:complementOf")
_MEMBERS, _ALL_DISJOINT = name("owl:members"), name("owl:AllDisjointClasses")


def solutions(
    atoms: Sequence[Atom], closure: Closed, bindings: Mapping[str, Term], at: int = FOREVER
) -> Iterator[Solution]:
    """The assignments that make all atoms true by what is known at a time (microseconds)."""
    yield from _Solving(closure, at).all([*atoms], dict(bindings))


class _Solving:
    def __init__(self, closure: Closed, at: int) -> None:
        self._closure, self._at = closure, at

    def all(self, atoms: list[Atom], known: Solution) -> Iterator[Solution]:
        if not atoms:
            yield known
            return
        atom = min(atoms, key=lambda one: self._cost(one, known))
        rest = [one for one in atoms if one is not atom]
        if not rest:
            yield from self._one(atom, known)
            return
        for found in self._one(atom, known):
            yield from self.all(rest, found)

    def _cost(self, atom: Atom, known: Solution) -> int:
        """Which atom is next: first those that only test, then those of facts that bind fewer variables, then built-ins
        that compute a value; at last those whose arguments will never be known.
        """
        free = [_free(argument, known) for argument in atom.arguments]
        match atom.kind:
            case "builtin":
                computes = _builtin_of(atom).computes and not any(free[1:])
                return 0 if not any(free) else 7 if computes else 9
            case "class":
                return 3 * sum(free)
            case "property":
                return 2 * sum(free)
        return 5 * sum(free)

    def _one(self, atom: Atom, known: Solution) -> Iterator[Solution]:
        match atom.kind:
            case "class":
                yield from self._facts(atom.arguments[0], TYPE, atom.name, known)
            case "property":
                yield from self._facts(atom.arguments[0], atom.name, atom.arguments[1], known)
            case "builtin":
                yield from self._builtin(atom, known)
            case _:
                yield from self._same(atom, known)

    # Facts

    def _facts(self, subject: Argument, predicate: Iri, object_: Argument, known: Solution) -> Iterator[Solution]:
        """Facts are looked up by terms, and a literal constant by value."""
        given, other = _term(subject, known), _term(object_, known)
        by_value = isinstance(object_, Literal)
        numbers = [self._closure.terms.find(term) if term is not None else None for term in (given, predicate)]
        object_number = None if other is None or by_value else self._closure.terms.find(other)
        if numbers[1] is None or (given is not None and numbers[0] is None):
            return
        if other is not None and not by_value and object_number is None:
            return
        facts, term_of, at = self._closure.facts, self._closure.terms.term, self._at
        ends = (subject, 0), (object_, 2)
        free = [(one.name, end) for one, end in ends if isinstance(one, Variable) and one.name not in known]
        twice = len(free) > 1 and subject == object_
        # Here filters spend most of their time: classes may have 100,000 members.
        for fact in [*facts.matching(numbers[0], numbers[1], object_number)]:
            time = facts.time(fact)
            if time is None or time > at or (twice and fact[0] != fact[2]):
                continue
            if by_value and not is_equal(term_of(fact[2]), other):
                continue
            found = dict(known)
            for name_, end in free:
                found[name_] = term_of(fact[end])
            yield found

    def _holds(self, subject: Term, predicate: Iri, object_: Term) -> bool:
        numbers = [self._closure.terms.find(term) for term in (subject, predicate, object_)]
        s, p, o = numbers
        if s is None or p is None or o is None:
            return False
        time = self._closure.facts.time((s, p, o))
        return time is not None and time <= self._at

    # The same, and different

    def _same(self, atom: Atom, known: Solution) -> Iterator[Solution]:
        test = self._are_same if atom.kind == "same" else self._are_different
        one, other = atom.arguments
        for left in self._candidates(one, known):
            for right in self._candidates(other, {**known, **_named(one, left)}):
                if test(left, right):
                    found = _bound(known, (one, left), (other, right))
                    if found is not None:
                        yield found

    def _candidates(self, argument: Argument, known: Solution) -> Sequence[Term]:
        """The term of the argument, or all individuals."""
        if (term := _term(argument, known)) is not None:
            return [term]
        return [term for term in self._individuals() if not isinstance(term, Literal)]

    def _individuals(self) -> Iterator[Term]:
        seen = set[int]()
        for fact in self._closure.facts:
            time = self._closure.facts.time(fact)
            if time is not None and time <= self._at:
                seen.update((fact[0], fact[2]))
        return map(self._closure.terms.term, sorted(seen))

    def _are_same(self, left: Term, right: Term) -> bool:
        if isinstance(left, Literal) or isinstance(right, Literal):
            return False
        return (left == right and self._is_mentioned(left)) or self._holds(left, SAME, right)

    def _is_mentioned(self, term: Term) -> bool:
        number = self._closure.terms.find(term)
        return number is not None and any(
            (time := self._closure.facts.time(fact)) is not None and time <= self._at
            for fact in self._closure.facts.about(number)
        )

    def _are_different(self, left: Term, right: Term) -> bool:
        if isinstance(left, Literal) or isinstance(right, Literal):
            return False
        if self._holds(left, DIFFERENT, right):
            return True
        classes = self._classes(right)
        return any(not classes.isdisjoint(self._disjoint(class_)) for class_ in self._classes(left))

    def _classes(self, individual: Term) -> set[Term]:
        return {found["c"] for found in self._facts(individual, TYPE, Variable("c"), {})}

    def _disjoint(self, class_: Term) -> set[Term]:
        """The classes that have no member in common with the class."""
        found = set[Term]()
        for predicate in (_DISJOINT, _COMPLEMENT):
            found |= {one["c"] for one in self._facts(class_, predicate, Variable("c"), {})}
            found |= {one["c"] for one in self._facts(Variable("c"), predicate, class_, {})}
        for items, time in self._closure.lists_of(_MEMBERS, _ALL_DISJOINT):
            if class_ in items and time <= self._at:
                found.update(one for one in items if one != class_)
        return found

    # Built-ins

    def _builtin(self, atom: Atom, known: Solution) -> Iterator[Solution]:
        builtin, terms = _builtin_of(atom), [_term(argument, known) for argument in atom.arguments]
        try:
            if builtin.computes:
                result = builtin.apply(*map(_value, terms[1:]))
                first = atom.arguments[0]
                if terms[0] is None and isinstance(first, Variable):
                    yield {**known, first.name: literal_of(result)}
                elif compared(_value(terms[0]), result) == 0:
                    yield known
            elif builtin.apply(*map(_value, terms)):
                yield known
        except NoValue:
            return  # the atom does not hold


def _value(term: Term | None):  # type: ignore[no-untyped-def]
    if not isinstance(term, Literal):
        raise NoValue("a value is expected, not an individual" if term else "a variable has no value")
    return value_of(term)


def _builtin_of(atom: Atom) -> Builtin:
    return BUILTINS[atom.name.value.removeprefix(SWRLB)]


def _free(argument: Argument, known: Solution) -> bool:
    return isinstance(argument, Variable) and argument.name not in known


def _term(argument: Argument, known: Solution) -> Term | None:
    """The term of the argument; None if it is a free variable."""
    return known.get(argument.name) if isinstance(argument, Variable) else argument


def _named(argument: Argument, term: Term) -> Solution:
    return {argument.name: term} if isinstance(argument, Variable) else {}


def _bound(known: Solution, *pairs: tuple[Argument, Term]) -> Solution | None:
    """The assignment with these terms; None if they do not agree."""
    found = known
    for argument, term in pairs:
        if isinstance(argument, Variable):
            if found.get(argument.name, term) != term:
                return None
            found = {**found, argument.name: term}
    return found


def is_equal(term: Term, constant: Term | None) -> bool:
    """Whether a literal has the value of a constant. Literals of types without a meaning here are equal by term."""
    if term == constant:
        return True
    if not isinstance(term, Literal) or not isinstance(constant, Literal):
        return False
    try:
        return compared(value_of(term), value_of(constant)) == 0
    except NoValue:
        return False
