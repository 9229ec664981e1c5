"""The compiled table of keys gives the numbers that a dictionary gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cepheid.kernel.key_table import KeyTable


def hashes(keys: list[int], *, alike: bool) -> np.ndarray:
    """A hash per key. If `alike`, all have the same place in the table, and half of the word is equal in many."""
    both = [(0, key) if alike else (key * 0x9E3779B97F4A7C15 % (1 << 64), key % 2) for key in keys]
    return np.array(both, np.uint64).reshape(-1, 2)


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=6), st.booleans(), st.data())
def test_any_calls(calls: list[list[int]], alike: bool, data: st.DataObject) -> None:  # noqa: FBT001
    """Numbers ascend as keys come; those that stay are numbered anew, in their order."""
    table, known = KeyTable(), dict[int, int]()
    for keys in calls:
        found = table.numbers(hashes(keys, alike=alike)).tolist()
        assert found == [known.setdefault(key, len(known)) for key in keys]
        assert len(table) == len(known)
        if data.draw(st.booleans()):
            kept = sorted(data.draw(st.sets(st.sampled_from([*known.values()])))) if known else []
            table.keep(np.array(kept, np.int32))
            named = {number: key for key, number in known.items()}
            known = {named[number]: place for place, number in enumerate(kept)}
