"""Translates a case about intervals for Cepheid: an interval pattern with SQL conditions, and a table of events.

An attribute with values of several kinds becomes one column per kind. Times are seconds; the numbers themselves are the
columns `s` and `e`, since conditions may calculate with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.events.batch import Schema
from cepheid.lang.consistency import End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import (
    Comparison,
    Counts,
    Endpoint,
    Mode,
    Negation,
    Pair,
    Positive,
    Related,
    Relation,
    Scope,
    Tree,
)
from cepheid.lang.parameters import string_literal

SECOND = 1_000_000
_ENDS = {"s": End.START, "e": End.END}
_TYPES = {"text": pa.string(), "flag": pa.bool_(), "whole": pa.int64(), "number": pa.float64()}


class Question(NamedTuple):
    pattern: IntervalPattern
    events: pa.Table
    """In the order of the case."""
    schema: Schema


def question(case: Mapping[str, Any]) -> Question:
    events = table(case["events"])
    return Question(
        pattern(case["pattern"], events.schema).taxonomy("type"),
        events,
        Schema(events.schema, (), "start", end="end"),
    )


# Events


def table(events: Sequence[Mapping[str, Any]]) -> pa.Table:
    times = pa.timestamp("us", "UTC")
    columns = {
        "id": pa.array([e["id"] for e in events], pa.string()),
        "type": pa.array([e["type"] for e in events], pa.string()),
        "start": pa.array([e["s"] * SECOND for e in events], times),
        "end": pa.array([e["e"] * SECOND for e in events], times),
        "s": pa.array([e["s"] for e in events], pa.int64()),
        "e": pa.array([e["e"] for e in events], pa.int64()),
    }
    attributes = [e.get("attrs", {}) for e in events]
    for name in sorted({name for values in attributes for name in values}):
        found = [values.get(name) for values in attributes]
        for kind in sorted({_kind(value) for value in found if value is not None}):
            values = [value if value is not None and _kind(value) == kind else None for value in found]
            whole = kind == "number" and all(value is None or isinstance(value, int) for value in values)
            columns[_column(name, kind)] = pa.array(values, _TYPES["whole" if whole else kind])
    return pa.table(columns)


def _kind(value: object) -> str:
    return "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _column(attribute: str, kind: str) -> str:
    return f"attr {attribute} {kind}"


# The pattern


def pattern(facts: Mapping[str, Any], columns: pa.Schema) -> IntervalPattern:
    within = facts.get("within")
    return IntervalPattern(
        Mode[facts["mode"]],
        tuple(Positive(variable, type_) for variable, type_ in facts["pos"]),
        tree=None if facts.get("tree") is None else _tree(facts["tree"]),
        pairs=tuple(Pair(left, _relations(names), right) for left, names, right in facts.get("conj") or ()),
        order=(*_series(facts.get("series") or ()), *map(_comparison, facts.get("order") or ())),
        negations=tuple(_negation(negation, columns) for negation in facts.get("neg") or ()),
        condition=_condition(facts.get("where") or (), columns),
        window=None if within is None else timedelta(seconds=within),
    )


def _tree(facts: Any) -> Tree:
    if isinstance(facts, str):
        return facts
    _, name, left, right, *counts = facts
    return Related(Relation(name), _tree(left), _tree(right), Counts(*counts[0]) if counts else None)


def _relations(names: str | list[str]) -> tuple[Relation, ...]:
    return tuple(Relation(name) for name in ([names] if isinstance(names, str) else names))


def _endpoint(text: str) -> Endpoint:
    variable, _, end = text.rpartition(".")
    return Endpoint(variable, _ENDS[end])


def _comparison(facts: Sequence[str]) -> Comparison:
    left, operator, right = facts
    return Comparison(_endpoint(left), operator, _endpoint(right))


def _series(groups: Sequence[Sequence[str]]) -> Iterator[Comparison]:
    """Endpoints in one group are equal, and less than those of the next group."""
    for group in groups:
        yield from (_comparison((group[0], "=", other)) for other in group[1:])
    yield from (_comparison((a[0], "<", b[0])) for a, b in pairwise(groups))


def _negation(facts: Mapping[str, Any], columns: pa.Schema) -> Negation:
    scope = facts.get("scope")
    return Negation(
        facts["var"],
        facts["type"],
        None if scope is None else Scope(scope),
        *((), ()) if scope is None else (tuple(facts["left"]), tuple(facts["right"])),
        order=tuple(map(_comparison, facts.get("conds") or ())),
        condition=_condition(facts.get("where") or (), columns),
    )


# Conditions


def _condition(atoms: Sequence[Sequence[Any]], columns: pa.Schema) -> str | None:
    return " AND ".join(f"({_atom(atom, columns)})" for atom in atoms) or None


def _atom(atom: Sequence[Any], columns: pa.Schema) -> str:
    """A comparison of values of one kind; it is false if the sides have no kind in common."""
    operator, left, right = atom
    sides = [_term(left, columns), _term(right, columns)]
    common = [f"{sides[0][kind]} {operator} {sides[1][kind]}" for kind in sides[0] if kind in sides[1]]
    return " OR ".join(common) or "1 = 0"


def _term(term: Sequence[Any], columns: pa.Schema) -> dict[str, str]:
    """SQL for each kind that the term's value may have."""
    match term:
        case ["attr", variable, name]:
            kinds = (kind for kind in ("number", "text", "flag") if _column(name, kind) in columns.names)
            return {kind: f"`{variable}`.`{_column(name, kind)}`" for kind in kinds}
        case ["start" | "end" as end, variable]:
            return {"number": f"`{variable}`.{end[0]}"}
        case ["const", value]:
            return {_kind(value): string_literal(value) if isinstance(value, str) else str(value).upper()}
        case [operator, left, right]:
            sides = [_term(side, columns) for side in (left, right)]
            if not all("number" in side for side in sides):
                return {}
            return {"number": f"({sides[0]['number']} {operator} {sides[1]['number']})"}
        case _:
            raise AssertionError(term)
