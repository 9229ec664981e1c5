"""`detect` on a stream. The time of a micro-batch is compared with that of three other queries: the same without
matchers; the same in which each shard only writes one value of state; and the same pattern as a Spark user would write
it by hand, with a matcher for each key.

python benchmarks/spark_stream.py --rows 100000    # the size of a micro-batch
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import machine, print_table, rows_wanted
from per_key import detect_per_key
from streaming import batch_times, find_benchmarks, packed, run_to_end, stream_of, value_written

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session
from cepheid.hosts.spark.stream.ledger import SHARD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEYS = (10_000, 100_000)
BATCHES = 12
FEW = 5
"""The number of micro-batches for the query with a matcher for each key, as these take minutes."""
PHASES = {"a third of the events relevant": 6, "3 % relevant": 64}
"""The number of phases. An event has one of them, and two of them matter to the pattern."""
WARM_UP = 3
"""The number of first micro-batches whose time does not count."""
SPAN = 10_000_000
"""The event time of a micro-batch, in microseconds."""
LATENESS = "1 second"
PATTERN = (
    Pattern.begin("first")
    .where("phase = 0")
    .followed_by("second")
    .where("phase = 1 AND price > first.price")
    .within("30 seconds")
)
OPTIONS: dict[str, Any] = {"key": "device", "time": "at", "sequence": "id", "columns": ["id"], "lateness": LATENESS}


def write_batches(folder: Path, rows: int, keys: int, phases: int) -> None:
    """Writes one file per micro-batch. A share of 1 / phases of the events may begin a match, and the same share may
    end one.
    """
    random = np.random.default_rng(rows + keys)
    folder.mkdir()
    for number in range(BATCHES):
        at = 1_767_225_600_000_000 + number * SPAN + np.sort(random.integers(0, SPAN, rows))
        events = pa.table(
            {
                "id": np.arange(number * rows, (number + 1) * rows),
                "device": random.integers(0, keys, rows),
                "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
                "phase": random.integers(0, phases, rows),
                "price": random.uniform(50, 150, rows),
            }
        )
        pq.write_table(events, folder / f"{number:03}.parquet")


def nothing_matched(events: DataFrame) -> DataFrame:
    """The same query with lifting, watermark, packing and shuffle, and a stateless function that returns no rows."""
    shards = packed(events, PATTERN, **OPTIONS)

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 0)

    return shards.repartition(SHARD).mapInArrow(nothing, shards.schema)


def measure(session: SparkSession, rows: int, keys: int, phases: int, rounds: int = 3) -> dict[str, float]:
    """The median time of a micro-batch of each query, in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_batches(folder / "events", rows, keys, phases)
        works: dict[str, Callable[[DataFrame], DataFrame]] = {
            "detect": lambda events: detect(events, PATTERN, **OPTIONS),
            "nothing": nothing_matched,
            "state": lambda events: value_written(events, PATTERN, **OPTIONS),
        }
        times: dict[str, list[float]] = {work: [] for work in works}
        for number in range(rounds):
            for work, make in works.items():
                query = run_to_end(make(stream_of(session, folder / "events")), folder / f"{work} {number}")
                times[work].append(batch_time(query))
    return {work: statistics.median(each) for work, each in times.items()}


def measure_per_key(session: SparkSession, rows: int, keys: int) -> tuple[float, float]:
    """The median time of a micro-batch, in milliseconds: with `detect`, and with a matcher for each key."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_batches(folder / "events", rows, keys, PHASES["a third of the events relevant"])
        for file in sorted((folder / "events").iterdir())[FEW:]:
            file.unlink()
        ours = run_to_end(detect(stream_of(session, folder / "events"), PATTERN, **OPTIONS), folder / "ours")
        per_key = run_to_end(detect_per_key(stream_of(session, folder / "events"), LATENESS), folder / "per key")
    return batch_time(ours), batch_time(per_key)


def batch_time(query: StreamingQuery) -> float:
    return statistics.median(batch_times(query)[WARM_UP:])


def main() -> None:
    wanted = rows_wanted(__doc__ or "", default=1_000_000)
    print(machine())
    find_benchmarks()
    session = local_session("benchmark", time_zone="UTC", settings={"spark.sql.shuffle.partitions": "2"})
    sizes = [(rows, keys) for rows in sorted({min(100_000, wanted), wanted}) for keys in KEYS]
    head = [
        "events",
        "keys",
        "nothing, ms",
        "a value a shard, ms",
        "detect, ms",
        "detect / nothing",
        "detect / a value",
    ]
    for title, phases in PHASES.items():
        lines: list[list[object]] = []
        for size in sizes:
            found, nothing, state = measure(session, *size, phases).values()
            lines.append([*size, nothing, state, found, found / nothing, found / state])
        print_table(f"Streams, a micro-batch, {title}", head, lines)
    lines = []
    for size in sizes:
        ours, per_key = measure_per_key(session, *size)
        lines.append([*size, ours, per_key, per_key / ours])
    print_table(
        "Streams, beside a matcher for each key", ["events", "keys", "detect, ms", "per key, ms", "ratio"], lines
    )
    session.stop()


if __name__ == "__main__":
    main()
