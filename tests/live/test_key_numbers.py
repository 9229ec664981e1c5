"""Keys keep their numbers in a snapshot, whatever their columns; damaged ones are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.errors import SnapshotError
from cepheid.events.batch import Batch
from cepheid.events.identity import key_names
from cepheid.matchers.key_numbers import KeyNumbers

KEYS = {
    "no key": [],
    "one": [pa.array(["b", "a", None, "b"])],
    "two": [pa.array([1, 2, 1, 1]), pa.array(["", "x", "x", ""])],
}


def events(columns: list[pa.Array]) -> Batch:
    named = {f"_key{i}": column for i, column in enumerate(columns)}
    return Batch(pa.record_batch({"_time": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")), **named}))


@pytest.mark.parametrize("columns", KEYS.values(), ids=KEYS)
def test_a_snapshot(columns: list[pa.Array]) -> None:
    keys, batch = KeyNumbers(), events(columns)
    numbers = keys.numbers(batch)
    names = key_names(columns, 4)
    assert keys.number_of == dict(zip(names, numbers.tolist(), strict=True))
    restored = KeyNumbers.of(keys.listed, np.unique(numbers))
    assert restored.number_of == keys.number_of
    assert restored.known(columns, 4).tolist() == numbers.tolist()
    assert restored.numbers(batch).tolist() == numbers.tolist()


def test_freed_and_renumbered() -> None:
    keys, batch = KeyNumbers(), events(KEYS["one"])
    assert keys.numbers(batch).tolist() == [0, 1, 2, 0]
    keys.free(np.array([0], np.int32))
    with pytest.raises(SnapshotError, match="keys are not those of its events"):
        keys.known(KEYS["one"], 4)
    restored = KeyNumbers.of(keys.listed, np.array([1, 2], np.int32))
    assert restored.numbers(events([pa.array(["new", "a", None, "new"])])).tolist() == [0, 1, 2, 0]
    assert keys.renumbered().tolist() == [1, 2]
    assert keys.number_of == dict(zip(key_names([pa.array(["a", None])], 2), [0, 1], strict=True))


@pytest.mark.parametrize(
    ("numbers", "names"),
    [([0, 2], [b"a", b"b"]), ([0, 1], [b"a", b"a"]), ([0, 1], [b"a", None]), ([0, 0], [b"a", b"b"])],
    ids=["other numbers", "a key twice", "no name", "a number twice"],
)
def test_damaged(numbers: list[int], names: list[bytes | None]) -> None:
    listed = pa.record_batch({"number": pa.array(numbers, pa.int32()), "name": pa.array(names, pa.binary())})
    with pytest.raises(SnapshotError, match="not those of its partial matches"):
        KeyNumbers.of(listed, np.array([0, 1], np.int32))
