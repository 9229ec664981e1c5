"""The numbers by which a kernel knows keys."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_bytes
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import Batch
from cepheid.events.identity import key_names, values_and_bounds
from cepheid.kernel.arrays import Int32s, Words
from cepheid.kernel.key_table import KeyTable
from cepheid.kernel.row_hashes import row_hashes
from cepheid.kernel.siphash import KEY_SIZE, siphash

Names: TypeAlias = npt.NDArray[np.object_]
"""Names of keys: canonical bytes."""

FEW_KEYS = 1024
"""The memory of this many keys does not matter."""


class KeyNumbers:
    """Numbers of the keys that have something open; a freed number is given to another key."""

    def __init__(self) -> None:
        self._table, self._secret = KeyTable(), token_bytes(KEY_SIZE)
        self.name_of: Names = np.empty(0, object)
        """The name of each number's key, and room for more. A freed number still has the name of the
        key that had it last.
        """

    def __len__(self) -> int:
        return len(self._table)

    @property
    def size(self) -> int:
        """All numbers are below this."""
        return self._table.size

    @property
    def number_of(self) -> dict[bytes, int]:
        """The numbers in use, ascending, by the names of their keys."""
        numbers = self._table.in_use
        return dict(zip(self.name_of[numbers].tolist(), numbers.tolist(), strict=True))

    def numbers(self, events: Batch) -> Int32s:
        """The number of each event's key and sub-key; one without a number gets a new one."""
        keys = [*events.keys, *events.sub_keys]
        numbers, new = self._table.numbers_and_new(self._hashes(keys, len(events) if keys else 1))
        if len(new):
            self._make_room()
            rows = pa.array(new)
            self.name_of[numbers[new]] = key_names([column.take(rows) for column in keys], len(new))
        return numbers if keys else np.repeat(numbers, len(events))

    def known(self, key: Sequence[pa.Array], length: int) -> Int32s:
        """The number of each row's key; `key` has the key columns of `length` rows.

        Raises:
            SnapshotError: a key has no number, as a snapshot was restored whose keys are not those of its events.
        """
        numbers = self._table.find(self._hashes(key, length))
        if (numbers < 0).any():
            raise SnapshotError("the restored snapshot's keys are not those of its events")
        return numbers

    def free(self, numbers: Int32s) -> None:
        self._table.free(numbers)

    @property
    def is_sparse(self) -> bool:
        """Whether few of the numbers are in use, and there are so many that their memory matters."""
        return self._table.size > max(FEW_KEYS, 4 * len(self))

    def renumbered(self) -> Int32s:
        """Renumbers the keys in use from 0; the i-th element is the former number of key i."""
        before = self._table.in_use
        self.name_of = self.name_of[before]
        self._table.keep(before)
        return before

    @property
    def listed(self) -> pa.RecordBatch:
        """The numbers in use and the names of their keys, for a snapshot."""
        numbers = self._table.in_use
        return pa.record_batch({"number": pa.array(numbers), "name": pa.array(self.name_of[numbers], pa.binary())})

    @staticmethod
    def of(listed: pa.RecordBatch, used: Int32s) -> KeyNumbers:
        """The KeyNumbers that `listed` was taken from. `used` are the numbers, ascending, of the keys that have
        something open.

        Raises:
            SnapshotError: other numbers are listed. This is known before there is room for as many names.
        """
        names, numbers = listed.column("name").cast(pa.large_binary()), listed.column("number").to_numpy()
        if names.null_count or len(names.unique()) < len(names) or not np.array_equal(np.sort(numbers), used):
            raise SnapshotError("the snapshot's keys are not those of its partial matches")
        restored = KeyNumbers()
        restored._table.take_over(numbers.astype(np.int32), siphash(*values_and_bounds(names), restored._secret))
        restored._make_room()
        restored.name_of[numbers] = names.to_pylist()
        return restored

    def _make_room(self) -> None:
        """Makes room for the names of all numbers."""
        if (size := self._table.size) > (before := len(self.name_of)):
            self.name_of = np.concatenate([self.name_of, np.empty(2 * size - before, object)])

    def _hashes(self, keys: Sequence[pa.Array], length: int) -> Words:
        """The hashes of the names. Without a key all rows have the empty one."""
        if keys:
            return row_hashes(keys, length, self._secret)
        return siphash(np.empty(0, np.uint8), np.zeros(length + 1, np.int64), self._secret)
