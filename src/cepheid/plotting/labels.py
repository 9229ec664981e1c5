"""Values of columns as labels of panels and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.events.batch import python_values
from cepheid.lang.numbered import with_numbers
from cepheid.plotting.clock import Clock, Ints


class Labels(NamedTuple):
    """What the values of some columns make in each row of several tables. Values that differ have labels that differ,
    also where they read alike.
    """

    of_rows: list[Ints]
    """For each table: (rows,) the number of each row's label."""
    words: list[str]


def labels_of(tables: Sequence[pa.Table], names: Sequence[str], clock: Clock) -> Labels:
    """The labels in the order of numbers, then of texts. The values of the first table decide the types.

    Raises:
        SchemaError: values of another table cannot have the type of the first one's.
    """
    if not names:
        return Labels([np.zeros(table.num_rows, np.int64) for table in tables], [""])
    columns = [_together([table.column(name) for table in tables], name) for name in names]
    codes, words = np.zeros(len(columns[0]), np.int64), [""]
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
        encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
        values = [clock.word(value) for value in python_values(encoded.dictionary)]
        both, codes = np.unique(codes * len(values) + np.asarray(encoded.indices, np.int64), return_inverse=True)
        words = [
            " · ".join(filter(None, (words[number // len(values)], values[number % len(values)])))
            for number in both.tolist()
        ]
    order = sorted(range(len(words)), key=lambda number: in_natural_order(words[number]))
    place = np.empty(len(words), np.int64)
    place[order] = np.arange(len(words))
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    return Labels(np.split(place[codes], ends), with_numbers([words[number] for number in order]))


def _together(columns: Sequence[pa.ChunkedArray], name: str) -> pa.ChunkedArray:
    """The values of all columns, in the type of the first one."""
    first, *others = map(plain, columns)
    try:
        return pa.chunked_array([*first.chunks, *(chunk for one in others for chunk in one.cast(first.type).chunks)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        types = " and ".join(str(one.type) for one in (first, *others))
        raise SchemaError(
            f"column {name!r} is of type {types} in the events and in the matches: cast one of them ({error})"
        ) from error


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionaries."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def in_natural_order(text: str) -> tuple[int, float, str]:
    """Sorts numbers by value, before texts."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)
