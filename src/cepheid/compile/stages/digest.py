"""A digest of what the numbers in the state of a pattern of stages stand for."""

from __future__ import annotations

from cepheid.compile.digest import digest_of
from cepheid.compile.instructions import SlotKind
from cepheid.compile.stages.compiled import CompiledPattern


def layout_digest(compiled: CompiledPattern) -> str:
    """The digest, 128 bits in hexadecimal, of the states and the targets of their edges, the stages, the meaning of
    each slot, and the columns of events. A later version may number all these differently for the same pattern.
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
    return digest_of(layout)
