"""A digest of what numbers in a matcher's state stand for, so that state is never read with another meaning."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from cepheid.compile.occurrences.compiled import CompiledOccurrences
from cepheid.compile.script import SlotKind
from cepheid.compile.stages.compiled import CompiledPattern

_SIZE = 16
_PURPOSE = b"cepheid layout1"
"""Its number changes with the form that is digested, so that no digest means two things."""


def layout_digest(compiled: CompiledPattern) -> str:
    """128 bits in hexadecimal over the states and where their edges lead, the stages, what each slot holds, and the
    columns of events: all that a later version may number otherwise for the same pattern.
    """
    plan, tables = compiled.plan, compiled.tables
    edges = list(zip(tables.edges["target"].tolist(), tables.edges["stage"].tolist(), strict=True))
    ranges = zip(tables.states["edges"].tolist(), tables.states["edges_end"].tolist(), strict=True)
    layout = {
        "states": [edges[start:end] for start, end in ranges],
        "stages": [leaf.name for leaf in plan.pattern.leaves],
        "stage_slots": tables.stage_slots.tolist(),
        "slots": [[SlotKind(kind).name, *numbers] for kind, *numbers in tables.slots.tolist()],
        "bits": [bit.sql for bit in plan.bits],
        "values": [[value.sql, str(value.type)] for value in plan.values],
    }
    return _digest(layout)


def occurrence_digest(compiled: CompiledOccurrences) -> str:
    """The same over operators and what each remembers, variables, and the columns of events."""
    tables = compiled.tables
    operators = tables.operators[["kind", "left", "right", "number", "memory"]].tolist()
    return _digest(
        {
            "operators": operators,
            "regime": int(tables.settings["regime"][0]),
            "scripts": [operator.text for operator in compiled.each[0].trees.operators],
            "variables": list(compiled.plan.variables),
            "bits": [bit.sql for bit in compiled.plan.bits],
            "values": [[value.sql, str(value.type)] for value in compiled.plan.values],
        }
    )


def _digest(layout: dict[str, Any]) -> str:
    text = json.dumps(layout, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=_SIZE, person=_PURPOSE).hexdigest()
