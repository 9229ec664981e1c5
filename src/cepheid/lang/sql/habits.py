"""What people write who come from another language, and what it is in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.lang.duration import unit_of_word
from cepheid.lang.expression import Call, Expression, Literal, Span
from cepheid.lang.sql.tokens import CURLED, QUOTE_IN_TEXT, STRAIGHT, Kind, Token
from cepheid.lang.sql.written import as_written

_PARAMETER = "A value that is given later is written $name."
_SIGNS = {"&&": "Write AND.", "=>": "Write >=.", ":": _PARAMETER, "?": _PARAMETER}
_CLAUSES = ("WHERE", "FROM", "GROUP", "HAVING", "ORDER", "LIMIT")
"""Words that begin another part of a query than its condition."""
POWER = "A power is written power(x, 2)."
MULTIPLE = "Lengths of time are added, x + x, and compared with a constant: x > INTERVAL 30 MINUTES."
_PAIRS = {
    ("=", "<"): "Write <=.",
    ("==", "="): "Write =.",
    ("!=", "="): "Write <>.",
    ("!", "="): "Write <>.",
    ("*", "*"): POWER,
    ("/", "/"): "A quotient without its fraction is written x DIV y.",
    ("AT", "TIME"): "The clock of another zone is from_utc_timestamp(time, 'Europe/Berlin').",
    ("IN", "["): "A list is written in parentheses, as in IN ('x', 'y').",
    ("IS", "NONE"): "Write IS NULL.",
    ("NOT", "NONE"): "Write IS NOT NULL.",
    ("IS", "NAN"): "Write isnan(x).",
    ("NOT", "NAN"): "Write NOT isnan(x).",
}
_LITERALS = (Kind.NUMBER, Kind.STRING)
_MISSING = ("none", "nan", "nil", "na")
_FUNCTIONS = {
    "timedelta": "A length of time is written as in INTERVAL 1 DAY or INTERVAL '1 12:00' DAY TO MINUTE.",
    "datetime": "A time is written as text, '2026-12-31 12:00:00'.",
    "prev": "An earlier event is one of an earlier stage, as in last(stage.price).",
    "next": "A later event is one of a later stage, whose condition compares the two.",
    "convert": "Another type is written as in CAST(x AS STRING).",
}
"""What to write in place of functions of Python, MATCH_RECOGNIZE and other databases."""
_COMPARISONS = ("=", "<=>", "!=", "<", "<=", ">", ">=")


def habit_of(before: Sequence[Token], token: Token, after: Token) -> str | None:
    """The hint for a token that cannot be where it is, after those `before`."""
    point, previous = ["", "", *(one.text for one in before)][-2:]
    if CURLED.search(token.text):
        return STRAIGHT
    words = (token.text.upper(), previous.upper())
    if clause := next((word for word in words if word.partition(" ")[0] in _CLAUSES), None):
        return f"A condition is one expression: leave {clause} out."
    if token.kind in _LITERALS:
        return _habit_of_literal(previous, token)
    if point == "." and token.text == "(":
        return "SQL has no methods: a function has its value as an argument, as in startswith(kind, 'p')."
    if previous == "IN" and token.kind in (Kind.WORD, Kind.QUOTED):
        return "A list is written in parentheses, and a value in an array is array_contains(array, value)."
    if token.kind is Kind.WORD and before:
        if before[-1].kind is Kind.STRING and before[-1].end == token.start:
            return QUOTE_IN_TEXT
        if before[-1].kind is Kind.NUMBER and (unit := unit_of_word(token.text)):
            return f"A length of time is written INTERVAL {previous} {unit.upper()}S."
    if token.text == ":" and before and before[-1].end == token.start:
        return None  # the path of a VARIANT
    return _PAIRS.get((previous, token.text)) or _PAIRS.get((token.text, after.text)) or _SIGNS.get(token.text)


def _habit_of_literal(previous: str, token: Token) -> str | None:
    hints = {
        "IS": "Write = to compare with a value.",
        "NOT": "Write <> to compare with a value.",
        "IN": f"A list is written in parentheses: IN ({token.text}).",
    }
    return hints.get(previous)


def habit_of_name(name: str) -> str:
    """The hint for a name that no column has and that is similar to none."""
    if name.lower() in _MISSING:
        return "A missing value is NULL: write IS NULL. "
    return f"If it is a text, write '{name}'. " if name.isidentifier() else ""


def habit_of_function(function: str) -> str | None:
    """The hint for an unknown function."""
    return _FUNCTIONS.get(function)


def habit_of_refused(whole: Expression, part: Call, text: str, types: Sequence[pa.DataType | None] = ()) -> str | None:
    """The hint for a call in a whole expression that is refused; `text` is what the two are written in, `types` are
    those of the call's arguments, as far as they are known.
    """
    if part.function in _COMPARISONS or part.function == "between":
        for date in filter(None, map(_date_without_quotes, part.args)):
            return f"A date is written in quotes: '{date}'."
    places = _joined_conditions(whole, text) if part.function in (*_COMPARISONS, "concat") else ()
    if any(start < part.span[1] and part.span[0] < end for start, end in places):
        return "|| joins texts: between conditions write OR."
    return habit_of_function(part.function) or _habit_of_types(part, [one for one in types if one is not None])


def _habit_of_types(call: Call, types: Sequence[pa.DataType]) -> str | None:
    """The hint for a call that does not take arguments of these types."""
    constants = [arg.value for arg in call.args if isinstance(arg, Literal)]
    is_comparison = _is_comparison(call) or call.function in ("between", "in")
    with_boolean, with_length = (any(map(of, types)) for of in (arrow.is_boolean, arrow.is_duration))
    with_length |= call.function in ("+", "-") and any(map(arrow.is_timestamp, types))
    if call.function in ("*", "/", "cast") and any(map(arrow.is_duration, types)):
        return MULTIPLE
    for length in (value for value in constants if with_length):
        if isinstance(length, str):
            return f"A length of time is written INTERVAL {length!r}."
        if isinstance(length, int | float | Decimal):
            return "A length of time is written as in INTERVAL 5 MINUTES."
    if is_comparison and _is_comparison(call.args[0]):
        return "Each comparison stands alone, as in 1 < x AND x < 3."
    if is_comparison and with_boolean and any(isinstance(value, int) for value in constants):
        return "A BOOLEAN is compared with TRUE or FALSE."
    if call.function == "~" and with_boolean:
        return "Write NOT."
    with_fraction = any(arrow.is_floating(type_) or arrow.is_decimal(type_) for type_ in types)
    return POWER if call.function == "^" and with_fraction else None


def _date_without_quotes(value: Expression) -> str | None:
    """The date in 2026-02-20, which is a difference of numbers."""
    match value:
        case Call("-", (Call("-", (Literal(int(year)), Literal(int(month)))), Literal(int(day)))):
            is_date = 1000 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31
            return f"{year}-{month:02}-{day:02}" if is_date else None
    return None


def _joined_conditions(value: Expression, text: str) -> Iterator[Span]:
    """The places of conditions with || between them. SQL reads `a = x || b = y` as `(a = (x || b)) = y`."""
    match value:
        case Call("concat", args) if _are_joined(value, text) and any(map(_is_comparison, args)):
            yield value.span
        case Call(function, (Call(_, operands) as first, _)) if function in _COMPARISONS and _is_comparison(first):
            if any(isinstance(one, Call) and _are_joined(one, text) for one in operands):
                yield value.span
    for arg in value.args if isinstance(value, Call) else ():
        yield from _joined_conditions(arg, text)


def _is_comparison(value: Expression) -> bool:
    return isinstance(value, Call) and value.function in _COMPARISONS


def _are_joined(call: Call, text: str) -> bool:
    return call.function == "concat" and as_written("concat", text[slice(*call.span)]) == "||"
