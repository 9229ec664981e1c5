"""Sorts tables in this process by key, time and sequence, unless they are in this order already."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.events.batch import FINER, Batch, Schema
from cepheid.events.direction import Direction
from cepheid.events.identity import key_names
from cepheid.events.order import descends, differs, leaves, ranked
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.prepare import TimedEvents, whole, wide
from cepheid.hosts.in_process.tables import as_plain
from cepheid.kernel.order import Rows
from cepheid.kernel.order_of_columns import order_of_columns

_FEW = 4096
"""So many events mostly show whether keys are mixed, if they are."""
_FURTHER = 16
"""If not, so many times as many are looked at next: each key may have an event in turn."""


@dataclass(frozen=True)
class Ranked:
    """The columns that order events, with one value per event."""

    keys: list[pa.Array]
    ranks: list[pa.Array]
    """The time, what was cut off it if times are cut, then columns that sort as the sequence, if there is one."""

    @staticmethod
    def of(events: TimedEvents, schema: Schema) -> Ranked:
        columns = {name: _column(events, name, schema) for name in (*schema.key, *schema.sequence)}
        keys = [leaf for name in schema.key for leaf in leaves(columns[name])]
        finer = [whole(events.events.column(FINER))] if FINER in events.events.schema.names else []
        directed = [(columns[name], Direction.of(column)) for column, name in schema.ranking]
        sequence = [leaf for column, direction in directed for leaf in ranked(column, direction)]
        return Ranked(keys, [whole(events.times[0]), *finer, *sequence])

    def __len__(self) -> int:
        return len(self.ranks[0])

    def slice(self, length: int) -> Ranked:
        """The first events, at most so many."""
        return Ranked([one.slice(0, length) for one in self.keys], [one.slice(0, length) for one in self.ranks])

    def take(self, rows: pa.Array) -> Ranked:
        return Ranked([column.take(rows) for column in self.keys], [column.take(rows) for column in self.ranks])


class KeysInOrder(NamedTuple):
    """The keys of events. Those of one key are side by side."""

    columns: Sequence[pa.Array]
    """The columns of the key, with one value per row."""
    rows: pa.Array | None
    """The row of each event; None: event i is in row i."""
    length: int
    """The number of events."""

    def around(self, position: int) -> tuple[int, int]:
        """The positions at which the key of the event at this position begins and ends."""
        name = self._name_at(position)
        begin = bisect_left(range(position), x=True, key=lambda other: self._name_at(other) == name)
        after = range(position, self.length)
        return begin, position + bisect_left(after, x=True, key=lambda other: self._name_at(other) != name)

    def begins_at(self, position: int) -> bool:
        """Whether a key begins with the event at this position."""
        return position == 0 or self._name_at(position - 1) != self._name_at(position)

    def _name_at(self, position: int) -> bytes:
        row = position if self.rows is None else self.rows[position].as_py()
        return key_names([column.slice(row, 1) for column in self.columns], 1)[0]


class OrderedEvents(NamedTuple):
    """Events in the order of key, time and sequence."""

    keys: KeysInOrder
    times: pa.Array
    """The time of each row."""
    batches: Callable[[int, int, DuckDbEngine], Iterator[Batch]]
    """The events from a position to before another one, with the lifted columns of all patterns. If `keys` has no
    `rows`, they are evaluated now, and those that matter to no pattern are left out.
    """


def is_ordered(events: Ranked) -> bool:
    """Whether each key's events are adjacent and in order."""
    length = _FEW
    while length < len(events):
        if not _is_ordered(events.slice(length)):
            return False
        length *= _FURTHER
    return _is_ordered(events)


def order_of(events: Ranked) -> Rows:
    """The rows' numbers in the order of key, time and sequence."""
    ranks = events.ranks if descends(events.ranks).any() else []
    return order_of_columns([*events.keys, *ranks], len(events))


def _is_ordered(events: Ranked) -> bool:
    key_start = np.zeros(len(events), np.bool_)
    key_start[:1] = True
    for column in events.keys:
        key_start[1:] |= differs(column)
    if (descends(events.ranks) & ~key_start[1:]).any():
        return False
    starts = pa.array(np.flatnonzero(key_start))
    names = [str(i) for i in range(len(events.keys))]
    runs = pa.table([column.take(starts) for column in events.keys], names=names)
    return not names or runs.group_by(names).aggregate([]).num_rows == len(starts)


def _column(events: TimedEvents, name: str, schema: Schema) -> pa.Array:
    return whole(wide(as_plain(events.events.select([name]), schema.columns).column(0)))
