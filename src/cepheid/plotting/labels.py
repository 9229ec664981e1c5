"""Values of columns as labels of panels and lanes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import python_values
from cepheid.plotting.clock import Clock, Ints


def labels_of(table: pa.Table, names: Sequence[str], clock: Clock) -> tuple[Ints, list[str]]:
    """(rows,) the number of the label that the values of these columns make in each row, and the labels."""
    if not names:
        return np.zeros(table.num_rows, np.int64), [""]
    codes, words = np.zeros(table.num_rows, np.int64), [""]
    for name in names:
        column = pc.dictionary_encode(plain(table.column(name)), null_encoding="encode").combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        values = [clock.word(value) for value in python_values(column.dictionary)]
        both, codes = np.unique(codes * len(values) + np.asarray(column.indices, np.int64), return_inverse=True)
        words = [
            " · ".join(filter(None, (words[number // len(values)], values[number % len(values)])))
            for number in both.tolist()
        ]
    return codes, words


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionaries."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def in_natural_order(text: str) -> tuple[int, float, str]:
    """Sorts numbers by value, before texts."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)
