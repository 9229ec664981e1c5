"""Questions about single events that have no SQL: whether built-ins hold for values of their columns.

A question is asked once for each distinct combination of values. What it needs from the knowledge is in it, so whoever
answers it needs no knowledge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.knowledge.events.coded import NOTHING, Numbers
from cepheid.knowledge.events.facts import terms_of_events
from cepheid.knowledge.events.mapping import Individual, readings_of
from cepheid.knowledge.filters.solving import Solution, builtins_hold
from cepheid.knowledge.filters.syntax import SWRLB, Atom, Variable
from cepheid.knowledge.terms import Term, term_of

_MOST_KNOWN = 1_000_000
"""The most answers that are retained."""
_MOST_COMBINED = 2**62
_Codes: TypeAlias = npt.NDArray[np.int64]
PREFIX = "cepheid asks "
"""How the names of columns of answers begin. No column of events has such a name."""


@dataclass(frozen=True)
class Question:
    """Whether an event's values make built-ins true, together with what the knowledge has."""

    sources: tuple[tuple[str, str | Individual], ...]
    """The variables that an event binds: to the literal of a column, or to the individual that columns name. A
    variable that is bound twice must be the same term.
    """
    builtins: tuple[Atom, ...]
    variables: tuple[str, ...] = ()
    """The variables of `rows`."""
    rows: tuple[tuple[Term, ...], ...] = ((),)
    """What the knowledge says that these variables may be together."""
    prefixes: tuple[tuple[str, str], ...] = ()
    """Those of the names in columns."""

    @cached_property
    def name(self) -> str:
        """The name of the column of its answers; other questions have other names."""
        content = repr((self.sources, self.builtins, self.variables, self.rows, self.prefixes))
        return f"{PREFIX}{blake2b(content.encode(), digest_size=12).hexdigest()}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of events that it reads."""
        return tuple(dict.fromkeys(column for column, _ in readings_of(self.sources)))

    def __str__(self) -> str:
        """The question in words."""
        atoms = " ∧ ".join(map(_shown, self.builtins)) or "the same value"
        of_knowledge = f", {len(self.rows):,} cases of the knowledge" if self.variables else ""
        return f"{atoms} asked once for each value of {', '.join(self.columns)}{of_knowledge}"

    def answers(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """For each event whether it holds; not for one in which a column is NULL."""
        prefixes = dict(self.prefixes)
        coded = [terms_of_events(source, columns, prefixes) for _, source in self.sources]
        codes, firsts = _distinct([one.codes for one in coded])
        found = [
            all(one.codes[at] != NOTHING for one in coded)
            and self._answer(tuple(one.texts[one.codes[at]] for one in coded))
            for at in firsts.tolist()
        ]
        return pa.array(np.array(found, np.bool_)[codes])

    def _answer(self, texts: tuple[str, ...]) -> bool:
        """Whether it holds for these terms of an event."""
        known = self._known.get(texts)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[texts] = self._asked([*map(term_of, texts)])
        return known

    def _asked(self, terms: Sequence[Term]) -> bool:
        given: Solution = {}
        for (name, _), term in zip(self.sources, terms, strict=True):
            if given.setdefault(name, term) != term:
                return False
        rows = self._rows.get(tuple(given[name] for name in self._shared), ())
        return any(builtins_hold(self.builtins, {**row, **given}) for row in rows)

    @cached_property
    def _known(self) -> dict[tuple[str, ...], bool]:
        """The answers so far."""
        return {}

    @cached_property
    def _shared(self) -> tuple[str, ...]:
        """The variables that both the event and the knowledge bind."""
        return tuple(name for name in self.variables if name in dict(self.sources))

    @cached_property
    def _rows(self) -> Mapping[tuple[Term, ...], list[Solution]]:
        """The rows by the terms of the shared variables."""
        found = defaultdict[tuple[Term, ...], list[Solution]](list)
        for row in self.rows:
            one = dict(zip(self.variables, row, strict=True))
            found[tuple(one[name] for name in self._shared)].append(one)
        return dict(found)


def with_answers(columns: pa.Schema, questions: Sequence[Question]) -> pa.Schema:
    """The columns of events, and those of answers."""
    return pa.schema([*columns, *(pa.field(one.name, pa.bool_()) for one in questions)])


def _distinct(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """For each row the number of its combination of codes, and for each combination its first row."""

    def combined(one: _Codes, other: _Codes) -> _Codes:
        count = int(other.max(initial=0)) + 2
        if (int(one.max(initial=0)) + 2) * count >= _MOST_COMBINED:
            one = np.unique(one, return_inverse=True)[1].astype(np.int64)
        return one * count + other + 1

    whole = reduce(combined, (one.astype(np.int64) for one in columns))
    _, firsts, codes = np.unique(whole, return_index=True, return_inverse=True)
    return codes, firsts


def _shown(atom: Atom) -> str:
    name = atom.name.value.removeprefix(SWRLB)
    return f"{name}({', '.join(f'?{one.name}' if isinstance(one, Variable) else str(one) for one in atom.arguments)})"
