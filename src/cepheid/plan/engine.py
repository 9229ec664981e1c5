"""What a plan needs from a host's SQL engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.lang.expression import Expression

Question: TypeAlias = tuple[Expression, str]
"""An expression over columns, as a tree and as SQL text that means the same."""


class SqlEngine(Protocol):
    """Which expressions the host can compute, and their types."""

    @property
    def time_zone(self) -> str:
        """The zone of local times, where the request names none."""

    @property
    def computes_rows_alone(self) -> bool:
        """Whether the SQL of a row that closes an event is computed without the row that has opened it."""

    def types_of(self, questions: Sequence[Question], columns: pa.Schema) -> Sequence[pa.DataType | Problem]:
        """The type of each expression over `columns`, in order, or the reason why it cannot be computed.

        A problem's span is taken from the tree's nodes. A problem without a span is about the whole expression. A part
        of an expression comes before the whole, so several answers may have the same problem; only the first is
        reported.
        """
