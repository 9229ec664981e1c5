"""`detect` on Spark, end to end, compared with the shuffle and sort that any solution on Spark needs."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from events import make_events
from measuring import alternating, machine, print_table, rows_wanted
from patterns import PATTERNS

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = (1_000, 100_000)
COLUMNS = ["device", "at", "kind", "phase", "price"]


def shuffle_and_sort(events: DataFrame) -> None:
    run(events.repartition("device").sortWithinPartitions("device", "at"))


def find(events: DataFrame, pattern: Pattern, columns: list[str]) -> None:
    run(detect(events, pattern, key="device", time="at", columns=columns))


def run(rows: DataFrame) -> None:
    """Computes all rows and discards them."""
    rows.write.format("noop").mode("overwrite").save()


def measure(events: DataFrame, rows: int, keys: int) -> None:
    works = {"shuffle and sort": partial(shuffle_and_sort, events)}
    for name, pattern in PATTERNS.items():
        works[name] = partial(find, events, pattern, COLUMNS)
    works["across events, no event columns"] = partial(find, events, PATTERNS["across events"], [])
    for work in works.values():  # warms up Spark's own code, and the workers load the kernel
        work()
    seconds = alternating(works)
    base = seconds["shuffle and sort"]
    lines = [[name, taken, rows / taken / 1e6, taken / base] for name, taken in seconds.items()]
    head = ["", "seconds", "M events/s", "times shuffle and sort"]
    print_table(f"Spark batch, {rows:,} events, {keys:,} keys", head, lines)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=10_000_000)
    print(machine())
    session = local_session("benchmark", time_zone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        for keys in KEYS:
            path = Path(folder) / f"{keys}.parquet"
            pq.write_table(make_events(rows, keys, ordered=False), path, row_group_size=1 << 20)
            measure(session.read.parquet(str(path)), rows, keys)
    session.stop()


if __name__ == "__main__":
    main()
