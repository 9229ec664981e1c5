"""Rules for the parts of interval patterns in text: names, relations, orders of endpoints, trees.

Each rule takes the cursor, moves it past what it reads, and returns what it read. The printer beside each rule is its
inverse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from cepheid.errors import PatternError, Problem, closest, did_you_mean
from cepheid.lang.consistency import End
from cepheid.lang.intervals.values import (
    COMPARISONS,
    RELATIONS,
    Comparison,
    Counts,
    Endpoint,
    Related,
    Relation,
    Scope,
    Tree,
)
from cepheid.lang.sql.cursor import MAX_DEPTH, Cursor, refused
from cepheid.lang.sql.tokens import Kind, Token, tokenize

_T = TypeVar("_T")

CLAUSES = ("TREE", "RELATE", "ORDER", "WITHOUT", "WHERE", "WITHIN", "REALTIME", "CONSISTENCY")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_WORDS = {*CLAUSES, "EVENT", *(n.upper() for n in RELATIONS), *(s.value.upper() for s in Scope)}


def read(text: str, rule: Callable[[Cursor], _T]) -> _T:
    """The result of the rule for the whole text; PatternError, with all problems and their places, if the text is not
    valid.
    """
    problems: list[Problem] = []
    try:
        cursor = Cursor(text, {})
        problems = cursor.problems
        found = rule(cursor)
        if cursor.next.kind is not Kind.END:
            raise cursor.unexpected("the end is expected")
        if not problems:
            return found
    except PatternError as error:
        problems += error.problems
    raise PatternError([replace(problem, text=text, where="interval pattern") for problem in problems])


def name(cursor: Cursor, what: str) -> str:
    """A name as written, or the text between back-quotes."""
    token = cursor.next
    if token.kind is Kind.QUOTED:
        return cursor.take().text
    if token.kind is not Kind.WORD or token.text in _WORDS:
        raise cursor.unexpected(f"{what} is expected")
    cursor.take()
    return cursor.written(token.span)


def quoted(written: str) -> str:
    """The text that `name` reads as this name."""
    if _PLAIN.fullmatch(written) and written.upper() not in _WORDS:
        return written
    return f"`{written.replace('`', '``')}`"


def known(cursor: Cursor, what: str, names: Mapping[str, _T]) -> _T:
    """The value that the next word names. A misspelled word is reported, and reading continues after it."""
    token = cursor.next
    written = cursor.written(token.span)
    if written.lower() not in names:
        error = refused(f"no {what} is named {written!r}", token.span, did_you_mean(written, list(names)))
        if not closest(written, list(names)):  # no name is similar, so there is nothing to continue with
            raise error
        cursor.report(error)
    cursor.take()
    return names.get(written.lower()) or next(iter(names.values()))


def clause_words(condition: str) -> Iterator[Token]:
    """The words in the condition that would begin a clause of the query text: those outside parentheses and not
    directly after a point.
    """
    depth, name_follows = 0, False
    for token in tokenize(condition):
        if token.kind is Kind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        elif depth == 0 and token.kind is Kind.WORD and token.text in CLAUSES and not name_follows:
            yield token
        name_follows = token.text == "."


def listed(cursor: Cursor, rule: Callable[[Cursor], _T]) -> tuple[_T, ...]:
    """One or more items, separated by commas."""
    found = [rule(cursor)]
    while cursor.accept(","):
        found.append(rule(cursor))
    return tuple(found)


def variable(cursor: Cursor) -> str:
    return name(cursor, "a variable")


# Relations


def relation(cursor: Cursor) -> Relation:
    if cursor.next.kind is not Kind.WORD:
        raise cursor.unexpected("a relation, such as overlap, is expected")
    return known(cursor, "relation", RELATIONS)


def relations(cursor: Cursor) -> tuple[Relation, ...]:
    """One relation, or several separated by bars."""
    found = [relation(cursor)]
    while cursor.accept("|"):
        found.append(relation(cursor))
    return tuple(found)


def relations_text(found: Iterable[Relation]) -> str:
    return " | ".join(one.value for one in found)


# Endpoints


def endpoint(cursor: Cursor) -> Endpoint:
    token = cursor.accept("START", "END")
    if token is None:
        raise cursor.unexpected("start(…) or end(…) of a variable is expected")
    cursor.expect("(")
    found = Endpoint(variable(cursor), End[token.text])
    cursor.expect(")")
    return found


def chain(cursor: Cursor) -> tuple[Comparison, ...]:
    """One comparison for each pair of neighbours in a chain such as `start(a) < start(b) = end(c)`."""
    left, found = endpoint(cursor), list[Comparison]()
    while not found or cursor.sees(*COMPARISONS):
        operator = cursor.accept(*COMPARISONS)
        if operator is None:
            raise cursor.unexpected("<, <=, =, >= or > is expected")
        right = endpoint(cursor)
        found.append(Comparison(left, operator.text, right))
        left = right
    return tuple(found)


def order(cursor: Cursor) -> tuple[Comparison, ...]:
    return tuple(comparison for part in listed(cursor, chain) for comparison in part)


def order_text(comparisons: Iterable[Comparison]) -> str:
    return ", ".join(f"{_endpoint_text(c.left)} {c.operator} {_endpoint_text(c.right)}" for c in comparisons)


def _endpoint_text(found: Endpoint) -> str:
    return f"{found.end.value}({quoted(found.variable)})"


# Trees


def tree(
    cursor: Cursor,
    leaf: Callable[[Cursor], str] = variable,
    between: Callable[[Cursor, Tree], Callable[[Tree], None]] | None = None,
) -> Tree:
    """A tree of parts and the relations between them; several relations in a row are grouped from the left.

    `leaf` reads a variable. `between` reads what may follow a left part, and returns a function that is called with the
    right part once that is read.
    """
    return _tree(cursor, leaf, between, 0)


def _tree(
    cursor: Cursor,
    leaf: Callable[[Cursor], str],
    between: Callable[[Cursor, Tree], Callable[[Tree], None]] | None,
    depth: int,
) -> Tree:
    if depth > MAX_DEPTH:
        raise refused(f"parentheses are nested more than {MAX_DEPTH} levels deep", cursor.next.span)

    def part() -> Tree:
        if not cursor.accept("("):
            return leaf(cursor)
        inner = _tree(cursor, leaf, between, depth + 1)
        cursor.expect(")")
        return inner

    left = part()
    while not cursor.sees(")", ",") and cursor.next.kind is not Kind.END and not cursor.sees(*CLAUSES):
        add_right = between(cursor, left) if between else None
        if add_right and cursor.sees(")", ","):
            expected = "a relation after the negation is expected (after the last event it follows a comma: A a, !D d)"
            raise cursor.unexpected(expected)
        found, counts = _stated(cursor)
        right = part()
        if add_right:
            add_right(right)
        left = Related(found, left, right, counts)
    return left


def _stated(cursor: Cursor) -> tuple[Relation, Counts | None]:
    """The relation of two parts, with its counts; the paper also writes it in parentheses: `A (overlap) B`."""
    in_parentheses = cursor.accept("(")
    found = relation(cursor)
    counts = counted(cursor) if cursor.sees("[") else None
    if in_parentheses:
        cursor.expect(")")
    return found, counts


def counted(cursor: Cursor) -> Counts:
    """The counts in `[contain, finished by, meet, overlap, start]`."""
    start = cursor.at
    cursor.expect("[")
    numbers = listed(cursor, _number)
    cursor.expect("]")
    if len(numbers) != 5:
        hint = "They are [contain, finished by, meet, overlap, start]."
        cursor.report(refused(f"five counts are expected, found {len(numbers)}", cursor.span(start), hint))
        return Counts(0, 0, 0, 0, 0)
    return Counts(*numbers)


def _number(cursor: Cursor) -> int:
    token = cursor.next
    if token.kind is not Kind.NUMBER or not token.text.isdecimal():
        raise cursor.unexpected("a whole number is expected")
    return int(cursor.take().text)


def tree_text(part: Tree, leaf: Callable[[str], str] = quoted) -> str:
    """The text that `tree` reads as this tree; each relation is in parentheses."""
    if isinstance(part, str):
        return leaf(part)
    counts = part.counts
    numbers = counts and [counts.contain, counts.finished_by, counts.meet, counts.overlap, counts.start]
    count_text = f"[{', '.join(map(str, numbers))}]" if numbers else ""
    return f"({tree_text(part.left, leaf)} {part.relation.value}{count_text} {tree_text(part.right, leaf)})"
