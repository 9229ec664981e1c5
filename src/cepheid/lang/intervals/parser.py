"""Interval patterns as query text, in the style of Zhou et al.

    EVENT PAL((A a overlap B b) (!D) before C c)
    WHERE a.user = b.user WITHIN 10 min REALTIME 1

`docs/intervals.md` has the grammar. An event is written as its type and its variable; if there is only the type, it is
the variable, too. A negation in a hierarchy is about the two parts on its left and right. A negation in a list is about
the events before it and the events after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from cepheid.errors import PatternError, closest
from cepheid.lang.arguments import shown
from cepheid.lang.consistency import Consistency
from cepheid.lang.duration import parse_duration
from cepheid.lang.expression import Span
from cepheid.lang.intervals.grammar import (
    CLAUSES,
    known,
    listed,
    name,
    order,
    read,
    relations,
    tree,
    variable,
)
from cepheid.lang.intervals.values import (
    RELATIONS,
    Comparison,
    Mode,
    Negation,
    Pair,
    Positive,
    Scope,
    Tree,
    Window,
    default_scope,
    variables_of,
)
from cepheid.lang.sql.cursor import Cursor, refused
from cepheid.lang.sql.tokens import Kind, Token


@dataclass(frozen=True)
class Query:
    """What a query text says of the events of a match, and of what must hold between them."""

    mode: Mode
    positives: tuple[Positive, ...]
    tree: Tree | None = None
    pairs: tuple[Pair, ...] = ()
    order: tuple[Comparison, ...] = ()
    negations: tuple[Negation, ...] = ()
    condition: str | None = None
    """SQL over the variables: `a.user = b.user`, `start(b) - end(a) < INTERVAL 1 HOUR`. A semantic filter is written as
    `semantic('…')`, AND-ed with the rest.
    """
    window: timedelta | None = None
    window_of: Window = Window.MATCH
    consistency: Consistency = Consistency.CONSERVATIVE


def parse_query(text: object) -> Query:
    """
    Raises:
        PatternError: the text is not a query; with the place.
    """
    if not isinstance(text, str):
        raise PatternError(f"a query is text, as in 'EVENT SEQ(Login a, Pay b)', got {shown(text)}")
    return read(text, _query)


@dataclass
class _Parts:
    """What has been read so far between the parentheses of EVENT."""

    mode: Mode
    positives: list[Positive] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    negations: list[Negation] = field(default_factory=list)


def _query(cursor: Cursor) -> Query:
    cursor.expect("EVENT")
    mode = cursor.accept("PAL", "SEQ")
    if mode is None:
        raise cursor.unexpected("PAL or SEQ is expected")
    parts = _Parts(Mode[mode.text])
    cursor.expect("(")
    open_: list[tuple[Negation, int]] = []
    while True:
        _item(cursor, parts, open_)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    variables = [p.variable for p in parts.positives]
    for negation, before in open_:  # in a list, the parts are the variables before and after it
        parts.negations.append(_between(parts.mode, negation, variables[:before], variables[before:]))
    pattern = Query(
        parts.mode, tuple(parts.positives), parts.trees[0] if parts.trees else None, negations=tuple(parts.negations)
    )
    return _clauses(cursor, pattern)


def _item(cursor: Cursor, parts: _Parts, open_: list[tuple[Negation, int]]) -> None:
    if (negation := _negated(cursor)) is not None:
        open_.append((negation, len(parts.positives)))
        return
    start = cursor.at

    def leaf(cursor: Cursor) -> str:
        positive = Positive(*reversed(_event(cursor)))
        parts.positives.append(positive)
        return positive.variable

    def between(cursor: Cursor, left: Tree) -> Callable[[Tree], None]:
        found: list[Negation] = []
        while (negation := _negated(cursor)) is not None:
            found.append(negation)

        def add_right(right: Tree) -> None:
            names = [*variables_of(left)], [*variables_of(right)]
            parts.negations.extend(_between(parts.mode, one, *names) for one in found)

        return add_right

    found = tree(cursor, leaf, between)
    if not isinstance(found, str):
        if parts.trees:
            hint = "Write the other relations after RELATE."
            cursor.report(refused("a pattern has one hierarchy", cursor.span(start), hint))
        parts.trees.append(found)


def _between(mode: Mode, negation: Negation, left: Sequence[str], right: Sequence[str]) -> Negation:
    """The negation between the two parts, with their default scope if it has none."""
    scope = negation.scope or default_scope(mode, left, right)
    return replace(negation, scope=scope, left=tuple(left), right=tuple(right))


def _event(cursor: Cursor) -> tuple[str, str]:
    """The event's type and variable."""
    type_ = name(cursor, "the type of an event")
    follows = _is_name(cursor, cursor.next) and not _is_misspelled(cursor)
    return type_, variable(cursor) if follows else type_


