"""A digest of what numbers in a matcher's state stand for, so that state is never read with another meaning."""

from __future__ import annotations

import json
from hashlib import blake2b

from cepheid.compile.compiled import CompiledPattern
from cepheid.compile.script import SlotKind

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
    text = json.dumps(layout, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=_SIZE, person=_PURPOSE).hexdigest()
