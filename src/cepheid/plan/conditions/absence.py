"""Which parts of a condition are NULL if their event is absent. An event is absent if its stage has no events yet, or
too few.

A lifted column is NULL for an absent event. For `coalesce(legs.n, 0)` or `legs.n IS NULL` SQL gives another result. So
the script evaluates such parts, unless the event is certain to be there.
"""

from __future__ import annotations

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
    if not isinstance(node, Apply):
        return False
    function, args = node.call.function, node.args
    if function in _NULL_IS_A_VALUE or function in NOT_NULL_FOR_NULL:
        return False
    if function in _ALL_MUST_BE_NULL:
        return all(is_null_without_event(arg) for arg in args)
    if function in _FIRST_DECIDES:
        return is_null_without_event(args[0])
    if function == "case":  # no condition is true, so it is what ELSE says
        return all(map(is_null_without_event, (*args[:-1:2], args[-1])))
    if function == "between":
        value, low, high = (is_null_without_event(arg) for arg in args)
        return value or (low and high)
    return any(is_null_without_event(arg) for arg in args)
