"""The numbers by which a kernel knows keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import Batch
from cepheid.events.identity import canonical_bytes
from cepheid.kernel.arrays import Int32s

FEW_KEYS = 1024
"""The memory of this many keys does not matter."""
_FEW = 16
"""The names of so many events are looked up one by one."""


@dataclass
class KeyNumbers:
    """Numbers of the keys that have something open; a freed number is given to another key."""

    number_of: dict[bytes, int] = field(default_factory=dict)
    name_of: list[bytes] = field(default_factory=list)
    unused: list[int] = field(default_factory=list)

    def numbers(self, events: Batch) -> Int32s:
        """The number of each event's key and sub-key; one without a number gets a new one."""
        keys = [*events.keys, *events.sub_keys]
        if not keys:
            return np.full(len(events), self._number(b""), np.int32)
        names = canonical_bytes(keys, len(events))
        if len(events) <= _FEW:
            return np.array([self._number(name) for name in names.to_pylist()], np.int32)
        names = names.dictionary_encode()
        numbers: Int32s = np.array([self._number(name) for name in names.dictionary.to_pylist()], np.int32)
        places: Int32s = names.indices.to_numpy()
        return numbers[places]

    def known(self, key: Sequence[pa.Array], length: int) -> Int32s:
        """The number of each row's key; `key` has the key columns of `length` rows.

        Raises:
            SnapshotError: a key has no number, as a snapshot was restored whose keys are not those of its events.
        """
        if not key:
            return np.full(length, self.number_of.get(b"", 0), np.int32)
        names = canonical_bytes(key, length).dictionary_encode()
        each = [self.number_of.get(name) for name in names.dictionary.to_pylist()]
        if None in each:
            raise SnapshotError("the restored snapshot's keys are not those of its events")
        numbers: Int32s = np.array(each, np.int32)
        places: Int32s = names.indices.to_numpy()
        return numbers[places]

    def free(self, numbers: Int32s) -> None:
        for number in numbers.tolist():
            del self.number_of[self.name_of[number]]
            self.name_of[number] = b""
            self.unused.append(number)

    @property
    def is_sparse(self) -> bool:
        """Whether few of the numbers are in use, and there are so many that their memory matters."""
        return len(self.name_of) > max(FEW_KEYS, 4 * len(self.number_of))

    def renumbered(self) -> Int32s:
        """Renumbers the keys in use from 0; the i-th element is the former number of key i."""
        before = np.array([*self.number_of.values()], np.int32)
        self.name_of, self.unused = [*self.number_of], []
        self.number_of = {name: number for number, name in enumerate(self.name_of)}
        return before

    @property
    def listed(self) -> pa.RecordBatch:
        """The numbers in use and the names of their keys, for a snapshot."""
        numbers = pa.array(self.number_of.values(), pa.int32())
        return pa.record_batch({"number": numbers, "name": pa.array(self.number_of, pa.binary())})

    @staticmethod
    def of(listed: pa.RecordBatch, used: Int32s) -> KeyNumbers:
        """The KeyNumbers that `listed` was taken from. `used` are the numbers, ascending, of the keys that have
        something open.

        Raises:
            SnapshotError: other numbers are listed. This is known before there is room for as many names.
        """
        names, numbers = listed.column("name").to_pylist(), listed.column("number").to_pylist()
        number_of = dict(zip(names, numbers, strict=True))
        taken = set(number_of.values())
        if sorted(number_of.values()) != used.tolist():
            raise SnapshotError("the snapshot's keys are not those of its partial matches")
        name_of = [b""] * (max(taken, default=-1) + 1)
        for name, number in number_of.items():
            name_of[number] = name
        unused = [number for number in range(len(name_of)) if number not in taken]
        return KeyNumbers(number_of, name_of, unused)

    def _number(self, name: bytes) -> int:
        number = self.number_of.get(name)
        if number is not None:
            return number
        if self.unused:
            number = self.unused.pop()
            self.name_of[number] = name
        else:
            number = len(self.name_of)
            self.name_of.append(name)
        self.number_of[name] = number
        return number
