"""Rules for function calls: plain arguments, lambdas, units, and words between the arguments as in `trim(a FROM b)`.

Arguments are expressions again, whose rules are in `parser`. The functions here take these rules as an argument, so
that the two modules do not import each other.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.lang.sql.cursor import Cursor, Rule, refused
from cepheid.lang.sql.names import name, type_name
from cepheid.lang.sql.refused import DISTINCT, why_refused
from cepheid.lang.sql.tokens import Kind, Token
from cepheid.lang.sql.written import as_written, is_operator

_UNIT_FUNCTIONS = frozenset(
    {"timestampdiff", "timestampadd", "datediff", "date_diff", "dateadd", "date_add", "timediff"}
)
_UNIT_WORDS = """YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND"""
_UNITS = frozenset(_UNIT_WORDS.split())
_WITH_UNIT = 3
"""The arguments of these functions, the unit among them."""
_BETWEEN_ARGUMENTS = ("FROM", "FOR", "PLACING", "IN")


class Rules(NamedTuple):
    """The rules that read arguments."""

    expression: Rule
    value: Rule
    """Reads an expression without AND, OR, NOT and predicates such as IN, which may separate two arguments."""


_Application: TypeAlias = tuple[str, tuple[Expression, ...]]
"""A function's name, which distinguishes forms with different meanings, and its arguments."""


def function_call(cursor: Cursor, rules: Rules) -> Expression:
    """`name(arguments)`; PatternError for a function that is refused."""
    start = cursor.at
    called = cursor.take()
    function = called.text.lower()
    if is_operator(function):
        raise refused(f"there is no function {function}", called.span, f"Spark's SQL writes {as_written(function)}.")
    cursor.expect("(")
    function, args = _special(cursor, rules, function) or (function, _arguments(cursor, rules, function))
    call = Call(function, args, cursor.span(start))
    if reason := why_refused(function, len(args)):
        raise refused(f"{function}() {reason}", call.span)
    _refuse_clauses(cursor, function)
    return call


def _refuse_clauses(cursor: Cursor, function: str) -> None:
    if cursor.sees("FILTER", "OVER", "WITHIN") and cursor.peek().text in ("(", "GROUP"):
        token = cursor.next
        what = "window functions are refused" if token.text == "OVER" else f"{token.text} is refused"
        hint = "Refer to earlier events by their stage." if token.text == "OVER" else None
        raise refused(f"{what} after {function}(…)", token.span, hint)


# Plain arguments


def _arguments(cursor: Cursor, rules: Rules, function: str) -> tuple[Expression, ...]:
    if cursor.accept(")"):
        return ()
    token = cursor.next
    if cursor.sees("DISTINCT"):
        raise refused(f"DISTINCT is refused in {function}(…)", token.span)
    if cursor.sees("*"):
        hint = "Write count(stage) for the number of events that a stage has so far." if function == "count" else None
        raise refused("'*' is refused", token.span, hint)
    args: list[Expression] = []
    if function in _UNIT_FUNCTIONS and token.text in _UNITS and cursor.peek().text == ",":
        args.append(_word(cursor.take()))
        cursor.expect(",")
    args.append(_argument(cursor, rules))
    while cursor.accept(","):
        args.append(_argument(cursor, rules))
    cursor.expect(")")
    if function in _UNIT_FUNCTIONS and len(args) == _WITH_UNIT and token.kind is Kind.STRING:
        raise refused(f"the unit of {function} is a word without quotes", token.span, _units_for(token))
    return tuple(args)


def _units_for(text: Token) -> str:
    """What to write in place of a unit in quotes."""
    unit = text.text[1:-1].upper().removesuffix("S")
    return f"Write {unit}." if unit in _UNITS else f"Write one of {', '.join(_UNIT_WORDS.split())}."


def _word(token: Token) -> Literal:
    """A word that stands for itself: a unit, a field, a side."""
    return Literal(token.text.lower(), pa.string(), token.span)


def _argument(cursor: Cursor, rules: Rules) -> Expression:
    start = cursor.at
    parameters = _parameters(cursor)
    if not parameters:
        return rules.expression(cursor)
    cursor.expect("->")
    return Call("lambda", (*parameters, rules.expression(cursor)), cursor.span(start))


def _parameters(cursor: Cursor) -> list[Name]:
    """The names before a lambda's arrow; empty, with nothing taken, if there is no lambda."""
    if cursor.peek().text == "->":
        return [name(cursor)]
    if not (cursor.sees("(") and cursor.peek(2).text == ","):
        return []
    closing = 1
    while cursor.peek(closing).kind in (Kind.WORD, Kind.QUOTED) or cursor.peek(closing).text == ",":
        closing += 1
    if (cursor.peek(closing).text, cursor.peek(closing + 1).text) != (")", "->"):
        return []
    cursor.take()
    names = [name(cursor)]
    while cursor.accept(","):
        names.append(name(cursor))
    cursor.expect(")")
    return names


# Words between the arguments


def _special(cursor: Cursor, rules: Rules, function: str) -> _Application | None:
    """A call with words between its arguments; None, with nothing taken, if the arguments are a plain list."""
    match function:
        case "cast" | "try_cast":
            return _cast(cursor, rules, function)
        case "count" if cursor.sees("DISTINCT"):
            cursor.take()
            return _closed(cursor, DISTINCT, rules.expression(cursor))
        case "extract" if cursor.peek().text == "FROM":
            field = _word(cursor.take())
            cursor.expect("FROM")
            return _closed(cursor, "extract", field, rules.value(cursor))
        case "trim" if cursor.sees("BOTH", "LEADING", "TRAILING") and cursor.peek().text not in (")", ",", "."):
            return _trim_side(cursor, rules)
        case "trim" | "substring" | "substr" | "overlay" | "position":
            return _worded(cursor, rules, function)
    return None


def _closed(cursor: Cursor, function: str, *args: Expression) -> _Application:
    cursor.expect(")")
    return function, args


def _cast(cursor: Cursor, rules: Rules, function: str) -> _Application:
    value = rules.expression(cursor)
    cursor.expect("AS")
    return _closed(cursor, function, value, type_name(cursor))


def _trim_side(cursor: Cursor, rules: Rules) -> _Application:
    """`trim(BOTH characters FROM text)` or `trim(BOTH FROM text)`."""
    args: list[Expression] = [_word(cursor.take())]
    if not cursor.sees("FROM"):
        args.append(rules.value(cursor))
    cursor.expect("FROM")
    return _closed(cursor, "trim_from", *args, rules.value(cursor))


def _worded(cursor: Cursor, rules: Rules, function: str) -> _Application | None:
    """`f(a FROM b FOR c)` and similar forms. `trim(a FROM b)` trims both sides."""
    before = cursor.at
    args = [rules.value(cursor)]
    if not cursor.sees(*_BETWEEN_ARGUMENTS):
        cursor.at = before
        return None
    while cursor.accept(*_BETWEEN_ARGUMENTS):
        args.append(rules.value(cursor))
    if function == "trim":
        args.insert(0, Literal("both", pa.string(), args[0].span))
    return _closed(cursor, f"{function}_from", *args)
