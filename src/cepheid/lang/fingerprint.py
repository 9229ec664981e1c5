"""A digest of a pattern: whether a snapshot of partial matches belongs to it."""

from __future__ import annotations

import json
from hashlib import blake2b

from cepheid.lang.document.marked_text import Value
from cepheid.lang.occurrences.document import occurrence_to_document
from cepheid.lang.occurrences.expression import OccurrencePattern
from cepheid.lang.stages.document import pattern_form
from cepheid.lang.stages.pattern import Pattern

_SIZE = 16
_PURPOSE = b"cepheid pattern1"
"""Its number changes with the form that is digested, so that no digest means two things."""


def pattern_fingerprint(pattern: Pattern | OccurrencePattern) -> str:
    """128 bits in hexadecimal over all that decides which matches are found: stages, conditions as they are written,
    quantifiers, windows, skip strategy, taxonomy and the values of parameters; or the expression, its types and the
    policy. Functions count by their names.

    Patterns that differ only in name or version have the same. It is the same in every process, on every machine.
    """
    document = occurrence_to_document(pattern) if isinstance(pattern, OccurrencePattern) else pattern_form(pattern)
    for label in ("name", "version"):
        document.pop(label, None)
    # Sorted, the order in which parameters and types were declared does not count; that of conditions does.
    text = json.dumps(_canonical(document), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return blake2b(text.encode(), digest_size=_SIZE, person=_PURPOSE).hexdigest()


def _canonical(document: dict[str, Value]) -> dict[str, Value]:
    match document.get("taxonomy"):
        case {"column": column, "kinds": dict(kinds)}:
            ordered: dict[str, Value] = {
                kind: sorted(above, key=str) if isinstance(above, list) else above for kind, above in kinds.items()
            }
            return document | {"taxonomy": {"column": column, "kinds": ordered}}
    return document
