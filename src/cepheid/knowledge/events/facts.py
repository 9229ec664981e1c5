"""The individuals and the facts of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b

import pyarrow as pa

from cepheid.knowledge.events.mapping import EventMapping
from cepheid.knowledge.reading import triples
from cepheid.knowledge.terms import Iri, Triple


class EventFacts:
    """Reads the facts of events."""

    def __init__(self, mapping: EventMapping, prefixes: Mapping[str, str]) -> None:
        self._mapping = mapping
        # On one line with the text, so that errors have the right line.
        self._prefixes = "".join(f"@prefix {name}: <{iri}> . " for name, iri in prefixes.items())

    def read(self, columns: Mapping[str, pa.Array]) -> Iterator[tuple[Iri, list[Triple]]]:
        """For each event its individual and its facts; `columns` has those that the mapping reads.

        Raises:
            KnowledgeError: an event has no name, or its Turtle has an error.
        """
        names = columns[self._mapping.name].to_pylist()
        texts = [None] * len(names) if self._mapping.turtle is None else columns[self._mapping.turtle].to_pylist()
        for name, text in zip(names, texts, strict=True):
            yield Iri(name), [] if text is None else self._stated(name, text)

    def _stated(self, name: str, text: str) -> list[Triple]:
        # The same event has the same nodes when it comes again, as in a replay.
        scope = blake2b(f"{name}\n{text}".encode(), digest_size=8).hexdigest()
        return triples(self._prefixes + text, "turtle", f"the facts of the event {name}", scope)
