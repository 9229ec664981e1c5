"""A digest of a pattern, which says whether a snapshot of partial matches belongs to it."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import cast

from cepheid.lang.document.marked_text import Value

_SIZE = 16
_PURPOSE = b"cepheid pattern1"
"""The number changes whenever the digested form changes, so that a digest never has two meanings."""


def pattern_fingerprint(document: dict[str, Value]) -> str:
    """A digest, 128 bits in hexadecimal, of everything that decides which matches are found. `document` is the
    pattern's document.

    For a pattern of stages these are the stages, conditions as written, quantifiers, windows, the skip strategy, the
    taxonomy and the values of parameters. For a pattern of occurrences they are the expression, its types and the
    policy. Functions count by name.

    The fingerprint is the same in every process and on every machine. Patterns that differ only in name or version have
    the same fingerprint.
    """
    document = {key: value for key, value in document.items() if key not in ("name", "version")}
    # Keys are sorted, because the order in which parameters and types are declared does not count. The order of
    # conditions does.
    text = json.dumps(_canonical(document), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return blake2b(text.encode(), digest_size=_SIZE, person=_PURPOSE).hexdigest()


def _canonical(document: dict[str, Value]) -> dict[str, Value]:
    match document.get("parameters"):
        case dict(values):
            # IN has the same meaning whatever the order of its list.
            given: dict[str, Value] = {
                name: sorted(value, key=json.dumps) if isinstance(value, list) else value
                for name, value in values.items()
            }
            document = document | {"parameters": given}
    match document.get("knowledge"):
        case {"ntriples": str(facts), **others}:
            # The order of facts does not count.
            known: dict[str, Value] = {str(key): cast("Value", value) for key, value in others.items()}
            document = document | {"knowledge": {**known, "ntriples": list[Value](sorted(facts.splitlines()))}}
    match document.get("taxonomy"):
        case {"column": column, "kinds": dict(kinds)}:
            ordered: dict[str, Value] = {
                kind: sorted(above, key=str) if isinstance(above, list) else above for kind, above in kinds.items()
            }
            return document | {"taxonomy": {"column": column, "kinds": ordered}}
    return document
