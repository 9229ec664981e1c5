"""The values on which it depends whether a snapshot fits a pattern. They are JSON values; `differences` in
`matchers.snapshot` compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cepheid.lang.document.marked_text import Value
from cepheid.lang.fingerprint import pattern_fingerprint
from cepheid.plan.plan_set import PatternPlan
from cepheid.plan.used_columns import used_columns

if TYPE_CHECKING:
    from cepheid.lang.occurrences.pattern import OccurrencePattern


def with_digest_of_knowledge(pattern: OccurrencePattern, document: dict[str, Value]) -> dict[str, Value]:
    """The document with a digest in place of the facts that the pattern knows, of which there may be many. So a message
    says that the knowledge changed, and shows other prefixes.
    """
    if pattern.knowledge is None:
        return document
    known = cast("dict[str, Value]", document["knowledge"])
    digest: Value = f"{len(pattern.knowledge.facts)} facts ({pattern.knowledge.fingerprint})"
    return document | {"knowledge": {"facts": digest, "prefixes": known.get("prefixes", {})}}


def compatibility_of(plan: PatternPlan, document: dict[str, Value], layout: str, zone: str) -> dict[str, Any]:
    """The values for a pattern, from its document and the digest of its compiled form (`layout`). Local times are read
    in `zone`.
    """
    # The version is left out: another version of the same pattern may continue from the state.
    pattern = {key: value for key, value in document.items() if key not in ("name", "version")}
    schema = plan.schema
    return {
        "fingerprint": pattern_fingerprint(document),
        "layout": layout,
        "pattern.name": plan.pattern.name,
        "pattern": pattern,
        "key": list(schema.key),
        "time": schema.time,
        "time_zone": zone,
        "sequence": list(schema.sequence),
        "columns": {name: str(schema.columns.field(name).type) for name in used_columns(plan)},
        "chosen": list(plan.columns),
        "measures": {measure.name: measure.text for measure in plan.measures or ()},
        "outputs": list(plan.outputs or ()),
    }
