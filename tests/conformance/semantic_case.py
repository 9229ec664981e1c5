"""Translates a case of semantic filters for Cepheid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from tests.conformance.algebra_case import AT, ID, Answer, Expression, shown
from tests.conformance.translate import Unsupported

from cepheid import Occurrence, OccurrencePattern, detect, event
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.knowledge import Knowledge
from cepheid.lang.occurrences.expression import semantic

IRI, FACTS, KEY = "event iri", "event facts", "event key"
MAPPING = EventMapping(IRI, turtle=FACTS)


def answer(case: Mapping[str, Any], policy: str) -> Answer:
    """The case's occurrences; those of several sessions together are in order."""
    found = detect(table(case), pattern(case).policy(policy), key=KEY, time=AT, sequence=ID, columns=[ID])
    return sorted(shown(row) for row in found.to_pylist())


def pattern(case: Mapping[str, Any]) -> OccurrencePattern:
    known = knowledge(case["kb"], tuple(case["prefixes"].items()))
    result = OccurrencePattern.of(expression(case["expr"]), knowledge=known, mapping=MAPPING)
    for name, restricted in (case.get("types") or {}).items():
        condition = semantic(restricted["filter"])
        result = result.restrict(name, restricted["base"], condition, variable=restricted["var"])
    return result


@cache
def knowledge(text: str, prefixes: tuple[tuple[str, str], ...]) -> Knowledge:
    return Knowledge.read(text, prefixes=dict(prefixes))


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
            return expression(of).within(f"{length} seconds")
        case ["plus", of, delay]:
            return expression(of).plus(f"{delay} seconds")
        case ["bind", variable, of]:
            return expression(of).named(variable)
        case ["filter", of, condition]:
            return expression(of).where(semantic(condition))
        case ["minus_if", left, right, condition]:
            return expression(left).minus_if(expression(right), semantic(condition))
    raise Unsupported(str(expr[0]))


def table(case: Mapping[str, Any]) -> pa.Table:
    events = case["events"]
    at = pa.timestamp("us", "UTC")
    return pa.table(
        {
            ID: pa.array([one["id"] for one in events], pa.string()),
            AT: pa.array([one["t"] * 1_000_000 for one in events], pa.int64()).cast(at),
            KEY: pa.array([one.get("key", "") for one in events], pa.string()),
            IRI: pa.array([one["iri"] for one in events], pa.string()),
            FACTS: pa.array([one["ttl"] for one in events], pa.string()),
        }
    )
