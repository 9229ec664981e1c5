"""Rules of a closure → tables. They are prepared for a kind of facts when the first fact of that kind comes.

What the shared knowledge says of classes and properties is looked up now: sessions whose events say more of these are
not compiled. So most rules vanish, and others become a step from one fact to the next. The steps from there are taken
at once, too: a novel is a book, a medium and an item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import NONE
from cepheid.compile.knowledge.tables import (
    HEAD,
    JOIN,
    KIND,
    MOST_PATTERNS,
    MOST_VARIABLES,
    PATTERN,
    SETTINGS,
    Lookup,
    RuleTables,
)
from cepheid.knowledge.closure.closure import Closure, Join, Pattern
from cepheid.knowledge.closure.facts import Fact

SUBJECT, PREDICATE, OBJECT = -1, -2, -3
"""The variables that are the parts of the fact to which a rule is applied."""
_FIRST_OTHER = 3
_BITS = 63

LOOKUPS: Mapping[tuple[bool, bool, bool], Lookup] = {
    (True, True, True): Lookup.WHOLE,
    (True, True, False): Lookup.SUBJECT_PREDICATE,
    (False, True, True): Lookup.PREDICATE_OBJECT,
    (True, False, False): Lookup.SUBJECT,
    (True, False, True): Lookup.SUBJECT,
    (False, False, True): Lookup.OBJECT,
    (False, True, False): Lookup.PREDICATE,
    (False, False, False): Lookup.ALL,
}
"""How facts are found, by which of their parts are known."""


class Head(NamedTuple):
    """What follows from a fact of a kind alone."""

    pattern: Pattern
    of_node: bool
    """Only if the fact's object is no literal."""


class _Rule(NamedTuple):
    """A rule for a fact whose subject, predicate and object are the variables -1, -2 and -3, or terms."""

    name: str
    given: tuple[Fact, ...]
    """The shared facts that match others of its patterns."""
    first: Pattern
    others: tuple[Pattern, ...]
    head: Pattern | None


