"""Limits on the open partial matches and facts of a key, and on the matches that a single event completes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from cepheid.errors import SchemaError
from cepheid.lang.known_arguments import known_fields

OnLimit: TypeAlias = Literal["raise", "drop"]

MOST = 2**63 - 1
"""The kernel counts in 64 bits."""


@known_fields
@dataclass(frozen=True)
class Limits:
    """The most matches, open partial matches and facts that a pattern may have, for each key.

    Raises:
        SchemaError: a number is not positive or exceeds MOST, or `on_limit` is unknown.
    """

    max_partial_matches: int | None = None
    """The most open partial matches of a key. A set counts as all partial matches that it represents.

    None: 10 million if partial matches are stored one by one. Otherwise the limit is 10 million nodes of sets, because
    nodes decide the memory, and few nodes may represent any number of partial matches.

    If partial matches are stored one by one, the limit is exact at every event. Sets are counted less often: the next
    count comes one event later for every 64 nodes that the last count visited, and always after the key's last event of
    a call. So a large set may exceed the limit for some events within a call, but never from one call to the next.
    Nodes are counted when the space for them is used up. Space is allocated for up to four times the nodes in use, at
    28 bytes each (36 with a limit given): 10 million nodes are 280 MB, and 1.1 GB with their space.
    """
    max_matches_per_event: int = 10_000_000
    """The most matches that one event, one deadline or the end of the input may complete."""
    on_limit: OnLimit = "raise"
    """"raise": LimitExceeded. "drop": those with the earliest start are dropped, and counted in the report; partial
    matches are then stored one by one. Of facts, those of the event with which a key passes a limit are dropped, and
    those of the key's later events.
    """
    max_facts: int = 5_000_000
    """For patterns with knowledge: the most facts of a key that its events say or that follow from them. Those of the
    knowledge do not count. A fact takes 150 to 300 bytes.
    """
    max_same_as: int = 100
    """For patterns with knowledge: the most names of an individual (sameAs), where an event says or implies one. n
    names are n² facts, and all that is said of the individual is said n times.
    """

    @property
    def most_partial_matches(self) -> int:
        """`max_partial_matches`, or its default."""
        return 10_000_000 if self.max_partial_matches is None else self.max_partial_matches

    def __post_init__(self) -> None:
        numbers: tuple[tuple[str, object], ...] = (
            ("max_partial_matches", self.most_partial_matches),
            ("max_matches_per_event", self.max_matches_per_event),
            ("max_facts", self.max_facts),
            ("max_same_as", self.max_same_as),
        )
        faults = [
            f"limits: {name} is a whole number from 1 to 2**63 - 1, got {value!r}"
            for name, value in numbers
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST
        ]
        if self.on_limit not in get_args(OnLimit):
            allowed = " or ".join(repr(name) for name in get_args(OnLimit))
            faults.append(f"limits: on_limit is {allowed}, got {self.on_limit!r}")
        if faults:
            raise SchemaError("\n".join(faults))
