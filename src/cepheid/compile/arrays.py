"""What the arrays for all kinds of pattern have in common."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]

Records: TypeAlias = npt.NDArray[Any]
"""A structured array; its dtype is named beside it. Rows are read as `array[i].field`."""

NONE = -1
INSTRUCTION = np.dtype([("op", np.int64), ("a", np.int64), ("b", np.int64)])


def signed(mask: int) -> int:
    """A 64-bit mask as the signed integer with the same bits."""
    return mask - (1 << 64) if mask >> 63 else mask
