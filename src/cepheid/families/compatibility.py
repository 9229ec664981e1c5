"""The values on which it depends whether a snapshot fits a pattern. They are JSON values; `differences` in
`matchers.snapshot` compares them.
"""

from __future__ import annotations

from typing import Any

from cepheid.families.family import ServiceOptions
from cepheid.lang.document.knowledge import knowledge_digest
from cepheid.lang.document.marked_text import Value
from cepheid.lang.fingerprint import pattern_fingerprint
from cepheid.plan.plan_set import PatternPlan
from cepheid.plan.used_columns import used_columns


def compatibility_of(plan: PatternPlan, document: dict[str, Value], layout: str, zone: str) -> dict[str, Any]:
    """The values for a pattern, from its document and the digest of its compiled form (`layout`). Local times are read
    in `zone`.
    """
    # The knowledge may have many facts, so a message says that it changed, and shows other prefixes.
    if (knowledge := plan.pattern.knowledge) is not None:
        document = document | {"knowledge": knowledge_digest(knowledge)}
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
        "sequence": list(schema.order_by),
        "columns": {name: str(schema.columns.field(name).type) for name in used_columns(plan)},
        "chosen": list(plan.columns),
        "measures": {measure.name: measure.text for measure in plan.measures or ()},
        "outputs": list(plan.outputs or ()),
        **rows_per_of(plan),
    }


def resolution_of(options: ServiceOptions) -> dict[str, str]:
    """How event times are cut, if they are: state that earlier versions stored does not say it."""
    return {} if options.time_resolution is None else {"time_resolution": options.time_resolution}


def rows_per_of(plan: PatternPlan) -> dict[str, str]:
    """What has a row, if not each match: state that earlier versions stored does not say it."""
    return {} if plan.rows_per == "match" else {"rows_per": plan.rows_per}
