"""Casts columns of rows to their types."""

from __future__ import annotations

import pyarrow as pa


def as_typed(type_: pa.DataType, column: pa.Array) -> pa.Array:
    """The column cast to this type. If it has the type, it is not cast: Arrow cannot cast lists of type null to their
    own type.
    """
    return column if column.type == type_ else column.cast(type_)