class CompiledRules:
    """The rules of the shared closure for the kinds of facts that were asked for."""

    def __init__(self, base: Closure) -> None:
        self._base = base
        self.shared = len(base.terms)
        self._same, self._type = base.same, base.type
        self._unknown: npt.NDArray[np.int64] = np.full(self.shared + 1, NONE, np.int64)
        self._of_predicate, self._of_class = self._unknown.copy(), self._unknown.copy()
        self._kinds: dict[tuple[int, int], tuple[int, ...]] = {}
        """The fields of KINDs by predicate and class, in their order."""
        self._heads: list[tuple[int, ...]] = []
        self._joins: list[tuple[int, ...]] = []
        self._patterns: list[tuple[int, ...]] = []
        self.sources: list[tuple[str, tuple[Fact, ...]]] = []
        """For each join the name of its rule, and the shared facts that match others of its patterns."""
        self._bits_of: dict[tuple[int, int], int] = {(self._same, NONE): 0}
        self._wanted: dict[tuple[int | None, int | None], int] = {}
        """The lookups by which patterns with a predicate and a class ask for facts, as bits; None: a variable."""
        self._steps: dict[tuple[int, int], list[Head]] = {}
        self.tables = self._listed()

    def prepare(self, predicate: int, object_: int) -> None:
        """Adds the rules for the kind of a fact with these parts."""
        kind = self._kind(predicate, object_)
        target, term = (self._of_class, kind[1]) if kind[0] == self._type else (self._of_predicate, kind[0])
        first_head, first_join = len(self._heads), len(self._joins)
        rules = [rule for rule in self._rules(kind) if not self._is_step(rule)]
        # Rules of a list of dozens of members may be too long: sessions with such facts are not compiled either.
        states = self._base.states_axioms(predicate, object_) or not all(map(_fits, rules))
        if not states:
            self._heads += [(*head.pattern, int(head.of_node)) for head in self._all_steps(kind)]
            for rule in rules:
                self._add(rule)
        numbers = (first_head, len(self._heads), first_join, len(self._joins), self._bit(*kind), int(states))
        target[term] = len(self._kinds)
        self._kinds[kind] = numbers
        self.tables = self._listed()

    def _listed(self) -> RuleTables:
        return RuleTables(
            self._of_predicate,
            self._of_class,
            np.array([(*numbers, self._lookups_of(*kind)) for kind, numbers in self._kinds.items()], KIND),
            np.array(self._heads, HEAD),
            np.array(self._joins, JOIN),
            np.array(self._patterns, PATTERN),
            np.array([(self._type, self._same, self.shared)], SETTINGS),
        )

    def want(self, pattern: Pattern, lookup: Lookup) -> bool:
        """Notes that facts for a pattern are found so. Returns whether that is new: `tables` do not say it yet."""
        _, predicate, object_ = pattern
        of_class = min(object_, self.shared) if predicate == self._type and object_ >= 0 else None
        asked = None if predicate < 0 else min(predicate, self.shared), of_class
        before = self._wanted.get(asked, 0)
        self._wanted[asked] = before | 1 << lookup
        return self._wanted[asked] != before

    def _lookups_of(self, predicate: int, class_: int) -> int:
        wanted = self._wanted.get
        return wanted((None, None), 0) | wanted((predicate, None), 0) | wanted((predicate, class_), 0)

    def list_wanted(self) -> None:
        """Puts what `want` noted into the tables."""
        self.tables = self._listed()

    def _kind(self, predicate: int, object_: int) -> tuple[int, int]:
        """Its predicate and class; all that the knowledge does not have are one kind. NONE: no class."""
        of = min(object_, self.shared) if predicate == self._type else NONE
        return min(predicate, self.shared), of

    def _bit(self, predicate: int, class_: int) -> int:
        """A bit for sessions that have facts of the kind. When there are more kinds than bits, some share one, but none
        that of sameAs: a rule for it is tried for each fact.
        """
        number = self._bits_of.setdefault((predicate, class_), len(self._bits_of))
        return 1 << (number if number < _BITS else 1 + number % (_BITS - 1))

    # Rules of a kind

    def _rules(self, kind: tuple[int, int]) -> Iterator[_Rule]:
        seen = set[tuple[object, ...]]()
        for join in self._base.joins_of(kind[0], None if kind[1] == NONE else kind[1]):
            for rule in self._specialized(join, kind):
                known = (rule.first, rule.others, rule.head)
                if known not in seen and rule.head != rule.first:
                    seen.add(known)
                    yield rule

    def _specialized(self, join: Join, kind: tuple[int, int]) -> Iterator[_Rule]:
        """The rule once for each way in which its patterns match what is shared of classes and properties."""
        names = _names(join, self.shared)
        first = _renamed(join.first, names)
        # The parts of the fact that the kind tells are no variables, unless the kind is of all unknown terms.
        others = tuple(_renamed(one, names) for one in join.others)
        head = None if join.head is None else _renamed(join.head, names)
        for found, given, rest in self._ways(others, {}):
            if (kind[0] == self.shared and PREDICATE in found) or (kind[1] == self.shared and OBJECT in found):
                continue  # of a term that the knowledge has
            patterns = tuple(_filled(one, found) for one in rest)
            yield _Rule(
                join.name,
                (*join.given, *given),
                _filled(first, found),
                in_order(patterns, {SUBJECT, PREDICATE, OBJECT}),
                None if head is None else _filled(head, found),
            )

    def _ways(
        self, patterns: tuple[Pattern, ...], bindings: dict[int, int]
    ) -> Iterator[tuple[dict[int, int], tuple[Fact, ...], tuple[Pattern, ...]]]:
        """Bindings, the shared facts that match, and the patterns that are left for the facts of a session."""
        axioms = [one for one in patterns if self._base.states_axioms(one[1], one[2])]
        if not axioms:
            yield bindings, (), patterns
            return
        chosen = max(axioms, key=lambda one: sum(part >= 0 or part in bindings for part in one))
        rest = tuple(one for one in patterns if one is not chosen)
        asked = [bindings.get(part, part) for part in chosen]
        if any(part >= self.shared for part in asked):
            return
        subject, predicate, object_ = (part if part >= 0 else None for part in asked)
        for fact in self._base.facts.matching(subject, predicate, object_):
            found = dict(bindings)
            if all(
                part == value if part >= 0 else found.setdefault(part, value) == value
                for part, value in zip(asked, fact, strict=True)
            ):
                for bound, given, left in self._ways(rest, found):
                    yield bound, (fact, *given), left

    # Steps from one fact to the next

    def _is_step(self, rule: _Rule) -> bool:
        """Whether its head follows from each fact of the kind alone, and its kind is known."""
        if rule.others or rule.head is None or rule.first[0] != SUBJECT:
            return False
        _, predicate, class_ = rule.head
        if predicate < 0 or predicate == self._same or (predicate == self._type and class_ < 0):
            return False
        return rule.first[2] == OBJECT or rule.first[1] == self._type

    def _all_steps(self, kind: tuple[int, int]) -> list[Head]:
        """All that follows from a fact of the kind alone, over several steps."""
        found: dict[Head, None] = {}
        waiting = [*self._own_steps(kind)]
        while waiting:
            head = waiting.pop()
            if head in found or (Head(head.pattern, of_node=False) in found):
                continue
            found[head] = None
            subject, predicate, object_ = head.pattern
            for then in self._own_steps(self._kind(predicate, object_)):
                parts = {SUBJECT: subject, PREDICATE: predicate, OBJECT: object_}
                pattern = _filled(then.pattern, parts)
                waiting.append(Head(pattern, head.of_node or _of_object(pattern)))
        itself = (SUBJECT, kind[0], OBJECT if kind[1] == NONE else kind[1])
        return [head for head in found if head.pattern != itself]

    def _own_steps(self, kind: tuple[int, int]) -> list[Head]:
        if kind not in self._steps:
            rules = [rule for rule in self._rules(kind) if self._is_step(rule)]
            self._steps[kind] = [Head(rule.head, _of_object(rule.head)) for rule in rules if rule.head is not None]
        return self._steps[kind]

    # Tables

    def _add(self, rule: _Rule) -> None:
        numbers = {SUBJECT: 0, PREDICATE: 1, OBJECT: 2}
        start = len(self._patterns)
        for pattern in rule.others:
            self._patterns.append(pattern_row(self, pattern, numbers))
        subject, _, object_ = rule.first
        head = (0, 0, 0) if rule.head is None else tuple(_coded(part, numbers) for part in rule.head)
        self._joins.append(
            (
                subject if subject >= 0 else NONE,
                object_ if object_ >= 0 else NONE,
                int(subject == object_),
                start,
                len(self._patterns),
                *head,
                int(rule.head is None),
            )
        )
        self.sources.append((rule.name, rule.given))

    def bits(self, pattern: Pattern) -> int:
        """A session with none of these bits has no facts that match the pattern; 0: that is not known."""
        _, predicate, object_ = pattern
        if predicate < 0 or (predicate == self._type and object_ < 0):
            return 0
        return self._bit(*self._kind(predicate, object_))

    def in_base(self, pattern: Pattern) -> bool:
        """Whether shared facts may match the pattern."""
        return any(True for _ in self._base.facts.matching(*(part if part >= 0 else None for part in pattern)))


