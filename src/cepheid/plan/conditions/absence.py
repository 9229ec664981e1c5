"""Which parts are NULL when the event that they are about is absent: a stage may have none (yet), or not so many.

A lifted column's value for an event that is not there is NULL. SQL's own answer is another for `coalesce(legs.n, 0)` or
`legs.n IS NULL`; such parts are left to the script, unless the event is certain to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.lang.stages.pattern import Pattern, Stage
from cepheid.plan.conditions.resolve import Apply, Column, Event, Node, Pick

_NULL_IS_A_VALUE = frozenset({"<=>", "is_null", "is_not_null", "case", "case_of", "if"})
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
"""Functions that may give a value for NULL; functions not named anywhere in this file give NULL for NULL."""


def may_be_absent(event: Event, pattern: Pattern, stage: int) -> bool:
    """Whether a partial match for which condition number `stage` is asked may lack the event."""
    if event.stage is None:
        return False
    leaf = pattern.leaves[event.stage]
    certain = event.stage < stage < len(pattern.leaves) and not list(_skippable(pattern.stages))[event.stage]
    return not certain or leaf.contiguity.negated or event.back >= leaf.quantifier.minimum


def _skippable(stages: Sequence[Stage]) -> Iterator[bool]:
    """For each leaf whether it, or a group around it, is optional."""
    for stage in stages:
        for optional in _skippable(stage.group) if stage.group else (False,):
            yield optional or stage.quantifier.optional


def is_null_without_event(node: Node) -> bool:
    """Whether the node is surely NULL when all its columns are; `first(…)` and `last(…)` are, by definition."""
    if isinstance(node, Column | Pick):
        return True
    if not isinstance(node, Apply):
        return False
    function, args = node.call.function, node.args
    if function in _NULL_IS_A_VALUE or function in NOT_NULL_FOR_NULL:
        return False
    if function in _ALL_MUST_BE_NULL:
        return all(is_null_without_event(arg) for arg in args)
    if function in _FIRST_DECIDES:
        return is_null_without_event(args[0])
    if function == "between":
        value, low, high = (is_null_without_event(arg) for arg in args)
        return value or (low and high)
    return any(is_null_without_event(arg) for arg in args)
