"""Conditions of stages in pattern documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cepheid.lang.document.marked_text import Value
from cepheid.lang.semantic import SemanticFilter, semantic
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.pattern import Pattern


def with_conditions(pattern: Pattern, stage: dict[str, Any]) -> Pattern:
    """The pattern with the conditions under the keys `where` and `subtype` of its last stage.

    The key `subtype` restricts the stage whatever `where` says: it is ANDed with the whole of `where`. So it becomes
    the last condition if `where` has an `or`, and otherwise the first, as in `begin(…).subtype(…).where(…)`.
    """
    where = stage.get("where", [])
    items = list(where) if isinstance(where, list) else [where]
    if "subtype" in stage:
        last = any(isinstance(item, dict) and "or" in item for item in items)
        items.insert(len(items) if last else 0, {"subtype": stage["subtype"]})
    for item in items:
        match item:
            case {"or": condition}:
                pattern = pattern.or_where(given_condition(condition))
            case {"subtype": type_}:
                pattern = pattern.subtype(type_)
            case _:
                pattern = pattern.where(given_condition(item))
    return pattern


def condition_document(conditions: Sequence[Condition | Subtype]) -> dict[str, Value]:
    """The keys from which `with_conditions` reads these conditions."""
    document: dict[str, Value] = {}
    rest = list(conditions)
    alternatives = any(isinstance(condition, Condition) and condition.alternative for condition in rest)
    if rest and isinstance(whole := rest[-1 if alternatives else 0], Subtype):
        document["subtype"] = whole.type
        del rest[-1 if alternatives else 0]
    items: list[Value] = [_condition_item(condition) for condition in rest]
    if items:
        document["where"] = items[0] if len(items) == 1 and _stands_alone(items[0]) else items
    return document


def _stands_alone(item: Value) -> bool:
    """Whether `where` may be the item itself, in place of a list of one."""
    return isinstance(item, str) or (isinstance(item, dict) and "semantic" in item)


def _condition_item(condition: Condition | Subtype) -> Value:
    if isinstance(condition, Subtype):
        return {"subtype": condition.type}
    value = condition_value(condition)
    return {"or": value} if condition.alternative else value


def condition_value(condition: Condition) -> Value:
    """The condition as a value in a document: SQL as text, a function as its name. The name only serves to compare
    patterns (see `pattern_form`) and is never read.
    """
    if condition.is_semantic:
        return {"semantic": condition.text}
    return condition.text if condition.function is None else {"function": condition.text}


def given_condition(value: Any) -> str | SemanticFilter:
    """The condition that a document has as this value."""
    match value:
        case {"semantic": text}:
            return semantic(text)
    sql: str = value
    return sql
