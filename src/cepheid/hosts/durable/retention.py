"""How long a host keeps the rows of what it has found, and its outbox."""

from __future__ import annotations

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
    removed, once they are a tenth older.
    """
    rows: int | None = None
    """The rows that each table, and the outbox, keep at least; they have at most a tenth more."""


class Retained:
    """Applies a retention, in the transactions of steps."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._new: dict[str, int] = {}
        """The rows added to a table since rows were last removed from it."""
        self._aged: dict[str, int] = {}
        """Microseconds: the time at which old rows were last removed from a table."""
        self._first = 0
        """The outbox has no rows before this number."""

    def cut(self, transaction: Transaction, table: RowTable, added: int, reached: int) -> None:
        """Removes rows from a table for what was found, after a step that has added some rows and has brought time to
        `reached` (microseconds).
        """
        age, rows = self._retention.age, self._retention.rows
        if age is not None and reached >= self._aged.get(table.name, NO_TIME) + age // _SHARE:
            transaction.remove_older(table, reached - age)
            self._aged[table.name] = reached
        if rows is not None:
            new = self._new.get(table.name, rows) + added
            if new > rows // _SHARE:
                transaction.keep_latest(table, rows)
                new = 0
            self._new[table.name] = new

    def cut_outbox(self, transaction: Transaction, sent: int, undelivered: int) -> None:
        """Removes rows of the outbox, whose last number is `sent`, but none from the number `undelivered` on."""
        rows = self._retention.rows
        first = min(sent + 1 - (rows or 0), undelivered)
        if rows is not None and first > self._first + rows // _SHARE:
            transaction.forget_sent(first)
            self._first = first
