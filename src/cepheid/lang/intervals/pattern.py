"""Interval patterns: events with a start and an end, and how these lie in time relative to each other.

Every call returns a new value, and checks only its own arguments. Everything else is checked when the pattern meets its
events, and all problems are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from cepheid.errors import PatternError
from cepheid.lang.argument_advice import TYPES
from cepheid.lang.arguments import pattern_name, shown
from cepheid.lang.consistency import Consistency, given_consistency
from cepheid.lang.duration import parse_duration
from cepheid.lang.intervals.grammar import clause_words, order, read, tree
from cepheid.lang.intervals.parser import Query, parse_query
from cepheid.lang.intervals.picture import picture_of
from cepheid.lang.intervals.printer import calls_text
from cepheid.lang.intervals.values import (
    Mode,
    Negation,
    Pair,
    Positive,
    Relation,
    Scope,
    Tree,
    Window,
    default_scope,
    relation_named,
    scope_named,
    window_named,
)
from cepheid.lang.known_arguments import known_arguments, known_calls
from cepheid.lang.parameters import GivenValue, Parameter, string_literal, with_values
from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.drawn import Drawn
from cepheid.lang.semantic import SemanticFilter, check_knowledge
from cepheid.lang.sql.tokens import tokenize
from cepheid.lang.taxonomy import Taxonomy, make_taxonomy

if TYPE_CHECKING:
    from cepheid.knowledge.events.mapping import EventMapping
    from cepheid.knowledge.knowledge import Knowledge


@known_calls
@dataclass(frozen=True)
class IntervalPattern(Query, Drawn):
    """The variables of the events, and everything that must hold between these events.

    Made by `of` from text, or by `pal` or `seq`; refined by the other calls.
    """

    name: str = "pattern"
    """Part of every match_id, so that the matches of two patterns never have the same id."""
    types: Taxonomy | None = None
    """Set by `taxonomy`. None: it must be set before events are matched."""
    parameters: tuple[Parameter, ...] = ()
    """Set by `with_parameters` and by pattern files, each name once."""
    version: str | None = None
    """For people who store versions of patterns; it is not part of match_id."""
    knowledge: Knowledge | None = None
    """Set by `with_knowledge`: what semantic filters ask. The types of variables are then its classes."""
    mapping: EventMapping | None = None
    """Set by `with_knowledge`: how events are individuals. There if and only if there is knowledge."""

    def __repr__(self) -> str:
        return calls_text(self)

    @property
    def picture(self) -> Box:
        """The pattern as boxes, which a notebook shows."""
        return picture_of(self)

    @staticmethod
    @known_arguments(TYPES)
    def of(text: str, *, knowledge: Knowledge | None = None, mapping: EventMapping | None = None) -> IntervalPattern:
        """The pattern in the query text, as in `EVENT PAL(A a overlap B b) WITHIN 10 min`.

        Args:
            text: In it, semantic filters are written as `semantic('…')`, AND-ed with other conditions.
            knowledge: What semantic filters ask. The types of variables are then classes.
            mapping: How events are individuals; given if and only if knowledge is.

        Raises:
            PatternError: the text is not a pattern; with the place.
        """
        check_knowledge(knowledge, mapping)
        return IntervalPattern(**vars(parse_query(text)), knowledge=knowledge, mapping=mapping)

    @staticmethod
    def pal(**types: str) -> IntervalPattern:
        """Begins a pattern with variables and the types of their events. Nothing holds between them yet."""
        return _declared(Mode.PAL, types)

    @staticmethod
    def seq(**types: str) -> IntervalPattern:
        """Begins a pattern with variables and the types of their events, which follow one after the other."""
        return _declared(Mode.SEQ, types)

    def nested(self, relations: str | Tree) -> IntervalPattern:
        """Adds a hierarchy of relations between the spans of events: `(a overlap b) before c`, also with counts: `(a
        overlap[0, 0, 0, 1, 0] b) before[0, 0, 0, 0, 0] c`.
        """
        if self.tree is not None:
            raise PatternError("a pattern has one hierarchy: write all of it in one nested(…), the rest as relate(…)")
        return replace(self, tree=read(relations, tree) if isinstance(relations, str) else relations)

    def relate(self, left: str, relations: str | Relation | Iterable[str | Relation], right: str) -> IntervalPattern:
        """Requires that one of the relations holds between the two events."""
        several = [relations] if isinstance(relations, str | Relation) else relations
        found = tuple(relation_named(one) if isinstance(one, str) else one for one in several)
        return replace(self, pairs=(*self.pairs, Pair(left, found, right)))

    def ordered(self, comparisons: str) -> IntervalPattern:
        """Requires an order of endpoints: `start(a) < start(b) = end(a), end(b) >= start(c)`."""
        return replace(self, order=(*self.order, *read(comparisons, order)))

    def without(
        self,
        variable: str,
        type: str,  # noqa: A002 - what it is called everywhere
        *,
        between: tuple[str | Iterable[str], str | Iterable[str]] | None = None,
        scope: str | Scope | None = None,
        ordered: str | None = None,
        where: str | SemanticFilter | None = None,
    ) -> IntervalPattern:
        """Requires that no other event of the type lies in the scope and satisfies `ordered` and `where`.

        `between` names the variables of the two parts that the scope is about. One of them may be empty, as in
        `between=("b", ())`: then no such event comes after b until a window after the start of the match. `scope` is
        start_between by default, seq_between in a SEQ pattern, and gap where a part is empty. Without `between`,
        `ordered` alone says where the event must not lie.
        """
        if (between is None) and (ordered is None or scope is not None):
            message = "say where the negated event may not lie"
            raise PatternError(f"{message}: between=(left variables, right variables), or ordered='end(a) <= start(d)'")
        found = scope_named(scope) if isinstance(scope, str) else scope
        left, right = map(_names, _parts(between))
        if between is not None and found is None:
            found = default_scope(self.mode, left, right)
        comparisons = read(ordered, order) if ordered else ()
        condition = None if where is None else _condition(where)
        negation = Negation(variable, type, found, left, right, comparisons, condition)
        return replace(self, negations=(*self.negations, negation))

    def where(self, condition: str | SemanticFilter) -> IntervalPattern:
        """Adds a condition in SQL or, with knowledge, `semantic("…")`, in which a variable of the pattern is the
        individual of its event. The conditions of several calls must all hold.
        """
        found = _condition(condition)
        whole = found if self.condition is None else f"({self.condition}) AND ({found})"
        return replace(self, condition=whole)

    def within(self, length: str | timedelta, *, of: str | Window = Window.MATCH) -> IntervalPattern:
        """Limits a match to this length, from its first start to its last end; with `of="starts"` to its last start."""
        return replace(self, window=parse_duration(length, or_zero=True), window_of=window_named(of))

    def emitting(self, consistency: str | Consistency) -> IntervalPattern:
        """Sets when matches are emitted if events arrive out of order."""
        return replace(self, consistency=given_consistency(consistency))

    def named(self, name: str) -> IntervalPattern:
        return replace(self, name=pattern_name(name))

    def taxonomy(self, column: str, kinds: Mapping[str, str | Sequence[str]] | None = None) -> IntervalPattern:
        """Names the column that holds the type of each event, and gives for a type the types that it is a kind of."""
        return replace(self, types=make_taxonomy(column, kinds or {}))

    def with_knowledge(self, knowledge: Knowledge, mapping: EventMapping) -> IntervalPattern:
        """Gives what semantic filters ask, and how events are its individuals. The types of variables are then classes
        of the knowledge, and the pattern has no taxonomy.
        """
        check_knowledge(knowledge, mapping)
        return replace(self, knowledge=knowledge, mapping=mapping)

    def with_parameters(self, /, **values: GivenValue) -> IntervalPattern:
        """Gives each `$name` in conditions its value, as `Pattern.with_parameters` does."""
        return replace(self, parameters=with_values(self.parameters, values))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the match, then those of negations."""
        return (*(p.variable for p in self.positives), *(n.variable for n in self.negations))


