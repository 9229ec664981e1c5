"""Semantic filters: conditions on what events mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.errors import PatternError
from cepheid.lang.arguments import shown
from cepheid.lang.known_arguments import known_arguments

if TYPE_CHECKING:
    from cepheid.knowledge.events.mapping import EventMapping
    from cepheid.knowledge.knowledge import Knowledge


FILTER = "semantic"
"""The function that stands for a semantic filter in the query text of intervals."""


@dataclass(frozen=True)
class SemanticFilter:
    """A condition on what events mean, such as `Book(?c) ∧ hasPrice(?c, ?p) ∧ greaterThan(?p, 1000)`. Variables of the
    pattern are the individuals of their events.
    """

    text: str


@known_arguments()
def semantic(text: object) -> SemanticFilter:
    """A semantic filter, in place of the SQL of a condition in a pattern with knowledge."""
    if not isinstance(text, str) or not text.strip():
        raise PatternError(f"a semantic filter is text, as in 'Book(?c) ∧ hasPrice(?c, ?p)', got {shown(text)}")
    return SemanticFilter(text.strip())


def check_knowledge(knowledge: Knowledge | None, mapping: EventMapping | None) -> None:
    """
    Raises:
        PatternError: only one of the two is given, or one is of another type.
    """
    if (knowledge is None) != (mapping is None):
        raise PatternError("knowledge= and mapping= are given together: what is known, and how events come into it")
    if knowledge is None:
        return
    # Knowledge takes long to import, and most patterns have none.
    from cepheid.knowledge.events.mapping import EventMapping
    from cepheid.knowledge.knowledge import Knowledge

    if not isinstance(knowledge, Knowledge):
        raise PatternError(f"knowledge: Knowledge.read(…) is expected, got {shown(knowledge)}")
    if not isinstance(mapping, EventMapping):
        raise PatternError(f"mapping: EventMapping(…) is expected, got {shown(mapping)}")
