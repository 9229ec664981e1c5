"""Limits on what is known because of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

WhichLimit: TypeAlias = Literal["max_facts", "max_same_as"]


@dataclass(frozen=True)
class FactLimits:
    """The most that a closure may have beside its base."""

    facts: int
    """Facts that are stated or follow."""
    names: int
    """Names of one individual: it and those that are the same."""


class TooManyFacts(Exception):
    """A closure would pass a limit. It cannot be used any more, as not all that follows is found."""

    def __init__(self, which: WhichLimit, visit: int = 0) -> None:
        super().__init__(which)
        self.which: WhichLimit = which
        self.visit = visit
        """For sessions: the number of the event, of those added by one call."""
