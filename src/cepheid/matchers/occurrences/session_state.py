"""The facts of sessions as arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.errors import SnapshotError
from cepheid.knowledge.terms import Iri, Literal, Term, Triple

_OTHER = "the snapshot's facts are not those of this pattern: was it written by another version?"


def facts_state(stated: Iterable[tuple[int, Mapping[Triple, int]]]) -> dict[str, npt.NDArray[Any]]:
    """What the events of each key say: the terms as JSON, and the facts (5, n): key, time, and the numbers of subject,
    predicate and object.
    """
    numbers: dict[Term, int] = {}
    facts = [
        (key, time, *(numbers.setdefault(term, len(numbers)) for term in triple))
        for key, facts in stated
        for triple, time in facts.items()
    ]
    terms = json.dumps([_listed(term) for term in numbers], ensure_ascii=False, separators=(",", ":"))
    return {
        "terms": np.frombuffer(terms.encode(), np.uint8),
        "facts": np.array(facts, np.int64).reshape(-1, 5).T.copy(),
    }


def facts_of(arrays: Mapping[str, npt.NDArray[Any]]) -> Iterable[tuple[int, int, Triple]]:
    """Key, time and fact, as `facts_state` was given them.

    Raises:
        SnapshotError: the arrays have another form.
    """
    try:
        terms = [_term(*listed) for listed in json.loads(arrays["terms"].tobytes())]
        return [(key, time, (terms[s], terms[p], terms[o])) for key, time, s, p, o in arrays["facts"].T.tolist()]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SnapshotError(_OTHER) from error


def _listed(term: Term) -> list[str | None]:
    return [term.value] if isinstance(term, Iri) else [term.text, term.datatype, term.language]


def _term(text: str, datatype: str | None = None, language: str | None = None) -> Term:
    return Iri(text) if datatype is None else Literal(text, datatype, language)
