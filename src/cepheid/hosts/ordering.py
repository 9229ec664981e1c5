"""The order of key, time and sequence, for tables in this process: found where it is there, else made.

Events mostly come in the order of time already, all keys mixed. Then nothing is compared: the keys' ranks are sorted by
radix, which keeps the order of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events import Schema
from cepheid.hosts.intake import Timed, whole
from cepheid.hosts.tables import as_plain
from cepheid.order import descends, differs, leaves

Rows: TypeAlias = npt.NDArray[np.int64]

_DIGIT = 16
"""Bits that NumPy sorts by radix."""


def order_of(events: Timed, schema: Schema) -> pa.Array | None:
    """The rows' numbers in the order of key, time and sequence; None if they are in it."""
    keys = [leaf for name in schema.key for leaf in leaves(_column(events, name, schema))]
    ranks = [whole(events.time), *(_column(events, name, schema) for name in schema.sequence)]
    behind = descends(ranks)
    if _is_ordered(keys, behind, len(events)):
        return None
    rows = np.arange(len(events)) if not behind.any() else _by_rank(ranks)
    for leaf in reversed(keys):
        codes = _codes(leaf)
        for shift in range(0, int(codes.max(initial=0)).bit_length(), _DIGIT):
            digit = (codes[rows] >> shift).astype(np.uint16)
            rows = rows[np.argsort(digit, kind="stable")]
    return pa.array(rows)


def _is_ordered(keys: Sequence[pa.Array], behind: npt.NDArray[np.bool_], length: int) -> bool:
    """Whether each key's events are together, and none is `behind` one of its key."""
    key_start = np.zeros(length, np.bool_)
    key_start[:1] = True
    for column in keys:
        key_start[1:] |= differs(column)
    if (behind & ~key_start[1:]).any():
        return False
    starts = pa.array(np.flatnonzero(key_start))
    names = [str(i) for i in range(len(keys))]
    runs = pa.table([column.take(starts) for column in keys], names=names)
    return not keys or runs.group_by(names).aggregate([]).num_rows == len(starts)


def _column(events: Timed, name: str, schema: Schema) -> pa.Array:
    return whole(as_plain(events.events.select([name]), schema.columns).column(0))


def _by_rank(ranks: Sequence[pa.Array]) -> Rows:
    """The rows by time and sequence, NULL last."""
    if len(ranks) == 1:
        rows: Rows = np.argsort(ranks[0].cast(pa.int64()).to_numpy(), kind="stable")
        return rows
    columns = {str(i): leaf for i, leaf in enumerate(leaf for column in ranks for leaf in leaves(column))}
    found: Rows = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]).to_numpy()
    return found.astype(np.int64)


def _codes(leaf: pa.Array) -> npt.NDArray[np.int64]:
    """Each value's rank among the distinct ones, NULL last."""
    encoded = leaf.dictionary_encode()
    rank = np.empty(len(encoded.dictionary) + 1, np.int64)
    rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    rank[-1] = len(encoded.dictionary)
    codes: npt.NDArray[np.int64] = rank[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()]
    return codes
