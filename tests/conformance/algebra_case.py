"""Translates a case of the event algebra for Cepheid, and Cepheid's answer back into the form of the case.

Times are whole seconds. An attribute may hold numbers, texts and truth values in one case, so it becomes one column per
kind; a comparison of values of two kinds, or with a missing value, is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
from tests.conformance.translate import Unsupported

from cepheid import Occurrence, OccurrencePattern, detect, event

Expression: TypeAlias = list[Any]
Answer: TypeAlias = list[list[Any]]
"""Occurrences, each [end, start, ids]."""

ID, TYPE, AT = "event id", "event type", "event time"
"""Names of columns that no variable has."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS: Mapping[str, tuple[type | tuple[type, ...], pa.DataType]] = {
    "number": ((int, float), pa.float64()),
    "text": (str, pa.string()),
    "truth": (bool, pa.bool_()),
}


def answer(case: Mapping[str, Any], policy: str) -> Answer:
    """The case's occurrences, in the order in which `detect` gives them."""
    found = detect(table(case), pattern(case).policy(policy), time=AT, sequence=ID, columns=[ID])
    return [shown(row) for row in found.to_pylist()]


def shown(row: Mapping[str, Any]) -> list[Any]:
    """An output row in the form of the case."""
    return [_seconds(row["match_end"]), _seconds(row["match_start"]), _ids(row["events"])]


def _seconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(seconds=1)


def _ids(events: Sequence[Mapping[str, Any]], depth: int = 0) -> list[str]:
    """The sorted ids of the events at this depth; a temporal event is given with the events that it follows."""
    ids = []
    for at, one in enumerate(events):
        if one.get("depth", 0) != depth:
            continue
        if one.get("delay") is None:
            ids.append(one[ID])
            continue
        inner = []
        for inner_event in events[at + 1 :]:
            if inner_event["depth"] <= depth:
                break
            inner.append(inner_event)
        ids.append(f"+{one['delay'] // timedelta(seconds=1)}({','.join(_ids(inner, depth + 1))})")
    return sorted(ids)


def pattern(case: Mapping[str, Any]) -> OccurrencePattern:
    result = OccurrencePattern.of(expression(case["expr"])).taxonomy(TYPE, case.get("taxonomy") or {})
    result = _declared(result, case)
    for name, restricted in (case.get("types") or {}).items():
        condition = conjunction(restricted["filter"], frozenset({restricted["var"]}))
        result = result.restrict(name, restricted["base"], condition, variable=restricted["var"])
    return result


def _declared(result: OccurrencePattern, case: Mapping[str, Any]) -> OccurrencePattern:
    """With a taxonomy all types must be declared, but a case names only those that are below others."""
    if not case.get("taxonomy"):
        return result
    kinds, restricted = dict(case["taxonomy"]), case.get("types") or {}
    for name in (*_types(case["expr"]), *(one["base"] for one in restricted.values())):
        if name not in restricted:
            kinds.setdefault(name, [])
    return result.taxonomy(TYPE, kinds)


def _types(expr: Expression) -> Iterator[str]:
    if expr[0] == "ev":
        yield expr[1]
        return
    for part in expr[1:3]:
        if isinstance(part, list):
            yield from _types(part)


def expression(expr: Expression) -> Occurrence:
    match expr:
        case ["ev", name]:
            return event(name)
        case ["and", left, right]:
            return expression(left) & expression(right)
        case ["or", left, right]:
            return expression(left) | expression(right)
        case ["seq", left, right]:
            return expression(left) >> expression(right)
        case ["minus", left, right]:
            return expression(left) - expression(right)
        case ["within", of, length]:
            return expression(of).within(timedelta(seconds=length))
        case ["plus", of, delay]:
            return expression(of).plus(timedelta(seconds=delay))
        case ["bind", variable, of]:
            return expression(of).named(variable)
        case ["filter", of, condition]:
            return expression(of).where(conjunction(condition, variables(of)))
        case ["minus_if", left, right, condition]:
            visible = variables(left) | variables(right)
            return expression(left).minus_if(expression(right), conjunction(condition, visible))
    raise Unsupported(str(expr[0]))


def variables(expr: Expression) -> frozenset[str]:
    """The variables that are visible outside of the expression."""
    match expr:
        case ["ev", _]:
            return frozenset()
        case ["and" | "or" | "seq", left, right]:
            return variables(left) | variables(right)
        case ["bind", variable, of]:
            return variables(of) | {variable}
    return variables(expr[1])


