"""Facts and all that follows from them by the rules of OWL 2 RL.

Each fact has the earliest time at which it holds: a fact that is stated has the time of its event, one that follows the
latest time among the facts that it follows from, and the least of these if it follows in several ways. So one closure
answers for every moment. New facts are joined with those known, never all with all (semi-naive evaluation). They are
taken by time, so that facts that come in order have their final time at once; one that comes late may lower the times
of others.

Most rules join facts about individuals with what the ontology says of their property or class. For each property and
class the rules are therefore prepared: the patterns that match statements of the ontology are looked up once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple, TypeAlias

from cepheid.knowledge.closure.facts import Fact, Facts
from cepheid.knowledge.closure.limits import FactLimits, TooManyFacts
from cepheid.knowledge.closure.lists import DIFFERENT, LISTS, OWNERS, SAME, TYPE
from cepheid.knowledge.closure.rules import RULES, Atom, AtomPart, Rule, name
from cepheid.knowledge.terms import Iri, Term, Terms, Triple

Bindings: TypeAlias = dict[int, int]
"""Terms by variable, both as numbers."""
Pattern: TypeAlias = tuple[int, int, int]
"""A fact some of whose parts are variables: negative numbers."""

ALWAYS = -(2**63)
"""The time (microseconds) of what holds whenever it is asked."""
_Kind: TypeAlias = tuple[int, int | None]
"""Facts with this predicate and, if that is the type, this object."""
_Asked: TypeAlias = tuple[int | None, int, int | None]
"""Facts with these parts."""

FIRST, REST, NIL = map(name, ("rdf:first", "rdf:rest", "rdf:nil"))
_OF_LISTS = dict.fromkeys((FIRST, REST, *LISTS))
_OF_INDIVIDUALS = {SAME, DIFFERENT, TYPE, *map(name, ("owl:Thing", "owl:Nothing"))}
"""What rules name, but for what the ontology says of classes and properties."""
VOCABULARY: tuple[Term, ...] = tuple(
    dict.fromkeys(
        part
        for part in (*(part for rule in RULES for atom in rule.body for part in atom), *LISTS, *OWNERS)
        if isinstance(part, Iri) and part not in _OF_INDIVIDUALS
    )
)
"""The properties and classes with which the ontology says something of classes and properties."""


class Contradiction(NamedTuple):
    """Facts that contradict each other."""

    time: int
    """Microseconds: since when."""
    rule: str
    facts: tuple[Triple, ...]

    def __str__(self) -> str:
        return f"by the rule {self.rule} of OWL 2 RL: {'; '.join(' '.join(map(str, fact)) for fact in self.facts)}"


class Join(NamedTuple):
    """How a rule is applied to a fact: which pattern it matches, then the others in the order in which they are
    looked up.
    """

    name: str
    first: Pattern
    others: tuple[Pattern, ...]
    head: Pattern | None
    since: int
    """The time from which the rule holds."""
    given: tuple[Fact, ...] = ()
    """Facts that have matched other patterns of the rule already."""


class Closure:
    """The closure of the facts added so far, beside that of `base`, which does not change any more."""

    def __init__(self, base: Closure | None = None, limits: FactLimits | None = None) -> None:
        """With limits, `add` raises TooManyFacts as soon as one is passed."""
        self.limits = limits
        self.terms: Terms = Terms(None if base is None else base.terms)
        self.facts: Facts = Facts(None if base is None else base.facts)
        self.contradiction: Contradiction | None = None if base is None else base.contradiction
        """The earliest one."""
        self._base = base
        self._agenda: list[tuple[int, bool, Fact]] = []
        """Facts whose consequences are still to be found: by time, statements of the ontology first."""
        self._joins: dict[int | None, list[Join]] = defaultdict(list)
        """By the predicate of the pattern that a new fact may match; None: a variable."""
        self._stated: dict[Term, list[tuple[Term, Term, int]]] = defaultdict(list)
        """By list property: subject, object and time of what was stated. Lists are read from these alone: what follows
        for another name of a member follows from the rules of the list.
        """
        self._lists: dict[tuple[Term, Term, tuple[Term, ...]], int] = {}
        self.same, self.type = self.terms.number(SAME), self.terms.number(TYPE)
        self._vocabulary = frozenset(map(self.terms.number, VOCABULARY))
        self._of_lists = frozenset(map(self.terms.number, _OF_LISTS))
        self._prepared: dict[_Kind, list[Join]] = {}
        self._asked: dict[_Asked, set[_Kind]] = defaultdict(set)
        """For the statements that were looked up, the kinds of facts whose joins were prepared with them."""
        self._has_statements = base is None
        """Whether it has statements of the ontology or rules of its own."""
        if base is None:
            for one in RULES:
                self._add_rule(one, ALWAYS)

    def add(self, triples: Iterable[Triple], time: int = ALWAYS) -> None:
        """Adds facts that hold from a time (microseconds) on; without one, always."""
        is_list = False
        for subject, predicate, object_ in triples:
            if predicate in _OF_LISTS:
                self._stated[predicate].append((subject, object_, time))
                is_list = True
            self._learn((self.terms.number(subject), self.terms.number(predicate), self.terms.number(object_)), time)
        self._follow()
        if is_list:
            for rule, since in self._rules_of_lists():
                self._add_rule(rule, since)
                self._apply_to_all(rule, since)
            self._follow()

    def take_over(self, triples: Iterable[Triple], closed: Iterable[Fact]) -> None:
        """Adds facts that always hold, and all that follows from them, as another closure found it."""
        for subject, predicate, object_ in triples:
            if predicate in _OF_LISTS:
                self._stated[predicate].append((subject, object_, ALWAYS))
        for fact in closed:
            self.facts.put(fact, ALWAYS)
        for rule, since in self._rules_of_lists():
            self._add_rule(rule, since)

    # Rules

    def _add_rule(self, rule: Rule, since: int) -> None:
        body, head = self._in_numbers(rule)
        for at, first in enumerate(body):
            others = _in_order((*body[:at], *body[at + 1 :]), frozenset(_variables([first])))
            predicate = first[1]
            self._joins[predicate if predicate >= 0 else None].append(Join(rule.name, first, others, head, since))
        self._prepared.clear()
        self._has_statements = True

    def _in_numbers(self, rule: Rule) -> tuple[tuple[Pattern, ...], Pattern | None]:
        """The rule's body and head."""
        variables: dict[str, int] = {}

        def number(part: AtomPart) -> int:
            if isinstance(part, str):
                return variables.setdefault(part, -1 - len(variables))
            return self.terms.number(part)

        def pattern(atom: Atom) -> Pattern:
            return number(atom.subject), number(atom.predicate), number(atom.object)

        return tuple(map(pattern, rule.body)), None if rule.head is None else pattern(rule.head)

    def _apply_to_all(self, rule: Rule, since: int) -> None:
        """Applies a new rule to the facts that are there."""
        body, head = self._in_numbers(rule)
        whole = Join(rule.name, (0, 0, 0), _in_order(body, frozenset()), head, since)
        for bindings, facts in self._matches(whole.others, {}):
            self._conclude(whole, bindings, self._since(facts), facts)

    # Lists

    def _rules_of_lists(self) -> Iterator[tuple[Rule, int]]:
        """The rules of the lists that were not read before, each with the time since when it holds."""
        for predicate, rules_of in LISTS.items():
            for owner, head, since in self._all_stated(predicate):
                for items, stated in self._items(head, frozenset()):
                    key, time = (predicate, owner, items), max(since, stated)
                    if self._lists.get(key, time + 1) <= time:
                        continue
                    self._lists[key] = time
                    yield from ((rule, time) for rule in rules_of(owner, items))

    def _all_stated(self, predicate: Term) -> Iterator[tuple[Term, Term, int]]:
        if self._base is not None:
            yield from self._base._all_stated(predicate)  # noqa: SLF001 - of the same class
        yield from self._stated.get(predicate, ())

    def _items(self, head: Term, passed: frozenset[Term]) -> Iterator[tuple[tuple[Term, ...], int]]:
        """The items of the lists that begin here, each with the time since when it is stated."""
        if head == NIL:
            yield (), ALWAYS
        if head in passed:
            return  # a ring is no list
        firsts = [(item, time) for cell, item, time in self._all_stated(FIRST) if cell == head]
        rests = [(rest, time) for cell, rest, time in self._all_stated(REST) if cell == head]
        for (item, since), (rest, then) in product(firsts, rests):
            for items, time in self._items(rest, passed | {head}):
                yield (item, *items), max(since, then, time)

    def lists_of(self, predicate: Term, kind: Term) -> Iterator[tuple[tuple[Term, ...], int]]:
        """The lists that are the values of a property of nodes of this type, each with the time since when."""
        if self._base is not None:
            yield from self._base.lists_of(predicate, kind)
        for (stated, owner, items), time in self._lists.items():
            fact = tuple(map(self.terms.find, (owner, TYPE, kind)))
            if stated == predicate and None not in fact:
                since = self.facts.time(fact)  # type: ignore[arg-type]
                if since is not None:
                    yield items, max(time, since)

    # Facts

    def _learn(self, fact: Fact, time: int) -> None:
        known = self.facts.time(fact)
        if known is not None and known <= time:
            return
        subject, predicate, object_ = fact
        if self.terms.is_literal(subject) or self.terms.is_literal(predicate):
            return  # literals are no individuals
        if predicate == self.same and self.terms.is_literal(object_):
            return
        if self.limits is not None and known is None:
            self._check_limits(self.limits, fact)
        self.facts.put(fact, time)
        is_statement = self._is_statement(predicate, object_)
        if is_statement:
            self._forget_joins(fact)
        heappush(self._agenda, (time, not is_statement, fact))

    def _check_limits(self, limits: FactLimits, fact: Fact) -> None:
        """Raises TooManyFacts if a new fact passes a limit."""
        subject, predicate, object_ = fact
        if self.facts.own_count >= limits.facts:
            raise TooManyFacts("max_facts")
        if predicate == self.same and subject != object_:
            others = [one for one in self.facts.objects(subject, self.same) if one != subject]
            if len(others) + 2 > limits.names:  # itself, and the new one
                raise TooManyFacts("max_same_as")

    def _follow(self) -> None:
        """Applies the rules until nothing new follows."""
        while self._agenda:
            time, _, fact = heappop(self._agenda)
            if self.facts.time(fact) != time:
                continue  # it was learned again, with an earlier time
            for join in self._joins_for(fact):
                if not self._may_match(join.others):
                    continue
                bindings = _matched(join.first, fact, {})
                if bindings is None:
                    continue
                if not join.others:  # most joins: what they need of the ontology is given
                    self._conclude(join, bindings, time, (fact,))
                    continue
                for found, facts in [*self._matches(join.others, bindings)]:
                    self._conclude(join, found, max(time, self._since(facts)), (fact, *facts))

    def _may_match(self, patterns: tuple[Pattern, ...]) -> bool:
        """Whether there are facts with the predicate of each pattern: most rules are of things that no fact is of."""
        for _, predicate, object_ in patterns:
            if predicate >= 0 and not self.facts.has(predicate, object_ if predicate == self.type else -1):
                return False
        return True

    def _joins_for(self, fact: Fact) -> list[Join]:
        if self._base is not None and not self._has_statements:
            return self._base._joins_for(fact)  # noqa: SLF001 - of the same class
        _, predicate, object_ = fact
        kind = (predicate, object_ if predicate == self.type else None)
        if kind not in self._prepared:
            joins = [*self._all_joins(predicate), *self._all_joins(None)]
            self._prepared[kind] = [ready for join in joins for ready in self._prepare(join, kind)]
        return self._prepared[kind]

    def _forget_joins(self, statement: Fact) -> None:
        """Forgets the joins that were prepared without the statement."""
        if not self._has_statements:
            self._prepared.clear()
            self._has_statements = True
        subject, predicate, object_ = statement
        for asked in ((subject, predicate, None), (None, predicate, object_), statement):
            for kind in self._asked.pop(asked, ()):
                self._prepared.pop(kind, None)

    def _all_joins(self, predicate: int | None) -> Iterator[Join]:
        if self._base is not None:
            yield from self._base._all_joins(predicate)  # noqa: SLF001 - of the same class
        yield from self._joins.get(predicate, ())

    def _prepare(self, join: Join, kind: _Kind) -> Iterator[Join]:
        """The join for a kind of facts, once for each way in which its next patterns match statements."""
        bindings: Bindings = {}
        for part, value in zip(join.first[1:], kind, strict=True):
            if value is not None and (part if part >= 0 else bindings.setdefault(part, value)) != value:
                return
        for rest, found, facts in self._stated_ways(join.others, bindings, kind):
            times = [self.facts.time(fact) for fact in facts]
            yield Join(
                join.name,
                _filled(join.first, found),
                tuple(_filled(pattern, found) for pattern in rest),
                None if join.head is None else _filled(join.head, found),
                max([join.since, *(time for time in times if time is not None)]),
                facts,
            )

    def _stated_ways(
        self, patterns: tuple[Pattern, ...], bindings: Bindings, kind: _Kind
    ) -> Iterator[tuple[tuple[Pattern, ...], Bindings, tuple[Fact, ...]]]:
        """The ways in which the first patterns match statements that have to do with what is bound: the other patterns,
        the bindings, and the statements.
        """
        if not patterns or not self._is_statement(*patterns[0][1:]) or bindings.keys().isdisjoint(patterns[0]):
            yield patterns, bindings, ()
            return
        subject, _, object_ = (part if part >= 0 else bindings.get(part) for part in patterns[0])
        predicate = patterns[0][1]
        self._asked[subject, predicate, object_].add(kind)
        for fact in self.facts.matching(subject, predicate, object_):
            found = _matched(patterns[0], fact, bindings)
            if found is not None:
                for rest, bound, facts in self._stated_ways(patterns[1:], found, kind):
                    yield rest, bound, (fact, *facts)

    def _is_statement(self, predicate: int, object_: int | None) -> bool:
        """Whether facts with these parts are of the ontology: they say something of classes and properties."""
        if predicate < 0 or object_ is None or (predicate == self.type and object_ < 0):
            return predicate >= 0 and predicate != self.type and predicate in self._vocabulary
        return (object_ if predicate == self.type else predicate) in self._vocabulary

    def own_facts(self) -> Iterator[tuple[Triple, int]]:
        """The facts that are not of the base, each with the earliest time at which it holds."""
        for fact, time in self.facts.own():
            yield self._triple(fact), time

    # For compiled sessions

    def joins_of(self, predicate: int, class_: int | None) -> Sequence[Join]:
        """How rules are applied to facts with the predicate or, if that is the type, with the class."""
        return self._joins_for((0, predicate, 0 if class_ is None else class_))

    def states_axioms(self, predicate: int, object_: int) -> bool:
        """Whether facts, or a pattern, with these parts say something of classes and properties, or are of a list."""
        return self._is_statement(predicate, object_) or predicate in self._of_lists

    def _matches(self, patterns: Sequence[Pattern], bindings: Bindings) -> Iterator[tuple[Bindings, tuple[Fact, ...]]]:
        if not patterns:
            yield bindings, ()
            return
        subject, predicate, object_ = (part if part >= 0 else bindings.get(part) for part in patterns[0])
        for fact in self.facts.matching(subject, predicate, object_):
            found = _matched(patterns[0], fact, bindings)
            if found is not None:
                for bound, facts in self._matches(patterns[1:], found):
                    yield bound, (fact, *facts)

    def _since(self, facts: Iterable[Fact]) -> int:
        """Since when all of the facts hold."""
        times = map(self.facts.time, facts)
        return max((ALWAYS if one is None else one for one in times), default=ALWAYS)

    def _conclude(self, join: Join, bindings: Bindings, time: int, facts: Sequence[Fact]) -> None:
        """Learns what follows from facts that match the join, and all hold from the time on."""
        time = max(time, join.since)
        if join.head is not None:
            subject, predicate, object_ = _filled(join.head, bindings)
            if predicate != self.same or subject != object_:  # that everything is the same as itself is known
                self._learn((subject, predicate, object_), time)
        elif self.contradiction is None or time < self.contradiction.time:
            shown = tuple(self._triple(fact) for fact in (*facts[:1], *join.given, *facts[1:]))
            self.contradiction = Contradiction(time, join.name, shown)

    def _triple(self, fact: Fact) -> Triple:
        subject, predicate, object_ = map(self.terms.term, fact)
        return subject, predicate, object_


