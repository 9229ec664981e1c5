"""What one would write for `A overlap B before C` within a window without Cepheid: SQL with range joins in DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa

SECOND = 1_000_000

# The pairs of a and b are materialized first. Otherwise DuckDB 2.0 joins b and c first, with a million times the rows.
_SQL = """
WITH e AS MATERIALIZED (SELECT id, type, epoch_us(start) AS s, epoch_us("end") AS t FROM events),
ab AS MATERIALIZED (
    SELECT a.id AS a, b.id AS b, a.s, b.t
    FROM (SELECT * FROM e WHERE type = 'A') a JOIN (SELECT * FROM e WHERE type = 'B') b
    ON a.s < b.s AND b.s < a.t AND a.t < b.t
)
SELECT ab.a, ab.b, c.id AS c FROM ab JOIN (SELECT * FROM e WHERE type = 'C') c
ON ab.t < c.s AND c.t - ab.s <= {window}
"""


def in_duckdb(events: pa.Table, window: int) -> pa.Table:
    """The ids a, b and c of the matches, computed on one core; `window` is in microseconds."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("events", events)
        return connection.sql(_SQL.format(window=window)).to_arrow_table()
