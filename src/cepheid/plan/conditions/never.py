"""Conditions that are true for no event, whatever the events: for warnings.

A condition is read in SQL's three-valued logic. Of most parts nothing is known, so they may have any value; a part that
is certainly NULL makes what is computed from it NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Flag, auto
from functools import reduce
from typing import Any, NamedTuple

from cepheid.plan.conditions.absence import NOT_NULL_FOR_NULL
from cepheid.plan.conditions.resolve import Apply, Column, Constant, Folded, Node, Pick, text_of, walk


class _May(Flag):
    """The values that a part may have. One that is not BOOLEAN and not NULL counts as both TRUE and FALSE."""

    TRUE = auto()
    FALSE = auto()
    NULL = auto()


_SOME = _May.TRUE | _May.FALSE
_ANY = _SOME | _May.NULL
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNKNOWN = NOT_NULL_FOR_NULL | {"case", "case_of", "if", "like_any", "like_all", "nullif", "lambda"}
"""Calls that may have any value, even if an argument is NULL."""
_TAKES_NULL = _UNKNOWN | {"and", "or", "not", "is_null", "is_not_null", "<=>", "coalesce", "nvl", "ifnull"}
"""Calls that are not NULL because an argument is."""


class Empty(NamedTuple):
    """A stage that has no events yet."""

    stage: int
    name: str


def why_never_true(node: Node, empty: Empty | None = None) -> str | None:
    """Why the condition is true for no event, with advice; None if it may be true."""
    stage = None if empty is None else empty.stage
    if _May.TRUE in _may_be(node, stage):
        return None
    for part in walk(node):
        if isinstance(part, Apply) and part.source is not None and part.call.function not in _TAKES_NULL:
            nulls = [arg for arg in part.args if _may_be(arg, stage) == _May.NULL]
            if any(isinstance(arg, Constant) for arg in nulls):
                return f"{text_of(part)} compares with NULL, and nothing is known to equal NULL. Write IS NULL"
            if nulls and empty is not None:
                return _needs_earlier(text_of(part), empty)
    return "it is false, or NULL, for every event" if empty is None else _needs_earlier("it", empty)


def never_true(nodes: Iterable[Node]) -> Iterator[str]:
    """A sentence for each condition that is true for no event. It is written in a text of its own."""
    for node in nodes:
        why = why_never_true(node)
        if why is not None:
            assert node.source is not None
            yield f"{node.source.where}: the condition is never true: {why}"


def _needs_earlier(what: str, empty: Empty) -> str:
    return (
        f"{what} needs an event that the stage has already taken, and before its first it has none. Take the first one "
        f"in a stage before it, or write count({empty.name}) = 0 OR …"
    )


def _may_be(node: Node, empty: int | None) -> _May:
    match node:
        case Constant(literal):
            known = {None: _May.NULL, True: _May.TRUE, False: _May.FALSE}
            return known[literal.value] if literal.value is None or isinstance(literal.value, bool) else _SOME
        case Column(event=event):
            return _May.NULL if empty is not None and event is not None and event.stage == empty else _ANY
        case Pick(argument):
            return _May.NULL if _may_be(argument, empty) == _May.NULL else _ANY
        case Folded(fold=fold) if fold.counts:
            return _SOME
        case Folded(stage=stage):
            return _May.NULL if stage == empty else _ANY
        case Apply(call, args):
            return _applied(call.function, args, empty)
    return _ANY


def _applied(function: str, args: Sequence[Node], empty: int | None) -> _May:
    values = [_may_be(arg, empty) for arg in args]
    match function:
        case "and":
            return _not(reduce(_or, map(_not, values)))
        case "or":
            return reduce(_or, values)
        case "not":
            return _not(values[0])
        case "is_null" | "is_not_null":
            return _is_null(values[0]) if function == "is_null" else _not(_is_null(values[0]))
        case "<=>":
            return _SOME
        case "coalesce" | "nvl" | "ifnull" | "least" | "greatest":
            return reduce(operator.or_, values)
        case "in":
            return _in(values)
        case "between":
            return _not(reduce(_or, (_not(_compared(values[0], bound)) for bound in values[1:])))
    if function in _UNKNOWN:
        return _ANY
    if function in _COMPARED and None not in (numbers := [_number(arg, empty) for arg in args]):
        return _May.TRUE if _COMPARED[function](*numbers) else _May.FALSE
    return _ANY if all(value & _SOME for value in values) else _May.NULL


def _or(left: _May, right: _May) -> _May:
    """The values of `left OR right`."""
    found = (left | right) & _May.TRUE
    if _May.FALSE in left and _May.FALSE in right:
        found |= _May.FALSE
    if (_May.NULL in left and right != _May.TRUE) or (_May.NULL in right and left != _May.TRUE):
        found |= _May.NULL
    return found


def _not(value: _May) -> _May:
    found = value & _May.NULL
    if _May.TRUE in value:
        found |= _May.FALSE
    if _May.FALSE in value:
        found |= _May.TRUE
    return found


def _is_null(value: _May) -> _May:
    found = _May.TRUE if value & _May.NULL else _May(0)
    return found | (_May.FALSE if value & _SOME else _May(0))


def _in(values: Sequence[_May]) -> _May:
    """What `value IN (…)` may be; the value comes first."""
    return reduce(_or, (_compared(values[0], one) for one in values[1:]))


def _compared(left: _May, right: _May) -> _May:
    return _ANY if left & _SOME and right & _SOME else _May.NULL


def _number(node: Node, empty: int | None) -> int | float | Decimal | None:
    """The node's value if it is a known number: a constant, or the count of the stage without events."""
    match node:
        case Folded(fold=fold, stage=stage) if fold.counts and stage == empty:
            return 0
        case Constant(literal):
            value = literal.value
            return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None
    return None
