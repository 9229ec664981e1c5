"""What events say → numbers of terms, event by event."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.knowledge.layout import Said
from cepheid.knowledge.events.coded import NOTHING, Coded, FactColumn
from cepheid.knowledge.terms import Terms


class Numbering:
    """The numbers of the terms of some events. Columns that have their texts in common are numbered once."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known: dict[int, tuple[Sequence[str], Int32s]] = {}
        """By the identity of the texts, which are held so that it stays theirs."""

    def of(self, coded: Coded) -> Int32s:
        """The numbers of terms; NOTHING has an arbitrary one."""
        texts = coded.texts
        if id(texts) not in self._known:
            self._known[id(texts)] = texts, np.array(self._terms.numbers(texts) or [NOTHING], np.int32)
        return self._known[id(texts)][1][coded.codes]

    def said(self, columns: Sequence[FactColumn], times: Ints) -> tuple[Ints, Said]:
        """Where the facts of each event end, and the facts by event. `times` has those of the events (microseconds)."""
        count = len(times)
        placed = [_placed(column, count) for column in columns]
        counts: Ints = np.sum([counts for _, counts in placed], axis=0, dtype=np.int64) if placed else 0 * times
        ends = np.cumsum(counts)
        subject, predicate, object_ = (np.zeros(int(counts.sum()), np.int32) for _ in range(3))
        following = ends - counts
        for column, (which, own) in zip(columns, placed, strict=True):
            at = np.repeat(following, own) + _ranks(own)
            for part, into in zip(column[:3], (subject, predicate, object_), strict=True):
                into[at] = self.of(part)[which]
            following += own
        return ends, Said(subject, predicate, object_, np.repeat(times, counts))


def _placed(column: FactColumn, count: int) -> tuple[Ints, Ints]:
    """The places in the column that have a fact, and the number of facts of each event."""
    is_there = (column.subjects.codes != NOTHING) & (column.objects.codes != NOTHING)
    which = np.flatnonzero(is_there)
    if column.events is None:
        return which, is_there.astype(np.int64)
    return which, np.bincount(column.events[which], minlength=count)


def _ranks(counts: Ints) -> Ints:
    """0, 1, … for each event, as many as it has facts."""
    if counts.max(initial=0) <= 1:
        return np.zeros(int(counts.sum()), np.int64)
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
