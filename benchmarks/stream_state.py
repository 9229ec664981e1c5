"""The cost of a stream's state: its size for each open partial match, and the time of a micro-batch with few events
while few, and while very many keys have open partial matches.

python benchmarks/stream_state.py --rows 1000000    # keys with an open partial match
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import machine, print_table, rows_wanted
from streaming import batch_times, progress_of_all, run_to_end, stream_of

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_767_225_600_000_000
SECOND = 1_000_000
FEW = 10_000
"""The number of keys that have events in each micro-batch after the first."""
BATCHES = 16
WARM_UP = 4
PATTERN = (
    Pattern.begin("first")
    .where("phase = 0")
    .followed_by("second")
    .where("phase = 1 AND price > first.price")
    .within("1 day")
)
OPTIONS: dict[str, Any] = {"key": "device", "time": "at", "columns": ["id"], "lateness": "1 second"}


def write_events(folder: Path, keys: int) -> None:
    """Writes one file per micro-batch. In the first, each key opens a partial match. In the others a few keys have an
    event, which alternately completes the open ones and opens another one.
    """
    folder.mkdir()
    random = np.random.default_rng(keys)
    _write(folder, 0, np.arange(keys), 0, random)
    for number in range(1, BATCHES):
        _write(folder, number, random.choice(keys, FEW, replace=False), number % 2, random)


def _write(folder: Path, number: int, device: np.ndarray, phase: int, random: np.random.Generator) -> None:
    rows = len(device)
    at = START + number * 10 * SECOND + np.sort(random.integers(0, SECOND, rows))
    events = pa.table(
        {
            "id": np.arange(rows) + number * 10_000_000,
            "device": device,
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "phase": np.full(rows, phase),
            "price": random.uniform(50, 150, rows),
        }
    )
    pq.write_table(events, folder / f"{number:03}.parquet")


def measure(session: SparkSession, keys: int) -> list[object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_events(folder / "events", keys)
        query = run_to_end(detect(stream_of(session, folder / "events"), PATTERN, **OPTIONS), folder / "checkpoint")
        times = batch_times(query)
        open_ = progress_of_all(query).patterns["pattern"].open_partial_matches
        assert open_ is not None
        size = state_size(session, folder / "checkpoint")
    return [keys, open_, size / 2**20, size / open_, times[1], statistics.median(times[WARM_UP:]), max(times[WARM_UP:])]


def state_size(session: SparkSession, checkpoint: Path) -> int:
    """The bytes of the snapshots and logs of all shards, as Spark's state reader returns them."""
    store = session.read.format("statestore")
    snapshots = store.option("stateVarName", "snapshot").load(str(checkpoint))
    logs = store.option("stateVarName", "log").load(str(checkpoint))
    sizes = [
        snapshots.selectExpr("sum(octet_length(value.snapshot)) AS bytes"),
        logs.selectExpr("sum(octet_length(user_map_value.events)) AS bytes"),
    ]
    return sum(int(row["bytes"] or 0) for frame in sizes for row in frame.collect())


def main() -> None:
    keys = rows_wanted(__doc__ or "", default=1_000_000)
    print(machine())
    session = local_session("benchmark", time_zone="UTC", settings={"spark.sql.shuffle.partitions": "2"})
    sizes = sorted({FEW, min(100_000, keys), keys})
    lines = [measure(session, size) for size in sizes]
    head = ["keys", "open", "state, MB", "bytes an open one", "second batch, ms", "a batch, ms", "longest, ms"]
    print_table(f"Streams, {FEW:,} events a micro-batch", head, lines)
    session.stop()


if __name__ == "__main__":
    main()