def pattern_row(rules: CompiledRules, pattern: Pattern, numbers: dict[int, int]) -> tuple[int, ...]:
    """The fields of a PATTERN. `numbers` has those of the variables that are known by then; the others get numbers."""
    subject, predicate, object_ = (part >= 0 or part in numbers for part in pattern)
    lookup = LOOKUPS[subject, predicate, object_]
    binds = 0
    for place, part in enumerate(pattern):
        if part < 0 and part not in numbers:
            numbers[part] = len(numbers)
            binds |= 1 << place
    coded = [_coded(part, numbers) for part in pattern]
    rules.want(pattern, lookup)
    return (*coded, binds, int(lookup), rules.bits(pattern), int(rules.in_base(pattern)))


def _names(join: Join, shared: int) -> dict[int, int]:
    """New names for the variables of a rule: the parts of its first pattern are -1, -2 and -3, also where they are
    terms that the knowledge does not have (`shared` stands for these).
    """
    names: dict[int, int] = {}
    for part, name in zip(join.first, (SUBJECT, PREDICATE, OBJECT), strict=True):
        if part < 0 or part == shared:
            names.setdefault(part, name)
    for pattern in (*join.others, *(() if join.head is None else (join.head,))):
        for part in pattern:
            if part < 0:
                names.setdefault(part, -1 - _FIRST_OTHER - len(names))
    return names


def _fits(rule: _Rule) -> bool:
    """Whether the rule is not too long to be compiled."""
    variables = {part for pattern in rule.others for part in _variables(pattern)} | {SUBJECT, PREDICATE, OBJECT}
    return len(variables) <= MOST_VARIABLES and len(rule.others) <= MOST_PATTERNS


def _renamed(pattern: Pattern, names: dict[int, int]) -> Pattern:
    subject, predicate, object_ = (names.get(part, part) for part in pattern)
    return subject, predicate, object_


_filled = _renamed


def _of_object(pattern: Pattern) -> bool:
    return pattern[0] == OBJECT


def _coded(part: int, numbers: dict[int, int]) -> int:
    return part if part >= 0 else -1 - numbers[part]


def in_order(patterns: Sequence[Pattern], known: Iterable[int]) -> tuple[Pattern, ...]:
    """The patterns, next always the one with the most parts that are known by then; `known` are variables."""
    remaining, ordered, bound = [*patterns], list[Pattern](), {*known}
    while remaining:
        best = max(remaining, key=lambda one: [one[1] >= 0 or one[1] in bound, sum(p >= 0 or p in bound for p in one)])
        remaining.remove(best)
        ordered.append(best)
        bound |= _variables(best)
    return tuple(ordered)


def _variables(pattern: Iterable[int]) -> set[int]:
    return {part for part in pattern if part < 0}
