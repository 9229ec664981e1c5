"""Converts lifted columns to the Python values that the definition of scripts takes."""

from __future__ import annotations

import pyarrow as pa

from cepheid.events.identity import as_integers
from cepheid.kernel.scripts.python_functions import Value


def script_values(column: pa.Array) -> list[Value]:
    """Values as scripts take them: decimals as scaled integers, times in microseconds, dates in days."""
    if pa.types.is_decimal(column.type):
        scale = column.type.scale
        return [None if value is None else int(value.scaleb(scale)) for value in column.to_pylist()]
    numbers = None if pa.types.is_boolean(column.type) else as_integers(column)
    if numbers is None:
        return list(column.to_pylist())
    present = column.is_valid().to_pylist()
    return [number if there else None for number, there in zip(numbers.tolist(), present, strict=True)]
