"""Which parts of a condition are NULL if their event is absent, or if a column is NULL.

An event is absent if its stage has no events yet, or too few.

A lifted column is NULL for an absent event. For `coalesce(legs.n, 0)` or `legs.n IS NULL` SQL gives another result. So
the script evaluates such parts, unless the event is certain to be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import or_

from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.plan.conditions.resolve import Apply, Column, Constant, Node, Pick

_NULL_IS_A_VALUE = frozenset({"<=>", "is_null", "is_not_null", "case_of", "if"})
_ALL_MUST_BE_NULL = frozenset({"and", "or", "coalesce", "nvl", "ifnull", "least", "greatest"})
_FIRST_DECIDES = frozenset({"in", "nullif", "like_any", "like_all"})
NOT_NULL_FOR_NULL = frozenset(
    {
        *(
            "isnull",
            "isnotnull",
            "isnan",
            "nvl2",
            "nullifzero",
            "zeroifnull",
            "equal_null",
            "concat_ws",
            "array",
            "struct",
        ),
        *("named_struct", "map", "hash", "xxhash64", "nanvl", "size", "cardinality", "decode", "typeof", "to_json"),
    }
)
"""Functions that may give a value for NULL. Functions that are not named in this file give NULL for NULL."""


def is_null_without_event(node: Node) -> bool:
    """Whether the node is certainly NULL if all its columns are NULL. By definition, `first(…)` and `last(…)` are."""
    if isinstance(node, Column | Pick):
        return True
    if isinstance(node, Constant):
        return node.literal.value is None
    return isinstance(node, Apply) and _is_null(node.call.function, [*map(is_null_without_event, node.args)])


def follows(condition: Expression, others: Sequence[Expression]) -> bool:
    """Whether a condition is certainly true if all others are, because it only says that columns are not NULL."""
    match condition:
        case Call("is_not_null", (Name(column),)):
            return any(_needs(other, column) for other in others)
        case Call("and", args):
            return all(follows(arg, others) for arg in args)
        case Call("or", args):
            return any(follows(arg, others) for arg in args)
    return False


def _needs(condition: Expression, column: tuple[str, ...]) -> bool:
    """Whether the condition is certainly not true if the column of this name is NULL. `IS NOT NULL` does not count."""
    match condition:
        case Call("and", args):
            return any(_needs(arg, column) for arg in args)
        case Call("or", args):
            return all(_needs(arg, column) for arg in args)
    return _is_null_with(condition, column)


def _is_null_with(value: Expression, column: tuple[str, ...]) -> bool:
    match value:
        case Literal(constant):
            return constant is None
        case Name(parts):
            return parts == column
        case Call(function, args):
            return _is_null(function, [_is_null_with(arg, column) for arg in args])


def _is_null(function: str, args: Sequence[bool]) -> bool:
    """Whether a function is certainly NULL, of whose arguments it is known which are certainly NULL."""
    if function in _NULL_IS_A_VALUE or function in NOT_NULL_FOR_NULL:
        return False
    if function in _ALL_MUST_BE_NULL:
        return all(args)
    if function in _FIRST_DECIDES:
        return args[0]
    if function == "case":  # a result counts only if its condition is true
        return args[-1] and all(map(or_, args[:-1:2], args[1::2]))
    if function == "between":
        value, low, high = args
        return value or (low and high)
    return any(args)
