"""Sorts tables in this process by key, time and sequence, unless they are in this order already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import FINER, Schema
from cepheid.events.direction import Direction
from cepheid.events.identity import filled
from cepheid.events.order import descends, differs, leaves, ranked
from cepheid.hosts.in_process.prepare import TimedEvents, whole, wide
from cepheid.hosts.in_process.tables import as_plain
from cepheid.kernel.order import Codes, order_by

Rows: TypeAlias = npt.NDArray[np.int64]

_FEW = 4096
"""So many events mostly show whether keys are mixed, if they are."""
_FURTHER = 16
"""If not, so many times as many are looked at next: each key may have an event in turn."""
_SIGN = np.uint64(1 << 63)
_MOST = np.uint64((1 << 64) - 1)


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
    return order_by([code for leaf in (*events.keys, *ranks) for code in _codes(leaf)], len(events))


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


def _codes(leaf: pa.Array) -> Iterator[Codes]:
    """Columns that sort as the values do: NaN after all other numbers, and NULL last."""
    if leaf.null_count:
        yield leaf.is_null().to_numpy(zero_copy_only=False).astype(np.uint64)
    words = _words(leaf)
    yield _places(leaf) if words is None else words - words.min(initial=_MOST)


def _words(leaf: pa.Array) -> Codes | None:
    """Numbers in the order of the values, and any for NULL; None if the type has values of another width."""
    type_ = leaf.type
    if pa.types.is_unsigned_integer(type_):
        unsigned: Codes = filled(leaf, 0).to_numpy().astype(np.uint64)
        return unsigned
    if pa.types.is_float64(type_):
        bits: Codes = filled(leaf, 0.0).to_numpy().view(np.uint64)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    if not (pa.types.is_signed_integer(type_) or pa.types.is_temporal(type_)) or pa.types.is_interval(type_):
        return None
    numbers = leaf if pa.types.is_integer(type_) else leaf.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    signed: npt.NDArray[np.int64] = filled(numbers, 0).to_numpy().astype(np.int64, copy=False)
    return signed.view(np.uint64) ^ _SIGN


def _places(leaf: pa.Array) -> Codes:
    """For each value its place among the distinct ones, in their order."""
    encoded = leaf.dictionary_encode()
    places = np.empty(max(1, len(encoded.dictionary)), np.uint64)
    places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    found: Codes = places[filled(encoded.indices, 0).to_numpy()]
    return found