# Conditions


def conjunction(atoms: Sequence[Sequence[Any]], visible: frozenset[str]) -> str:
    """SQL for a condition of a case; `visible` are the variables bound at this place."""
    return " AND ".join(_atom(*atom, visible) for atom in atoms) or "TRUE"


def _atom(operator: str, left: Expression, right: Expression, visible: frozenset[str]) -> str:
    """SQL that is true if both sides are of one kind and the comparison holds, and otherwise false or unknown."""
    if not {*_named(left), *_named(right)} <= visible:
        return "FALSE"  # a variable that is not bound, whose name Cepheid would refuse
    either = [
        f"({sql} {operator} {other})"
        for kind in (*KINDS, "time", "length")
        if (sql := _term(left, kind)) is not None and (other := _term(right, kind)) is not None
    ]
    return f"({' OR '.join(either)})" if either else "FALSE"


def _named(term: Expression) -> Iterator[str]:
    match term:
        case ["attr", variable, _] | ["start" | "end", variable]:
            yield variable
        case ["+" | "-" | "*", left, right]:
            yield from _named(left)
            yield from _named(right)


def _term(term: Expression, kind: str) -> str | None:
    """The term as a value of the kind; None if it cannot be one."""
    match term:
        case ["attr", variable, name] if kind in KINDS:
            return f"{variable}.{_column(name, kind)}"
        case ["const", value]:
            return _constant(value, kind)
        case ["start" | "end" as function, variable] if kind == "time":
            return f"{function}({variable})"
        case ["+" | "-" | "*" as operator, left, right]:
            kinds = [_operand_kinds(operator, kind)] if kind != "length" else [("time", "time"), ("length", "length")]
            for of_left, of_right in kinds:
                if kind == "length" and operator == "*":
                    continue
                one, other = _term(left, of_left), _term(right, of_right)
                if one is not None and other is not None:
                    return f"({one} {operator} {other})"
    return None


def _operand_kinds(operator: str, kind: str) -> tuple[str, str]:
    """Only numbers are added and multiplied, except that a duration is added to a time."""
    if kind == "time" and operator != "*":
        return "time", "length"
    return ("number", "number") if kind == "number" else ("none", "none")


def _constant(value: object, kind: str) -> str | None:
    of_kind = next(name for name in ("truth", "text", "number") if isinstance(value, KINDS[name][0]))
    if kind == of_kind:
        return {"truth": str(value).upper(), "text": _text(str(value)), "number": f"{value}D"}[kind]
    if of_kind == "number" and kind == "length":
        return f"INTERVAL '{value}' SECOND"
    if of_kind == "number" and kind == "time":
        return f"TIMESTAMP '{EPOCH + timedelta(seconds=float(str(value)))}'"
    return None


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _column(name: str, kind: str) -> str:
    return f"`{kind} {name}`"


# Events


def table(case: Mapping[str, Any]) -> pa.Table:
    events = case["events"]
    columns = {
        ID: pa.array([one["id"] for one in events], pa.string()),
        TYPE: pa.array([one["type"] for one in events], pa.string()),
        AT: pa.array([one["t"] * 1_000_000 for one in events], pa.timestamp("us", "UTC")),
    }
    for name in sorted({*_attributes(case)}):
        given = [(one.get("attrs") or {}).get(name) for one in events]
        for kind, (types, type_) in KINDS.items():
            of_kind = [value if _is(value, kind, types) else None for value in given]
            columns[_column(name, kind).strip("`")] = pa.array(of_kind, type_)
    return pa.table(columns)


def _is(value: object, kind: str, types: type | tuple[type, ...]) -> bool:
    return isinstance(value, types) and (kind == "truth" or not isinstance(value, bool))


def _attributes(case: Mapping[str, Any]) -> Iterator[str]:
    """The names of the events' attributes, and of those used in conditions."""
    for one in case["events"]:
        yield from one.get("attrs") or {}
    for restricted in (case.get("types") or {}).values():
        yield from _asked(restricted["filter"])
    yield from _asked(case["expr"])


def _asked(part: object) -> Iterator[str]:
    match part:
        case ["attr", str(), str(name)]:
            yield name
        case list():
            for inner in part:
                yield from _asked(inner)
