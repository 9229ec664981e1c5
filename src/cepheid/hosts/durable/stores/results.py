"""The results of users' queries. They are read in pieces, so that a query that never ends takes no more memory than a
result may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from cepheid.errors import StoreError

MOST_RESULT = 512 << 20
"""The most bytes of a result of a user's query, as an Arrow table. Those of the host itself have no bound."""
_PIECE = 1 << 20
"""Bytes."""
_MOST_ROWS = 10_000
"""In a piece."""


def column_names(description: Sequence[Sequence[Any]] | None) -> list[str]:
    """The names of a query's columns, from a cursor's description.

    Raises:
        StoreError: it was no query.
    """
    if description is None:
        raise StoreError("a query is one SELECT; this is something else")
    return [column[0] for column in description]


def table_of(
    fetch: Callable[[int], Sequence[Sequence[Any]]], names: Callable[[], Sequence[str]], most: int | None
) -> pa.Table:
    """The rows of a query as a table of at most `most` bytes. `fetch` returns at most so many more rows, `names` the
    columns after the first fetch.

    Raises:
        StoreError: the result is too large, or a column has values of several types.
    """
    pieces: list[pa.Table] = []
    size, count = 0, 1
    while (rows := fetch(count)) or not pieces:
        pieces.append(_piece(names(), rows))
        size += pieces[-1].nbytes
        _check_size(size, most)
        fits = _PIECE * max(len(rows), 1) // max(pieces[-1].nbytes, 1)
        count = max(1, min(2 * count, fits, _MOST_ROWS))
    return _joined(pieces)


def table_of_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], most: int | None) -> pa.Table:
    """The batches as a table of at most `most` bytes.

    Raises:
        StoreError: the result is too large.
    """
    taken, size = [], 0
    for batch in batches:
        taken.append(batch)
        size += batch.nbytes
        _check_size(size, most)
    return pa.Table.from_batches(taken, schema)


def _check_size(size: int, most: int | None) -> None:
    """
    Raises:
        StoreError: a result has more bytes than it may have.
    """
    if most is not None and size > most:
        raise StoreError(f"the result has more than {most:,} bytes: aggregate it, or ask for fewer rows by LIMIT")


def _piece(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    return pa.table([_array(name, [row[i] for row in rows]) for i, name in enumerate(names)], names=[*names])


def _joined(pieces: Sequence[pa.Table]) -> pa.Table:
    """The pieces as one table. A column whose type the first values do not show gets that of all values."""
    columns = []
    for i, name in enumerate(pieces[0].column_names):
        chunks = [chunk for piece in pieces for chunk in piece.column(i).chunks]
        if len({chunk.type for chunk in chunks}) > 1:
            chunks = [_array(name, [value for chunk in chunks for value in chunk.to_pylist()])]
        columns.append(pa.chunked_array(chunks))
    return pa.table(columns, names=pieces[0].column_names)


def _array(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except pa.ArrowException as error:
        raise StoreError(f"column {name!r} of the result has values of several types: cast it to one") from error
