"""Names for the nodes of events.

A name depends on the event and what is said of the node: two events may say different things under one name, and the
same event has the same nodes when it comes again, as in a replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.knowledge.events.coded import NOTHING, Coded, Numbers

Words: TypeAlias = npt.NDArray[np.uint64]

_DIGEST = 8
"""Bytes of a digest."""
_HEX = np.array([f"{one:02x}".encode() for one in range(256)], "S2").view(np.uint16)


class NodeNames:
    """Makes names for the nodes of events that have these names."""

    def __init__(self, names: Coded) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names.codes)

    @cached_property
    def _of_events(self) -> Words:
        return _digests(self._names)

    def of_nodes(self, said: Sequence[tuple[Coded, Numbers | None]], depends: Sequence[bool], place: str) -> Coded:
        """A node for each event.

        Args:
            said: What is said of it, by property: terms, and for each the number of its event; None: one an event.
            depends: For each property whether it depends on columns. If any does, a node without such a term is
                NOTHING.
            place: The place of the node in the mapping.
        """
        digests = self._of_events.copy()
        is_there = np.full(len(self), not any(depends))
        for number, ((terms, events), counts) in enumerate(zip(said, depends, strict=True)):
            has = terms.codes != NOTHING
            at = np.flatnonzero(has) if events is None else events[has]
            # A sum does not depend on the order: that of the values in an array says nothing.
            np.add.at(digests, at, _mixed(_digests(terms)[has] + np.uint64(number)))
            is_there[at] |= counts
        return _named(_mixed(digests), is_there, place)


def _named(digests: Words, is_there: npt.NDArray[np.bool_], place: str) -> Coded:
    shown = _HEX[digests[is_there].view(np.uint8)].view(f"S{2 * _DIGEST}").tolist()
    codes = np.full(len(is_there), NOTHING, np.int32)
    codes[is_there] = np.arange(len(shown), dtype=np.int32)
    return Coded(codes, [f"_:{digest.decode()}.c{place}" for digest in shown])


def _digests(terms: Coded) -> Words:
    """A digest of each term."""
    digests = b"".join([blake2b(text.encode(), digest_size=_DIGEST).digest() for text in terms.texts])
    return np.append(np.frombuffer(digests, np.uint64), np.uint64(0))[terms.codes]


def _mixed(words: Words) -> Words:
    """Each word with its bits mixed, as in SplitMix64 (Steele et al., 2014)."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
