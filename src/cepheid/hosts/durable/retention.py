"""How long a host keeps the rows of what it has found, and its outbox."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from cepheid.hosts.durable.store import RowTable, Transaction
from cepheid.kernel.arrays import NO_TIME

_SHARE = 10
"""Rows are removed in groups of so many parts of what may be kept: finding the last one to keep takes time."""


@dataclass(frozen=True)
class Retention:
    """What is kept; None: everything."""

    age: int | None = None
    """Microseconds of event time: rows detected longer than this before the time that their pattern has reached are
    removed, once they are a tenth older. So are rows of the outbox that were added so long before the time that the
    inputs have reached.
    """
    rows: int | None = None
    """The rows that each table, and the outbox, keep at least; they have at most a tenth more."""


class Retained:
    """Applies a retention, in the transactions of steps."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._new: dict[str, int] = {}
        """The rows added to a table since rows were last removed from it."""
        self._aged: dict[int, int] = {}
        """Microseconds: the time at which old rows of a deployment were last removed."""
        self._first = 0
        """The outbox has no rows before this number."""
        self._marks = deque[tuple[int, int]]()
        """A time in microseconds, and the number of the first row that the outbox got after it."""

    def cut_added(self, transaction: Transaction, table: RowTable, added: int) -> None:
        """Removes rows from a table for what was found, to which a step has added some."""
        rows = self._retention.rows
        if rows is None:
            return
        new = self._new.get(table.name, rows) + added
        if new > rows // _SHARE:
            transaction.keep_latest(table, rows)
            new = 0
        self._new[table.name] = new

    def oldest(self, deployment: int, reached: int) -> int | None:
        """The time (microseconds) before which rows of a deployment are to be removed now, as its time has reached
        `reached`; None if nothing is to be done. The next times it is None for a while.
        """
        age = self._retention.age
        if age is None or reached < self._aged.get(deployment, NO_TIME) + age // _SHARE:
            return None
        self._aged[deployment] = reached
        return reached - age

    def cut_outbox(self, transaction: Transaction, sent: int, undelivered: int, reached: int) -> None:
        """Removes rows of the outbox, whose last number is `sent`, but none from the number `undelivered` on. The time
        has reached `reached` (microseconds).
        """
        rows, kept = self._retention.rows, sent + 1 - self._first
        by_rows = 0 if rows is None else sent + 1 - rows
        first = min(max(self._first_by_age(sent, reached), by_rows), undelivered)
        if first - self._first > kept // _SHARE:
            transaction.forget_sent(first)
            self._first = first

    def _first_by_age(self, sent: int, reached: int) -> int:
        """The number of the first row of the outbox that is young enough, as far as it is known."""
        age = self._retention.age
        if age is None:
            return 0
        if not self._marks or reached >= self._marks[-1][0] + age // _SHARE:
            self._marks.append((reached, sent + 1))
        first = 0
        while self._marks[0][0] <= reached - age:
            first = self._marks.popleft()[1]
        return first
