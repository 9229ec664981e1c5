"""Patterns of all kinds over the shop, with filters that are asked once for each value: their built-ins have no SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from tests.hosts.semantic_shop import FACTS, MAPPING, PREFIXES

from cepheid import IntervalPattern, OccurrencePattern, Pattern, semantic
from cepheid.knowledge import EventMapping, Knowledge

KNOWLEDGE = Knowledge.read(
    FACTS + ':text a owl:DatatypeProperty . :r a :Rule ; :looksLike "^d.n", "gic$" .', prefixes=PREFIXES
)
MAPPED = EventMapping(MAPPING.name, type="kind", properties=dict(MAPPING.properties) | {"text": "item"})
GIVEN: dict[str, Any] = {"knowledge": KNOWLEDGE, "mapping": MAPPED}
RULES = "text(?buy, ?t) ∧ Rule(?r) ∧ looksLike(?r, ?x) ∧ matches(?t, ?x)"
ROUNDED = "hasPrice(?buy, ?p) ∧ roundHalfToEven(?q, ?p, -3) ∧ equal(?q, 1000)"
STAGES, OTHERS = [2, 6], [2, 3, 5, 6]
"""The events that the patterns take. One of 500 is rounded to 0."""


def stages() -> Pattern:
    pattern = Pattern.begin("buy", name="stages", **GIVEN).where(semantic(RULES)).where(semantic(ROUNDED))
    return pattern.or_where("kind = 'Request'")


def occurrences() -> OccurrencePattern:
    return OccurrencePattern.of(f"?buy: Event [{RULES}]", **GIVEN)


def intervals() -> IntervalPattern:
    return IntervalPattern.pal(buy="Event").with_knowledge(KNOWLEDGE, MAPPED).where(semantic(RULES))


def taken(found: pa.Table) -> list[int]:
    """The numbers of the events of matches."""
    return sorted(one["id"] for one in found["buy"].to_pylist())