def _is_name(cursor: Cursor, token: Token) -> bool:
    return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and cursor.written(token.span).lower() not in _AFTER)


def _is_misspelled(cursor: Cursor) -> bool:
    """Whether the next word looks like a misspelled relation and not like a variable: an event follows it, and the word
    is similar to a relation, as `befor` is to `before`.
    """
    event = _is_name(cursor, cursor.peek()) or (cursor.peek().text == "(" and cursor.peek(2).text != "!")
    return event and bool(closest(cursor.written(cursor.next.span), list(RELATIONS)))


_AFTER = {*RELATIONS, *(scope.value for scope in Scope), *(clause.lower() for clause in CLAUSES)}
"""Words that may follow an event. A variable with such a name needs back-quotes."""


def _negated(cursor: Cursor) -> Negation | None:
    """The negation `!D d` or `(!D d gap WHERE …)`; None if there is none. The caller adds its parts, and its scope if
    the text has none.
    """
    if cursor.accept("!"):
        type_, variable_ = _event(cursor)
        return Negation(variable_, type_)
    if cursor.sees("(") and cursor.peek().text == "!":
        cursor.take()
        cursor.take()
        type_, variable_ = _event(cursor)
        scope = None if cursor.sees("WHERE", "ORDER", ")") else _scope(cursor)
        return _closed(cursor, Negation(variable_, type_, scope))
    return None


def _closed(cursor: Cursor, negation: Negation) -> Negation:
    """The order and the condition of the negation, up to its closing parenthesis."""
    if cursor.accept("ORDER"):
        negation = replace(negation, order=order(cursor))
    if cursor.accept("WHERE"):
        negation = replace(negation, condition=_condition(cursor))
    cursor.expect(")")
    return negation


def _scope(cursor: Cursor) -> Scope:
    return known(cursor, "scope of a negation", {scope.value: scope for scope in Scope})


# Clauses


def _clauses(cursor: Cursor, pattern: Query) -> Query:
    seen: set[str] = set()
    stated: dict[Span, Consistency] = {}
    while (clause := _clause(cursor)) is not None:
        if clause.text in seen and clause.text != "WITHOUT":
            cursor.report(refused(f"{clause.text} is given a second time", clause.span))
        seen.add(clause.text)
        start = cursor.at - 1
        pattern = _CLAUSES[clause.text](cursor, pattern)
        if clause.text in ("REALTIME", "CONSISTENCY"):
            stated[cursor.span(start)] = pattern.consistency
    if cursor.next.kind is not Kind.END:
        raise cursor.unexpected(_CLAUSE_EXPECTED)
    return replace(pattern, consistency=_together(cursor, stated))


def _clause(cursor: Cursor) -> Token | None:
    """The word that begins a clause. `Real-time Factor` is what the paper writes in place of REALTIME."""
    start = cursor.at
    if not _sees_factor(cursor):
        return cursor.accept(*_CLAUSES)
    for _ in _FACTOR:
        cursor.take()
    return Token(Kind.WORD, "REALTIME", *cursor.span(start))


def _sees_factor(cursor: Cursor) -> bool:
    return all(cursor.peek(place).text == word for place, word in enumerate(_FACTOR))


_FACTOR = ("REAL", "-", "TIME", "FACTOR")


def _together(cursor: Cursor, stated: Mapping[Span, Consistency]) -> Consistency:
    """The consistency that the clauses REALTIME and CONSISTENCY give together. REALTIME 0 (nothing is retracted) agrees
    with both `conservative` and `earliest`.
    """
    found = set(stated.values())
    if Consistency.REALTIME in found and len(found) > 1:
        first, *_, last = stated
        message = f"{cursor.written(last)} contradicts {cursor.written(first)}"
        cursor.report(refused(message, last, "Leave one of them out."))
    return next((one for one in (Consistency.REALTIME, Consistency.EARLIEST) if one in found), Consistency.CONSERVATIVE)


