"""A pattern without key on Spark, tied by two columns: in one task, in tiers, and as a self join in SQL."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import alternating, machine, print_table, rows_wanted, timed

from cepheid import Limits, Pattern, Report, detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALUES, PER_SECOND, SECOND = 1_000, 10, 1_000_000
COLUMNS = ["id", "at", "x", "y"]
TIED = (
    Pattern.begin("a")
    .where("kind = 'A'")
    .followed_by_any("b")
    .where("kind = 'B' AND x = a.x")
    .followed_by_any("c")
    .where("kind = 'C' AND y = b.y")
    .within("10 minutes")
)
SAME = (
    Pattern.begin("a")
    .where("kind = 'A'")
    .followed_by_any("b")
    .where("kind = 'B' AND x = a.x")
    .followed_by_any("c")
    .where("kind = 'C' AND x = b.x")
    .within("10 minutes")
)
JOIN = """
    SELECT a.id AS a_id, a.at AS a_at, a.x, a.y AS a_y, b.id AS b_id, b.at AS b_at, b.y, c.id AS c_id, c.at AS c_at
    FROM events a JOIN events b ON b.x = a.x AND b.id > a.id AND b.at < a.at + INTERVAL 10 MINUTES
    JOIN events c ON c.{column} = b.{column} AND c.id > b.id AND c.at < a.at + INTERVAL 10 MINUTES
    WHERE a.kind = 'A' AND b.kind = 'B' AND c.kind = 'C'
"""


def make_events(rows: int) -> pa.Table:
    """Ten events per second, of three kinds, with one of 1,000 values in each of two columns."""
    random = np.random.default_rng(1)
    at = np.arange(rows) * (SECOND // PER_SECOND)
    return pa.table(
        {
            "id": np.arange(rows),
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "kind": pa.array(np.array(["A", "B", "C"])[random.integers(0, 3, rows)]),
            "x": random.integers(0, VALUES, rows),
            "y": random.integers(0, VALUES, rows),
        }
    )


def find(events: DataFrame, pattern: Pattern, limits: Limits | None = None, report: Report | None = None) -> None:
    run(detect(events, pattern, time="at", sequence="id", columns=COLUMNS, report=report, limits=limits))


def run(rows: DataFrame) -> None:
    """Computes all rows and discards them."""
    rows.write.format("noop").mode("overwrite").save()


def measure(events: DataFrame, rows: int, pattern: Pattern, column: str) -> None:
    joined = events.sparkSession.sql(JOIN.format(column=column))
    report = Report()
    find(events, pattern, report=report)  # warms up Spark's own code, and the workers load the kernel
    assert report.counts.matches == joined.count()
    how = "sub-key" if column == "x" else "tiers"
    seconds = alternating({how: partial(find, events, pattern), "self join in SQL": partial(run, joined)})
    one_task, _ = timed(partial(find, events, pattern, Limits(on_limit="drop")))  # these limits need all events
    seconds["one task"] = one_task
    lines = [[name, taken, rows / taken / 1e6] for name, taken in seconds.items()]
    title = f"Spark batch without key, {rows:,} events, {report.counts.matches:,} matches, second tie by {column}"
    print_table(title, ["", "seconds", "M events/s"], lines)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=1_000_000)
    print(machine())
    session = local_session("benchmark", time_zone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pq.write_table(make_events(rows), path, row_group_size=1 << 17)
        events = session.read.parquet(str(path))
        events.createOrReplaceTempView("events")
        measure(events, rows, TIED, "y")
        measure(events, rows, SAME, "x")
    session.stop()


if __name__ == "__main__":
    main()
