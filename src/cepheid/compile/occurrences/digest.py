"""A digest of what the numbers in the state of a pattern of occurrences stand for."""

from __future__ import annotations

from cepheid.compile.digest import digest_of
from cepheid.compile.occurrences.compiled import CompiledOccurrences


def layout_digest(compiled: CompiledOccurrences) -> str:
    """The digest, 128 bits in hexadecimal, of operators and their memory, variables, and the columns of events."""
    tables, plan = compiled.tables, compiled.plan
    semantics = {}
    if plan.semantics is not None:
        semantics = {
            "knowledge": plan.semantics.knowledge.fingerprint,
            "mapping": repr(plan.semantics.mapping),
            "meanings": [repr(meaning) for meaning in plan.meanings],
        }
    operators = tables.operators[["kind", "left", "right", "number", "memory"]].tolist()
    return digest_of(
        {
            "operators": operators,
            "regime": int(tables.settings["regime"][0]),
            "scripts": [operator.text for operator in compiled.each[0].trees.operators],
            "variables": list(compiled.plan.variables),
            "bits": [bit.sql for bit in compiled.plan.bits],
            **semantics,
            "values": [[value.sql, str(value.type)] for value in compiled.plan.values],
        }
    )
