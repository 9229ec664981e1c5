"""What a plan needs of a host's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.lang.expression import Expression

Question: TypeAlias = tuple[Expression, str]
"""An expression over columns, as a tree and as SQL text that means the same."""


class SqlEngine(Protocol):
    """What the host can compute, and of which type that is."""

    def types_of(self, questions: Sequence[Question], columns: pa.Schema) -> Sequence[pa.DataType | Problem]:
        """The type of each expression over `columns`, in order, or why it cannot be computed.

        A problem's span is taken from the tree's nodes; without one the whole expression is meant. A part of an
        expression is asked before the whole, so one problem may be answered several times: the first is reported.
        """
