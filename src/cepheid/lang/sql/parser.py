"""SQL text → expression. The grammar is that of Spark 4, precedence included; `tests/lang` compares the two.

The parser works by recursive descent: one function per rule, over a `Cursor` in the text's tokens. Every node's span
runs from the first to the last token of its text, without the parentheses around it. So the text of any part can be
sent to Spark as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from cepheid.errors import PatternError, did_you_mean
from cepheid.lang.expression import Call, Expression, Literal
from cepheid.lang.sql.constants import constant, truth_value
from cepheid.lang.sql.cursor import Cursor, Rule, refused
from cepheid.lang.sql.functions import Rules, function_call
from cepheid.lang.sql.names import identifier, is_reserved, name, type_name
from cepheid.lang.sql.tokens import Kind

_COMPARISONS = {s: s for s in ("=", "<=>", "!=", "<", "<=", ">", ">=")} | {"==": "=", "<>": "!="}
_LEVELS: tuple[dict[str, str], ...] = (
    _COMPARISONS,
    {"|": "|"},
    {"^": "^"},
    {"&": "&"},
    {"<<": "<<", ">>": ">>"},
    {"+": "+", "-": "-", "||": "concat"},
    {"*": "*", "/": "/", "%": "%", "DIV": "div"},
)
"""Binary operators by precedence, the weakest first."""
MAX_OPERATORS = 100
"""The most operators in a row. Each adds a level to the tree, unlike AND and OR."""
_SIGNS = {"-": "negate", "+": "positive", "~": "~"}
_PREDICATES = ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
_NO_PARAMETERS: Mapping[str, Literal | tuple[Literal, ...]] = MappingProxyType({})


def parse_expression(text: str, parameters: Mapping[str, Literal | tuple[Literal, ...]] = _NO_PARAMETERS) -> Expression:
    """The expression in the text, with a literal in place of each `$name`, several for a list; PatternError, with the
    place, if the text is not an expression or has something that is refused.
    """
    try:
        cursor = Cursor(text, parameters)
        expression = _expression(cursor)
        _expect_end(cursor)
    except PatternError as error:
        raise PatternError([replace(problem, text=text) for problem in error.problems]) from error.__cause__
    return expression


def _expect_end(cursor: Cursor) -> None:
    token = cursor.next
    if token.text == ";" and cursor.peek().kind is Kind.END:
        raise refused("an expression ends without ';'", token.span, "Leave it out.")
    if token.text == ";":
        raise refused("one expression is expected; a second statement is refused", token.span)
    if token.text == "OVER":
        raise refused("window functions are refused: refer to earlier events by their stage", token.span)
    if token.kind is not Kind.END:
        raise cursor.unexpected("an operator or the end is expected")


# Boolean operators and predicates


def _expression(cursor: Cursor) -> Expression:
    return _chain(cursor, "OR", _conjunction)


def _conjunction(cursor: Cursor) -> Expression:
    return _chain(cursor, "AND", _negation)


def _chain(cursor: Cursor, word: str, operand: Rule) -> Expression:
    start = cursor.at
    operands = [operand(cursor)]
    while cursor.accept(word):
        operands.append(operand(cursor))
    return operands[0] if len(operands) == 1 else Call(word.lower(), tuple(operands), cursor.span(start))


def _negation(cursor: Cursor) -> Expression:
    negations = []
    while cursor.accept("NOT", "!"):
        negations.append(cursor.at - 1)
    result = _predicate(cursor)
    for start in reversed(negations):
        result = Call("not", (result,), cursor.span(start))
    return result


def _predicate(cursor: Cursor) -> Expression:
    start = cursor.at
    value = _value(cursor)
    if cursor.sees("IS"):
        return _is(cursor, start, value)
    negated = cursor.sees("NOT") and cursor.peek().text in _PREDICATES
    if negated:
        cursor.take()
    elif not cursor.sees(*_PREDICATES):
        return value
    function, args = _predicate_arguments(cursor)
    result = Call(function, (value, *args), cursor.span(start))
    return Call("not", (result,), result.span) if negated else result


def _predicate_arguments(cursor: Cursor) -> tuple[str, tuple[Expression, ...]]:
    word = cursor.take().text
    if word == "BETWEEN":
        low = _value(cursor)
        cursor.expect("AND")
        return "between", (low, _value(cursor))
    if word == "IN":
        cursor.expect("(")
        return "in", _rest_of_list(cursor)
    if word in ("LIKE", "ILIKE") and cursor.sees("ANY", "SOME", "ALL") and cursor.peek().text == "(":
        quantity = "all" if cursor.take().text == "ALL" else "any"
        cursor.take()
        return f"{word.lower()}_{quantity}", _rest_of_list(cursor)
    pattern = _value(cursor)
    function = "rlike" if word == "REGEXP" else word.lower()
    return function, (pattern, _value(cursor)) if cursor.accept("ESCAPE") else (pattern,)


def _rest_of_list(cursor: Cursor) -> tuple[Expression, ...]:
    """The items up to the closing parenthesis; the opening one is already taken."""
    items = [*_list_items(cursor)]
    while cursor.accept(","):
        items += _list_items(cursor)
    cursor.expect(")")
    return tuple(items)


def _list_items(cursor: Cursor) -> tuple[Expression, ...]:
    """The next item of a list; the values of a parameter that is itself a list."""
    token = cursor.next
    values = cursor.parameters.get(token.text.removeprefix("$")) if token.kind is Kind.PARAMETER else None
    if not isinstance(values, tuple) or cursor.peek().text not in (",", ")"):
        return (cursor.nested(_expression),)
    cursor.take()
    return tuple(replace(value, span=token.span) for value in values)


def _is(cursor: Cursor, start: int, value: Expression) -> Expression:
    cursor.expect("IS")
    negated = cursor.accept("NOT") is not None
    if cursor.accept("NULL"):
        return Call("is_not_null" if negated else "is_null", (value,), cursor.span(start))
    if cursor.accept("DISTINCT"):
        cursor.expect("FROM")
        other, differs = _value(cursor), not negated
    else:
        literal, differs = truth_value(cursor, "TRUE", "FALSE", "UNKNOWN"), negated
        if literal is None:
            raise cursor.unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected after IS")
        other = literal
    equal = Call("<=>", (value, other), cursor.span(start))
    return Call("not", (equal,), equal.span) if differs else equal


# Operators on values


def _value(cursor: Cursor) -> Expression:
    return _operators(cursor, 0)


def _operators(cursor: Cursor, level: int) -> Expression:
    """A value whose operators bind at least as strongly as `_LEVELS[level]`."""
    start = cursor.at
    left, count = _unary(cursor), 0
    while (found := _operator(cursor, level)) is not None:
        count += 1
        if count > MAX_OPERATORS:
            raise refused(f"more than {MAX_OPERATORS} operators in a row", cursor.next.span)
        binding, function = found
        cursor.take()
        right = _operators(cursor, binding + 1)
        left = Call(function, (left, right), cursor.span(start))
    return left


def _operator(cursor: Cursor, level: int) -> tuple[int, str] | None:
    if cursor.next.kind not in (Kind.WORD, Kind.SYMBOL):
        return None
    for binding in range(level, len(_LEVELS)):
        if function := _LEVELS[binding].get(cursor.next.text):
            return binding, function
    return None


def _unary(cursor: Cursor) -> Expression:
    signs = []
    while cursor.sees(*_SIGNS):
        if cursor.next.text == "-" and cursor.peek().kind is Kind.NUMBER:
            break  # Spark reads the sign as part of the number: -2147483648 is an INT
        signs.append((cursor.at, cursor.take().text))
    result = _postfix(cursor)
    for start, sign in reversed(signs):
        result = Call(_SIGNS[sign], (result,), cursor.span(start))
    return result


def _postfix(cursor: Cursor) -> Expression:
    start = cursor.at
    result = _primary(cursor)
    while True:
        if cursor.accept("["):
            index = cursor.nested(_expression)
            cursor.expect("]")
            result = Call("index", (result, index), cursor.span(start))
        elif cursor.accept("::"):
            result = Call("cast", (result, type_name(cursor)), cursor.span(start))
        elif cursor.accept("."):
            part, span = identifier(cursor, "a field's name is expected after the point")
            result = Call("field", (result, Literal(part, pa.string(), span)), cursor.span(start))
        else:
            return result


# What stands between operators


def _primary(cursor: Cursor) -> Expression:
    token, after = cursor.next, cursor.peek()
    if token.kind is Kind.PARAMETER:
        return _parameter(cursor)
    if (found := constant(cursor)) is not None:
        return found
    if cursor.accept("("):
        return _parenthesised(cursor)
    if cursor.sees("CASE"):
        return cursor.nested(_case)
    if cursor.sees("SELECT", "*"):
        what = "subqueries are refused" if token.text == "SELECT" else "'*' is refused: name a column"
        raise cursor.unexpected("a value is expected") if cursor.is_after("*") else refused(what, token.span)
    callable_ = token.text == "END" or not is_reserved(token)  # end(v) is the end of an occurrence
    if token.kind is Kind.WORD and callable_ and after.kind is Kind.SYMBOL and after.text == "(":
        return cursor.nested(_function)
    return name(cursor)


def _parameter(cursor: Cursor) -> Expression:
    token = cursor.take()
    name = token.text.removeprefix("$")
    if name not in cursor.parameters:
        hint = did_you_mean(name, list(cursor.parameters))
        raise refused(f"no parameter named {name!r}", token.span, hint)
    value = cursor.parameters[name]
    if isinstance(value, tuple):
        hint = f"Write it alone, as in `column IN (${name})`."
        raise refused(f"the parameter {name!r} is a list, which is for IN only", token.span, hint)
    return replace(value, span=token.span)


def _parenthesised(cursor: Cursor) -> Expression:
    result = cursor.nested(_expression)
    cursor.expect(")")
    return result


def _function(cursor: Cursor) -> Expression:
    return function_call(cursor, Rules(expression=_expression, value=_value))


def _case(cursor: Cursor) -> Expression:
    start = cursor.at
    cursor.expect("CASE")
    args: list[Expression] = [] if cursor.sees("WHEN") else [_expression(cursor)]
    function = "case_of" if args else "case"
    if not cursor.sees("WHEN"):
        raise cursor.unexpected("WHEN is expected")
    while cursor.accept("WHEN"):
        args.append(_expression(cursor))
        cursor.expect("THEN")
        args.append(_expression(cursor))
    otherwise = _expression(cursor) if cursor.accept("ELSE") else None
    end = cursor.expect("END")
    args.append(otherwise or Literal(None, pa.null(), end.span))
    return Call(function, tuple(args), cursor.span(start))
