"""A table in the host's own store as a target: exactly once, as its rows and the number of the subscription are written
in one transaction.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.condition import parsed
from cepheid.hosts.durable.routing.outlet import Outlet
from cepheid.hosts.durable.routing.stored import Changed, save
from cepheid.hosts.durable.routing.subscription import Letter, Subscription
from cepheid.hosts.durable.store import RowTable
from cepheid.output.common import RETRACTION

_AT_ONCE = 5_000
_OWN = pa.schema([("match_id", pa.string()), ("number", pa.int64()), ("version", pa.string())])
"""The columns of a table besides those of the matches' rows."""


class TableWriter:
    """Writes the letters of a subscription to its table, by the thread of the host."""

    def __init__(self, host: DurableHost, given: Subscription, outlet: Outlet, name: str) -> None:
        self._host = host
        self._given = given
        self._outlet = outlet
        self._again: list[Letter] = []
        self.due = 0.0
        """No attempt is made before this time of the clock."""
        others = [field for field in given.columns if field.name not in _OWN.names]
        content = [] if "content" in given.columns.names else [pa.field("content", pa.string())]
        self._table = RowTable(name, pa.schema([*_OWN, *others, *content]), "match_id")

    def make(self) -> None:
        """Makes the table, or adds the columns that it lacks.

        Raises:
            StoreError: there is a table of this name that is not the host's, or a column has another type.
        """
        with self._host.changing() as transaction:
            transaction.create(self._table)

    @property
    def given(self) -> Subscription:
        """The subscription as it is now. If the last rows did not concern it, its number may not be stored yet."""
        return self._given

    def is_done(self, sent: int) -> bool:
        """Whether all rows up to the number `sent` are written, and all letters that are sent again."""
        return self._given.delivered == sent and not self._again

    def send_again(self, letters: list[Letter]) -> None:
        self._again = letters

    def failed(self, problem: str, due: float) -> None:
        """A step has failed. The next one is due at this time of the clock."""
        self._given, self.due = replace(self._given, status="failing", problem=problem), due

    def step(self, sent: int) -> Changed | None:
        """Writes some of the rows up to the number `sent`; returns what was stored.

        Raises:
            StoreError: the store fails, and nothing was written.
        """
        given, again = self._given, self._again
        if self.is_done(sent):
            return None
        read = self._outlet.read(given.delivered, sent, _AT_ONCE)
        problem = read.failed[-1].problem if read.failed else given.problem
        after = replace(given, delivered=read.through, status="active", problem=problem)
        change = Changed(after, tuple(read.failed), tuple(again))
        if not (again or read.letters or read.failed):
            self._given = after
            return None
        with self._host.changing() as transaction:
            # A match may be inserted, retracted and inserted again.
            for run in _runs([*again, *read.letters]):
                if run[0].kind == RETRACTION:
                    transaction.delete(self._table, [letter.match_id for letter in run])
                else:
                    transaction.insert(self._table, self._rows(run))
            save(transaction, [change])
        self._again, self._given = [], after
        return change

    def _rows(self, letters: list[Letter]) -> pa.Table:
        rows = parsed(pa.schema([field for field in self._given.columns if field.name not in _OWN.names]), letters)
        own = {
            "match_id": [letter.match_id for letter in letters],
            "number": [letter.number for letter in letters],
            "version": [letter.version for letter in letters],
            "content": [letter.content for letter in letters],
        }
        columns = [
            rows.column(field.name) if field.name in rows.schema.names else pa.array(own[field.name], field.type)
            for field in self._table.columns
        ]
        return pa.table(columns, schema=self._table.columns)


def _runs(letters: list[Letter]) -> list[list[Letter]]:
    """The letters in their order, cut where retractions begin and end."""
    runs: list[list[Letter]] = []
    for letter in letters:
        if runs and (runs[-1][0].kind == RETRACTION) == (letter.kind == RETRACTION):
            runs[-1].append(letter)
        else:
            runs.append([letter])
    return runs