@known_arguments(TYPES)
def interval_pattern(
    text: str, *, knowledge: Knowledge | None = None, mapping: EventMapping | None = None
) -> IntervalPattern:
    """The same as `IntervalPattern.of`."""
    return IntervalPattern.of(text, knowledge=knowledge, mapping=mapping)


def _declared(mode: Mode, types: Mapping[str, object]) -> IntervalPattern:
    for variable, type_ in types.items():
        if not isinstance(type_, str):
            raise PatternError(f"{variable}: the type of its events is expected as text, got {shown(type_)}")
    return IntervalPattern(mode, tuple(Positive(variable, str(type_)) for variable, type_ in types.items()))


def _parts(between: object) -> tuple[object, object]:
    """The two parts; none are given if the order alone says where the event must not lie."""
    if between is None:
        return (), ()
    if isinstance(between, str) or not isinstance(between, Sequence) or len(between) != 2:
        what = "between names the variables of two parts, as in between=('a', ['b', 'c']); () is a part without events"
        raise PatternError(f"{what}, got {shown(between)}")
    left, right = between
    return left, right


def _names(part: object) -> tuple[str, ...]:
    given = (part,) if isinstance(part, str) else part
    names = (*given,) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        what = "between names the variables of two parts, as in between=('a', ['b', 'c']); () is a part without events"
        raise PatternError(f"{what}, got {shown(part)}")
    return names


def _condition(given: object) -> str:
    """The condition without comments around it, which would belong to no clause in the query text. Words that would
    begin a clause are quoted.
    """
    if isinstance(given, SemanticFilter):
        return f"semantic({string_literal(given.text)})"
    if not isinstance(given, str) or not given.strip():
        raise PatternError(f"a condition is SQL text, as in 'a.user = b.user', got {shown(given)}")
    try:
        *words, _ = tokenize(given)
    except PatternError:
        return given.strip()  # a quote is not closed; the parser reports it, with its place
    if not words:
        return given.strip()
    found = given[words[0].start : words[-1].end]
    for token in reversed([*clause_words(found)]):
        found = f"{found[: token.start]}`{found[slice(*token.span)]}`{found[token.end :]}"
    return found
