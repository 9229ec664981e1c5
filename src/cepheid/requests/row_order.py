"""The order of the rows in a table, as an argument."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal


class RowOrder(Enum):
    """The type of `ROW_ORDER`."""

    ROW_ORDER = "row order"

    def __repr__(self) -> str:
        return "cepheid.ROW_ORDER"


ROW_ORDER: Final[Literal[RowOrder.ROW_ORDER]] = RowOrder.ROW_ORDER
"""As `sequence` of a table in process: events of equal time are in the order of their rows."""