def _tree_clause(cursor: Cursor, pattern: Query) -> Query:
    start = cursor.at
    found = tree(cursor)
    if pattern.tree is not None:
        hint = "Write the other relations after RELATE."
        cursor.report(refused("a pattern has one hierarchy", cursor.span(start), hint))
    return replace(pattern, tree=found)


def _pair(cursor: Cursor) -> Pair:
    return Pair(variable(cursor), relations(cursor), variable(cursor))


def _without(cursor: Cursor, pattern: Query) -> Query:
    cursor.expect("(")
    type_, variable_ = _event(cursor)
    negation = Negation(variable_, type_)
    if not cursor.sees("ORDER"):
        scope = _scope(cursor)
        cursor.expect("(")
        left = () if cursor.sees("|") else listed(cursor, variable)
        cursor.expect("|")
        right = () if cursor.sees(")") else listed(cursor, variable)
        cursor.expect(")")
        negation = Negation(variable_, type_, scope, left, right)
    return replace(pattern, negations=(*pattern.negations, _closed(cursor, negation)))


def _condition(cursor: Cursor) -> str:
    """The SQL text up to the next clause or the closing parenthesis. It is parsed when conditions are checked."""
    start, depth = cursor.at, 0
    name_follows = False
    while cursor.next.kind is not Kind.END:
        if depth == 0 and not name_follows and (cursor.sees(")", *CLAUSES) or _sees_factor(cursor)):
            break
        depth += cursor.sees("(") - cursor.sees(")")
        name_follows = cursor.take().text == "."
    if cursor.at == start:
        raise cursor.unexpected("a condition is expected")
    return cursor.written(cursor.span(start))


def _length(cursor: Cursor) -> timedelta:
    start, understood = cursor.at, None
    while not (cursor.next.kind is Kind.END or cursor.sees("OF", *CLAUSES) or _sees_factor(cursor)):
        cursor.take()
        if _is_length(cursor.written(cursor.span(start))):
            understood = cursor.at
    if cursor.at == start:
        raise cursor.unexpected("a length of time, such as 10 min, is expected")
    if understood is not None:
        cursor.at = understood  # what follows is no part of the length, and is reported as what it is
    span = cursor.span(start)
    try:
        return parse_duration(cursor.written(span), or_zero=True)
    except PatternError as error:
        cursor.report(refused(error.problems[0].message, span))
        return timedelta(0)


def _is_length(text: str) -> bool:
    try:
        parse_duration(text, or_zero=True)
    except PatternError:
        return False
    return True


def _window_of(cursor: Cursor) -> Window:
    if not cursor.sees("OF"):
        return Window.MATCH
    cursor.take()
    return known(cursor, "part of a match that WITHIN bounds", {"starts": Window.STARTS})


def _realtime(cursor: Cursor) -> Consistency:
    if cursor.next.text not in ("0", "1"):
        raise cursor.unexpected("0 (nothing is retracted) or 1 (at once) is expected")
    return Consistency.REALTIME if cursor.take().text == "1" else Consistency.CONSERVATIVE


def _consistency(cursor: Cursor) -> Consistency:
    return known(cursor, "consistency", {consistency.value: consistency for consistency in Consistency})


_CLAUSES: dict[str, Callable[[Cursor, Query], Query]] = {
    "TREE": _tree_clause,
    "RELATE": lambda cursor, pattern: replace(pattern, pairs=listed(cursor, _pair)),
    "ORDER": lambda cursor, pattern: replace(pattern, order=order(cursor)),
    "WITHOUT": _without,
    "WHERE": lambda cursor, pattern: replace(pattern, condition=_condition(cursor)),
    "WITHIN": lambda cursor, pattern: replace(pattern, window=_length(cursor), window_of=_window_of(cursor)),
    "REALTIME": lambda cursor, pattern: replace(pattern, consistency=_realtime(cursor)),
    "CONSISTENCY": lambda cursor, pattern: replace(pattern, consistency=_consistency(cursor)),
}
_CLAUSE_EXPECTED = f"one of {', '.join(_CLAUSES)} or the end is expected"
