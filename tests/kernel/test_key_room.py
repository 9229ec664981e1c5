"""Room for the keys of a snapshot."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.errors import SnapshotError
from cepheid.kernel.key_room import room_for


def test_there_is_room_for_all_numbers() -> None:
    """A few keys may have great numbers, as others may have been there before."""
    assert [room_for(np.array(numbers, np.int32)) for numbers in ([], [0, 5, 3], [2**24 - 1])] == [0, 6, 2**24]
    assert room_for(np.arange(2**24, dtype=np.int32)[-(2**18 + 1) :]) == 2**24


def test_a_changed_number_is_refused_before_there_is_room_for_it() -> None:
    """A number of two billion would take all memory."""
    with pytest.raises(SnapshotError, match="the snapshot has the number 2,147,483,647 for one of 3 keys"):
        room_for(np.array([0, 2**31 - 1, 1], np.int64))
