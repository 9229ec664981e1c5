"""What a snapshot must be of, to fit a matcher; and what the matcher's plan is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cepheid.compile.digest import layout_digest, occurrence_digest
from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.compile.stages.representation import choose_form
from cepheid.hosts.in_process.prepare import used_columns
from cepheid.lang.document.values import parameters_document, taxonomy_document
from cepheid.lang.fingerprint import pattern_fingerprint
from cepheid.lang.intervals.printer import interval_text
from cepheid.lang.intervals.values import Consistency, End
from cepheid.lang.occurrences.document import occurrence_to_document
from cepheid.lang.stages.document import pattern_form
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.requests.request import Request


def made_for(request: Request, compiled: CompiledPattern | CompiledOccurrences, zone: str) -> dict[str, Any]:
    """In JSON values, as `snapshot.differences` compares them."""
    plan = compiled.plan
    measures = request.measures if request.occurrences is None else request.occurrences.measures
    told = {
        **(
            _of_occurrences(request, compiled)
            if isinstance(compiled, CompiledOccurrences)
            else _of_stages(request, compiled)
        ),
        "key": list(request.key),
        "time": request.time,
        "time_zone": zone,
        "sequence": list(request.sequence),
        "columns": {name: str(plan.schema.columns.field(name).type) for name in used_columns(plan)},
        "chosen": list(plan.columns),
        "measures": dict(measures or {}),
        "outputs": list(request.outputs or ()),
    }
    if isinstance(compiled, CompiledPattern):
        told["partial_matches"] = "in sets" if choose_form(compiled).sets else "one by one"
    return told


def _of_stages(request: Request, compiled: CompiledPattern) -> dict[str, Any]:
    pattern = pattern_form(request.pattern)
    name, _ = pattern.pop("name"), pattern.pop("version", None)  # another version of the same pattern goes on
    return {
        "fingerprint": pattern_fingerprint(request.pattern),
        "layout": layout_digest(compiled),
        "pattern.name": name,
        "pattern": pattern,
    }


def _of_occurrences(request: Request, compiled: CompiledOccurrences) -> dict[str, Any]:
    assert request.occurrences is not None
    pattern = occurrence_to_document(request.occurrences.pattern)
    name, _ = pattern.pop("name"), pattern.pop("version", None)
    return {
        "fingerprint": pattern_fingerprint(request.occurrences.pattern),
        "layout": occurrence_digest(compiled),
        "pattern.name": name,
        "pattern": pattern,
    }


def intervals_made_for(plan: IntervalPlan, lateness: End, outputs: Sequence[str], zone: str) -> dict[str, Any]:
    """Of an interval pattern on a stream; its consistency may change."""
    schema, pattern = plan.schema, plan.pattern.emitting(Consistency.CONSERVATIVE)
    used = dict.fromkeys([*schema.key, schema.start, schema.end, *plan.columns])
    assert pattern.types is not None
    return {
        "pattern.name": pattern.name,
        "interval pattern": interval_text(pattern).splitlines(),
        "taxonomy": taxonomy_document(pattern.types),
        "key": list(schema.key),
        "times": [schema.start, schema.end],
        "lateness": schema.times[lateness],
        "time_zone": zone,
        "columns": {name: str(schema.columns.field(name).type) for name in used},
        "values": [str(value.type) for value in plan.values],
        "chosen": list(plan.columns),
        "outputs": list(outputs),
        **parameters_document(pattern.parameters),
    }


def asked_of(request: Request, zone: str, events: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, in JSON values: the pattern's document, with the names of its functions; the other arguments
    of `detect` that a plan is made from; and the events' columns as `events` says them.
    """
    return {
        "pattern": pattern_form(request.pattern),
        "functions": [function.name for _, function in request.pattern.functions],
        "events": events,
        "limits": asdict(request.limits),
        "arguments": {
            "key": list(request.key) or None,
            "time": request.time,
            "sequence": list(request.sequence) or None,
            "columns": None if request.columns is None else list(request.columns),
            "measures": None if request.measures is None else dict(request.measures),
            "outputs": None if request.outputs is None else list(request.outputs),
            "time_zone": zone,
            "shards": request.shards,
        },
    }
