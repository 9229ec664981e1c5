"""Sorts tables in this process by key, time and sequence, unless they are in this order already.

Events are mostly in the order of time already, with all keys mixed. Then nothing is compared: a radix sort orders the
codes of the keys. It is stable, so time and sequence stay in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import FINER, Schema
from cepheid.events.direction import Direction
from cepheid.events.order import descends, differs, leaves, ranked
from cepheid.hosts.in_process.prepare import TimedEvents, whole, wide
from cepheid.hosts.in_process.tables import as_plain

Rows: TypeAlias = npt.NDArray[np.int64]

_DIGIT = 16
"""The width, in bits, of integers that NumPy sorts by radix."""

_FEW = 1 << 2 * _DIGIT
"""Integers in a range shorter than this are their own codes: two rounds sort them."""


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

    def take(self, rows: pa.Array) -> Ranked:
        return Ranked([column.take(rows) for column in self.keys], [column.take(rows) for column in self.ranks])


def is_ordered(events: Ranked) -> bool:
    """Whether each key's events are adjacent and in order."""
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


def order_of(events: Ranked) -> Rows:
    """The rows' numbers in the order of key, time and sequence."""
    rows = _by_rank(events.ranks) if descends(events.ranks).any() else None
    for leaf in reversed(events.keys):
        codes = _codes(leaf)
        for shift in range(0, int(codes.max(initial=0)).bit_length(), _DIGIT):
            digit = (codes >> shift).astype(np.uint16)
            order = np.argsort(digit if rows is None else digit[rows], kind="stable")
            rows = order if rows is None else rows[order]
    return np.arange(len(events)) if rows is None else rows


def _column(events: TimedEvents, name: str, schema: Schema) -> pa.Array:
    return whole(wide(as_plain(events.events.select([name]), schema.columns).column(0)))


def _by_rank(ranks: Sequence[pa.Array]) -> Rows:
    """The rows by time and sequence, NULL last."""
    if len(ranks) == 1:
        rows: Rows = np.argsort(ranks[0].cast(pa.int64()).to_numpy(), kind="stable")
        return rows
    columns = {str(i): leaf for i, leaf in enumerate(leaf for column in ranks for leaf in leaves(column))}
    order: Rows = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]).to_numpy()
    return order.astype(np.int64)


def _codes(leaf: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers from 0 in the same order as the values, NULL last."""
    if pa.types.is_integer(leaf.type) and len(leaf) > leaf.null_count:
        least, most = pc.min_max(leaf).values()
        span = most.as_py() - least.as_py()
        if span < _FEW:
            values: npt.NDArray[np.int64] = leaf.fill_null(most).to_numpy().astype(np.int64) - least.as_py()
            return np.where(leaf.is_null(), span + 1, values) if leaf.null_count else values
    encoded = leaf.dictionary_encode()
    rank = np.empty(len(encoded.dictionary) + 1, np.int64)
    rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    rank[-1] = len(encoded.dictionary)
    codes: npt.NDArray[np.int64] = rank[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()]
    return codes
