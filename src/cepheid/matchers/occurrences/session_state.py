"""The facts of sessions as arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.arrays import Ints
from cepheid.errors import SnapshotError
from cepheid.kernel.parts import State, StatePart, firsts
from cepheid.knowledge.terms import Iri, Literal, Term, Terms, text_of

_OTHER = "the snapshot's facts are not those of this pattern: was it written by another version?"


def facts_state(facts: Ints, terms: Terms) -> dict[str, npt.NDArray[Any]]:
    """What the events of each key say: the terms as JSON, and the facts (5, n), whose terms are places in that list.

    Args:
        facts: (5, n) key, time (microseconds), and the numbers of subject, predicate and object.
        terms: The terms with these numbers.
    """
    numbers, places = np.unique(facts[2:], return_inverse=True)
    return {
        "terms": _written([_listed(terms.term(number)) for number in numbers.tolist()]),
        "facts": np.concatenate([facts[:2], places.reshape(3, -1)]),
    }


def facts_of(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[Ints, list[str]]:
    """The facts by key and time, with places in the list of texts of terms (`terms.text_of`), which follows.

    Raises:
        SnapshotError: the arrays have another form.
    """
    try:
        texts = [text_of(_term(*listed)) for listed in json.loads(arrays["terms"].tobytes())]
        facts = arrays["facts"]
        places = facts[2:5]
        if len(facts) != 5 or (len(places[0]) and not 0 <= places.min() <= places.max() < len(texts)):
            raise SnapshotError(_OTHER)
        return facts[:, np.lexsort((facts[1], facts[0]))], texts
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SnapshotError(_OTHER) from error


def joined_sessions(parts: Sequence[StatePart], first_keys: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """One state with what all of these states (`Sessions.state`) have. `first_keys` says for each part what is added to
    the numbers of its keys.
    """
    terms = [json.loads(part.arrays["terms"].tobytes()) for part in parts]
    starts = zip(first_keys, firsts(part.events for part in parts), firsts(map(len, terms)), strict=True)
    moved = [_moved(part.arrays, *start) for part, start in zip(parts, starts, strict=True)]
    added = {name: np.sum([part.arrays[name] for part in parts], axis=0) for name in ("inconsistent", "dropped")}
    by_event = {name: np.concatenate([one[name] for one in moved]) for name in ("latest", "waiting", "masks", "full")}
    facts = np.concatenate([one["facts"] for one in moved], axis=1)
    return {"terms": _written([term for part in terms for term in part]), "facts": facts, **by_event, **added}


def _moved(arrays: State, key: int, event: int, term: int) -> State:
    """A part's arrays with its keys, events and terms from these numbers on."""
    return {
        "facts": arrays["facts"] + np.array([[key], [0], [term], [term], [term]]),
        "latest": arrays["latest"] + np.array([key, 0]),
        "waiting": arrays["waiting"] + np.array([key, event]),
        "masks": arrays["masks"],
        "full": arrays["full"] + key,
    }


def _written(terms: list[list[str | None]]) -> npt.NDArray[np.uint8]:
    written = json.dumps(terms, ensure_ascii=False, separators=(",", ":"))
    return np.frombuffer(written.encode(), np.uint8)


def _listed(term: Term) -> list[str | None]:
    return [term.value] if isinstance(term, Iri) else [term.text, term.datatype, term.language]


def _term(text: str, datatype: str | None = None, language: str | None = None) -> Term:
    return Iri(text) if datatype is None else Literal(text, datatype, language)
