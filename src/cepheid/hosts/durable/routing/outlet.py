"""The letters of one subscription, read from the outbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from cepheid.hosts.durable.routing.condition import Condition
from cepheid.hosts.durable.routing.subscription import DeadLetter, Letter, Subscription, letter_of

_COLUMNS = "number, pattern, version, kind, match_id, content"


class Read(NamedTuple):
    """A part of the outbox."""

    letters: list[Letter]
    failed: list[DeadLetter]
    """Letters on which the condition fails."""
    through: int
    """The number of the last row that was looked at."""


class Outlet:
    """Reads the outbox for one subscription. Only one thread may use it."""

    def __init__(self, query: Callable[[str], pa.Table], given: Subscription) -> None:
        """
        Raises:
            PatternError: the condition does not fit the columns.
        """
        self._query = query
        self._given = given
        self._condition = None if given.where is None else Condition(given.where, given.columns)

    def read(self, after: int, through: int, most: int) -> Read:
        """At most `most` rows of the outbox, from those after the number `after` up to the number `through`.

        Raises:
            StoreError: they cannot be read.
        """
        where = f"number > {after:d} AND number <= {through:d}"
        rows = self._query(f"SELECT {_COLUMNS} FROM outbox WHERE {where} ORDER BY number LIMIT {most:d}").to_pylist()
        letters = [letter_of(row) for row in rows if self._given.covers(row["pattern"])]
        # A row that was removed from the outbox need not be delivered.
        last = rows[-1]["number"] if len(rows) == most else through
        if self._condition is None:
            return Read(letters, [], last)
        return Read(*self._condition.chosen(letters), last)