def _filled(pattern: Pattern, bindings: Bindings) -> Pattern:
    """The pattern with terms in place of bound variables."""
    subject, predicate, object_ = pattern
    return bindings.get(subject, subject), bindings.get(predicate, predicate), bindings.get(object_, object_)


def _matched(pattern: Pattern, fact: Fact, bindings: Bindings) -> Bindings | None:
    """The bindings with those of the pattern's variables to the fact; None if they do not agree."""
    found = bindings
    for part, value in zip(pattern, fact, strict=True):
        if part >= 0:
            if part != value:
                return None
        elif (known := found.get(part)) is None:
            if found is bindings:
                found = {**bindings}
            found[part] = value
        elif known != value:
            return None
    return found


def _variables(patterns: Iterable[Pattern]) -> set[int]:
    return {part for pattern in patterns for part in pattern if part < 0}


@lru_cache(maxsize=4096)
def _in_order(patterns: tuple[Pattern, ...], bound: frozenset[int]) -> tuple[Pattern, ...]:
    """The patterns, next always the one with the most parts that are bound by then; a bound predicate comes first."""
    remaining, ordered = [*patterns], list[Pattern]()
    while remaining:
        known = bound | _variables(ordered)
        best = max(remaining, key=lambda one: [one[1] >= 0 or one[1] in known, sum(p >= 0 or p in known for p in one)])
        remaining.remove(best)
        ordered.append(best)
    return tuple(ordered)
