"""The compiled table of keys gives the numbers that a dictionary gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cepheid.kernel.key_table import _AT_ONCE, KeyTable


def hashes(keys: list[int], *, alike: bool) -> np.ndarray:
    """A hash per key. If `alike`, all have the same place in the table, and half of the word is equal in many."""
    both = [(0, key) if alike else (key * 0x9E3779B97F4A7C15 % (1 << 64), key % 2) for key in keys]
    return np.array(both, np.uint64).reshape(-1, 2)


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=6), st.booleans(), st.data())
def test_any_calls(calls: list[list[int]], alike: bool, data: st.DataObject) -> None:  # noqa: FBT001
    """Keys get the number that was freed last, otherwise the next one; those that stay are numbered anew, in their
    order.
    """
    table, known, freed = KeyTable(), dict[int, int](), list[int]()
    for keys in calls:
        new = [place for place, key in enumerate(keys) if key not in known and key not in keys[:place]]
        for place in new:
            known[keys[place]] = freed.pop() if freed else len(known)
        found, first = table.numbers_and_new(hashes(keys, alike=alike))
        assert (found.tolist(), first.tolist()) == ([known[key] for key in keys], new)
        if data.draw(st.booleans()):
            leave = data.draw(st.lists(st.sampled_from([*known.values()]), unique=True)) if known else []
            table.free(np.array(leave, np.int32))
            known = {key: number for key, number in known.items() if number not in leave}
            freed += leave
        if data.draw(st.booleans()):
            kept = sorted(data.draw(st.sets(st.sampled_from([*known.values()])))) if known else []
            table.keep(np.array(kept, np.int32))
            named = {number: key for key, number in known.items()}
            known, freed = {named[number]: place for place, number in enumerate(kept)}, []
        _has(table, known, len(known) + len(freed), alike=alike)
        other = KeyTable()
        other.take_over(np.array([*known.values()], np.int32), hashes([*known], alike=alike))
        _has(other, known, 1 + max(known.values(), default=-1), alike=alike)


def test_room_for_keys_not_for_events() -> None:
    """Many events of few keys need little memory, and have the numbers that they have one by one."""
    many = hashes([number % 40 for number in range(3 * _AT_ONCE)], alike=False)
    table = KeyTable()
    numbers, new = table.numbers_and_new(many)
    assert numbers.tolist() == [number % 40 for number in range(3 * _AT_ONCE)]
    assert new.tolist() == [*range(40)]
    assert table._places.nbytes < 2 * many.nbytes  # noqa: SLF001
    later = hashes([*range(40), *range(100, 100 + 2 * _AT_ONCE)], alike=False)
    numbers, new = table.numbers_and_new(later)
    assert numbers.tolist() == [*range(len(later))]
    assert new.tolist() == [*range(40, len(later))]


def _has(table: KeyTable, known: dict[int, int], size: int, *, alike: bool) -> None:
    assert (len(table), table.size) == (len(known), size)
    assert table.in_use.tolist() == sorted(known.values())
    assert table.find(hashes([*range(41)], alike=alike)).tolist() == [known.get(key, -1) for key in range(41)]
