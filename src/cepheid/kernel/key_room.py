"""Room for the keys of a snapshot, by their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.errors import SnapshotError

_FEW = 1 << 27
"""So much room is made for any number of keys: others may have been there before."""


def room_for(numbers: npt.NDArray[np.integer[Any]]) -> int:
    """How many keys there must be room for, if these numbers are in use.

    Raises:
        SnapshotError: a number is far greater than the keys explain; the room for it might be all the memory there is.
    """
    room = int(numbers.max(initial=-1)) + 1
    if room > max(_FEW, 64 * len(numbers)):
        raise SnapshotError(f"the snapshot has the number {room - 1:,} for one of {len(numbers):,} keys")
    return room
