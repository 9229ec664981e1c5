"""What numbers in the state of a pattern of occurrences stand for, as a digest."""

from __future__ import annotations

from cepheid.compile.digest import digest_of
from cepheid.compile.occurrences.compiled import CompiledOccurrences


def layout_digest(compiled: CompiledOccurrences) -> str:
    """128 bits in hexadecimal over operators and their memory, variables, and the columns of events."""
    tables = compiled.tables
    operators = tables.operators[["kind", "left", "right", "number", "memory"]].tolist()
    return digest_of(
        {
            "operators": operators,
            "regime": int(tables.settings["regime"][0]),
            "scripts": [operator.text for operator in compiled.each[0].trees.operators],
            "variables": list(compiled.plan.variables),
            "bits": [bit.sql for bit in compiled.plan.bits],
            "values": [[value.sql, str(value.type)] for value in compiled.plan.values],
        }
    )
