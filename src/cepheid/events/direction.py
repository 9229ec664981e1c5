"""The direction in which a column of the sequence orders events of equal time.

A batch has it in the names of its columns, so that it is known wherever a batch goes: `_sequence0` is ascending with
NULL last, which is the order of a column that is given by its name alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

SEQUENCE_PREFIX = "_sequence"
_DESCENDING, _NULLS_FIRST = "d", "f"


@dataclass(frozen=True)
class Direction:
    """Whether great values come first, and whether NULL does. NaN is greater than all numbers."""

    descending: bool = False
    nulls_first: bool = False

    @classmethod
    def of(cls, name: str) -> Self:
        """The direction of a batch's column; those that are not of the sequence are ascending."""
        if not name.startswith(SEQUENCE_PREFIX):
            return cls()
        code = name.removeprefix(SEQUENCE_PREFIX).lstrip("0123456789")
        return cls(_DESCENDING in code, _NULLS_FIRST in code)

    def column(self, number: int) -> str:
        """The name of the batch's column with this number in the sequence."""
        code = _DESCENDING * self.descending + _NULLS_FIRST * self.nulls_first
        return f"{SEQUENCE_PREFIX}{number}{code}"

    @property
    def sql(self) -> str:
        """The direction as ORDER BY has it."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


BY_NAME = Direction()
"""The direction of a column that is given by its name alone."""
