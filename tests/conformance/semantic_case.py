"""Translates a case of semantic filters for Cepheid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from tests.conformance.algebra_case import AT, EPOCH, ID, Answer, Expression, shown
from tests.conformance.translate import Unsupported
from tests.conformance.tree_streams import END, Where, frame, stream_rows

from cepheid import Occurrence, OccurrencePattern, detect, event
from cepheid.detect import leaf_types
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.knowledge import Knowledge
from cepheid.lang.semantic import semantic

IRI, FACTS, KEY = "event iri", "event facts", "event key"
MAPPING = EventMapping(IRI, turtle=FACTS)


OPTIONS: Mapping[str, Any] = {"key": KEY, "time": AT, "sequence": ID, "columns": [ID]}
OUTPUTS = ("matches", "inconsistent")
POLICIES = ("unrestricted", "recent")


class Found(NamedTuple):
    answers: Mapping[str, Answer]
    """The occurrences for each policy."""
    inconsistent: Mapping[str, int]
    """The sessions whose events contradict what is known, each with the first time (seconds)."""


def found(case: Mapping[str, Any], where: Where) -> Found:
    """What is found, by one call."""
    patterns = {policy: pattern(case).policy(policy) for policy in POLICIES}
    return found_in(_rows(case, patterns, where))


def found_in(rows: Sequence[Mapping[str, Any]]) -> Found:
    """What the rows of patterns named by their policies say."""
    answers: dict[str, Answer] = {policy: [] for policy in POLICIES}
    inconsistent: dict[str, int] = {}
    for row in rows:
        if row["kind"] == "match":
            answers[row["pattern"]].append(shown(row))
        elif row["pattern"] == POLICIES[0]:
            inconsistent[row[KEY]] = (row["match_end"] - EPOCH) // timedelta(seconds=1)
    return Found(answers, inconsistent)


def types_of_events(case: Mapping[str, Any], where: Where) -> dict[str, list[str]]:
    """The types of each event, at its own time."""
    found: dict[str, list[str]] = {one["id"]: [] for one in case["events"]}
    if where == "spark":
        rows = leaf_types(frame(table(case)), pattern(case), **OPTIONS).toArrow()
    else:
        rows = leaf_types(table(case), pattern(case), **OPTIONS)
    for row in rows.to_pylist():
        found[row["events"][0][ID]].append(row["pattern"])
    return {event: sorted(types) for event, types in found.items()}


def _rows(case: Mapping[str, Any], patterns: Any, where: Where) -> list[dict[str, Any]]:
    events, options = table(case), {**OPTIONS, "outputs": OUTPUTS}
    if where == "process":
        return detect(events, patterns, **options).to_pylist()
    if where == "spark":
        return detect(frame(events), patterns, **options).toArrow().to_pylist()
    marker = {"id": "~", "t": END, "key": "~", "iri": "~:end", "ttl": ""}
    every = pa.concat_tables([events, table({"events": [marker]})])
    return stream_rows(every, patterns, **options)


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
