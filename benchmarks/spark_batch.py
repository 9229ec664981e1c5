"""`detect` on Spark, end to end, compared with the shuffle and sort that any solution on Spark needs."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from events import make_events
from measuring import alternating, machine, print_table, rows_wanted
from patterns import PATTERNS

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = (1_000, 100_000)
OUTPUTS: dict[str, dict[str, Any]] = {
    "all columns": {},
    "measures": {"columns": [], "measures": {"price": "first(b.price)"}},
}


def shuffle_and_sort(events: DataFrame) -> None:
    run(events.repartition("device").sortWithinPartitions("device", "at"))


def find(events: DataFrame, pattern: Pattern, output: dict[str, Any]) -> None:
    run(detect(events, pattern, key="device", time="at", **output))


def run(rows: DataFrame) -> None:
    """Computes all rows and discards them."""
    rows.write.format("noop").mode("overwrite").save()


def widened(events: pa.Table) -> pa.Table:
    """The events with fifteen more columns, of which eight are texts."""
    random = np.random.default_rng(len(events))
    for number in range(8):
        texts = pa.array([f"text-{number}-{value:05d}" for value in range(5_000)])
        column = texts.take(pa.array(random.integers(0, len(texts), len(events))))
        events = events.append_column(f"text{number}", column)
    for number in range(7):
        events = events.append_column(f"number{number}", pa.array(random.random(len(events))))
    return events


def measure(events: DataFrame, rows: int, keys: int) -> None:
    works = {"shuffle and sort": partial(shuffle_and_sort, events)}
    for name, pattern in PATTERNS.items():
        works |= {f"{name}, {what}": partial(find, events, pattern, output) for what, output in OUTPUTS.items()}
    for work in works.values():  # warms up Spark's own code, and the workers load the kernel
        work()
    seconds = alternating(works)
    base = seconds["shuffle and sort"]
    lines = [[name, taken, rows / taken / 1e6, taken / base] for name, taken in seconds.items()]
    head = ["", "seconds", "M events/s", "times shuffle and sort"]
    columns = len(events.columns)
    print_table(f"Spark batch, {rows:,} events of {columns} columns, {keys:,} keys", head, lines)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=10_000_000)
    print(machine())
    session = local_session("benchmark", time_zone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        narrow = [(make_events(rows, keys, ordered=False), keys) for keys in KEYS]
        wide = widened(make_events(rows // 10, KEYS[0], ordered=False)), KEYS[0]
        for number, (events, keys) in enumerate([*narrow, wide]):
            path = Path(folder) / f"{number}.parquet"
            pq.write_table(events, path, row_group_size=len(events) // 16)
            measure(session.read.parquet(str(path)), len(events), keys)
    session.stop()


if __name__ == "__main__":
    main()
