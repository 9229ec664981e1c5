"""Times that are written in a given format, as of strptime."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa

from cepheid.errors import SchemaError

_OF_DAY = frozenset("HIMSfgnpcXzZ")
"""Letters of a format that are about the time of day, or a zone."""


def has_time_of_day(written: str) -> bool:
    """Whether times in the format have a time of day; otherwise they are dates."""
    return not _OF_DAY.isdisjoint(re.findall(r"%-?([a-zA-Z])", written))


def times_of_texts(texts: pa.ChunkedArray, written: str) -> pa.ChunkedArray:
    """The times, NULL for texts in another format. With a zone in the format they are instants, in UTC.

    Raises:
        SchemaError: it is no format.
    """
    given = pa.table({"text": texts})
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", given)
        quoted = written.replace("'", "''")
        try:
            found = connection.sql(f"SELECT try_strptime(text, '{quoted}') AS time FROM given").to_arrow_table()  # noqa: S608
        except duckdb.Error as error:
            reason = str(error).splitlines()[0].partition(": ")[2] or str(error)
            message = f"time_format: {written!r} is no format of times, as '%d.%m.%Y %H:%M' is: {reason}"
            raise SchemaError(message) from error
    column: pa.ChunkedArray = found.column("time")
    return column
