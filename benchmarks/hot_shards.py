"""A stream with hot shards and no hot key, before and after it is rebalanced as `progress` advises.

No key has more than a few percent of the events, but hundreds of open partial matches for each key are visited at each
event that may end one. In one case the hot shards are all in one partition, in the other the hot keys are all in one
shard. The query processes some micro-batches, and stops. Then the same further events are processed twice: from the
checkpoint as it is, and from a copy that is rebalanced. The figures are those that `progress` reports.

python benchmarks/hot_shards.py --case keys --rows 50000    # the size of a micro-batch
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hot_keys import OPTIONS, PATTERN, SPAN
from measuring import machine, print_table, timed
from streaming import each_progress, run_to_end, stream_of

from cepheid import detect
from cepheid.hosts.spark.session import local_session
from cepheid.hosts.spark.stream.placement import murmur3
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cepheid.hosts.spark.stream.load.advice import Advice
    from cepheid.hosts.spark.stream.progress import Progress


class Case(NamedTuple):
    """Which shards of a query on two partitions are hot."""

    shards: int
    hot: tuple[int, ...]
    """The shards that have the hot keys. They are in one partition."""
    title: str


CASES = {
    "shards": Case(16, (2, 4, 10, 12), "Four hot shards of 16, in one of two partitions"),
    "keys": Case(4, (2,), "All hot keys in one of four shards"),
}
PARTITIONS = 2
HOT_KEYS, OTHER_KEYS = 40, 400
HOT = 0.85
"""The part of the events that the hot keys have together."""
BEFORE, AFTER, WARM_UP = 5, 6, 2
"""Micro-batches before the query stops, those after it has started again, and those of them that are not counted."""


def keys_of(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The hot keys, which fall to the case's hot shards, and the others, which fall to any."""
    keys = np.arange(20_000, dtype=np.int32)
    is_hot = np.isin(murmur3(keys) % case.shards, case.hot)
    return keys[is_hot][:HOT_KEYS], keys[~is_hot][:OTHER_KEYS]


def write_batches(folder: Path, case: Case, batches: range, rows: int) -> None:
    """Writes one file per micro-batch."""
    folder.mkdir(exist_ok=True)
    hot, others = keys_of(case)
    for batch in batches:
        drawn = np.random.default_rng(batch)
        is_hot = drawn.random(rows) < HOT
        at = batch * SPAN + np.sort(drawn.integers(0, SPAN, rows))
        columns = {
            "id": pa.array(np.arange(rows) + batch * rows),
            "device": pa.array(np.where(is_hot, drawn.choice(hot, rows), drawn.choice(others, rows))),
            "at": pa.array(at + 1_700_000_000_000_000, pa.timestamp("us", "UTC")),
            "phase": pa.array(drawn.integers(0, 2, rows)),
            "price": pa.array(100 + 199.9 * drawn.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{batch:05}.parquet")


def go_on(spark: SparkSession, events: Path, checkpoint: Path, shards: int) -> list[Progress]:
    """The progress of each micro-batch with events, to the last of them."""
    rows = detect(stream_of(spark, events), PATTERN, shards=shards, **OPTIONS)
    return [one for one in each_progress(run_to_end(rows, checkpoint)) if one.together.events]


def medians(each: Sequence[Progress]) -> dict[str, float]:
    """Of the micro-batches after the warm-up, in seconds."""
    figures = {
        "slowest task, matching and state": [one.slowest_task for one in each[WARM_UP:]],
        "all tasks, matching and state": [one.together.matching + one.together.state for one in each[WARM_UP:]],
        "the whole micro-batch": [one.total for one in each[WARM_UP:]],
    }
    return {name: statistics.median(one.total_seconds() for one in times) for name, times in figures.items()}


def advice_of(each: Sequence[Progress]) -> Advice:
    """What is advised for the rate at which the query processed its events."""
    together = reduce(lambda so_far, one: one.after(so_far), each[1:])
    advice = together.advice(together.together.events / together.total.total_seconds())
    assert advice is not None
    return advice


def measured(spark: SparkSession, case: Case, place: Path, rows: int) -> Mapping[str, Mapping[str, float]]:
    """The medians of both runs, by the run's name; what was done is printed."""
    events, checkpoint, unchanged = (place / name for name in ("events", "checkpoint", "unchanged"))
    write_batches(events, case, range(BEFORE), rows)
    advice = advice_of(go_on(spark, events, checkpoint, case.shards))
    print(f"advice: {advice}")
    shutil.copytree(checkpoint, unchanged)
    shards = None if advice.shards == case.shards else advice.shards
    seconds, done = timed(lambda: rebalance(checkpoint, shards=shards, partitions=advice.partitions))
    opened = sum(one.open for one in done.patterns)
    print(f"rebalanced in {seconds:.1f} s, {opened:,} open: {PARTITIONS} → {done.partitions} partitions")
    write_batches(events, case, range(BEFORE, BEFORE + AFTER), rows)
    as_it_was = go_on(spark, events, unchanged, case.shards)
    rebalanced = go_on(spark, events, checkpoint, advice.shards)
    matches = [sum(one.together.matches for one in each) for each in (as_it_was, rebalanced)]
    assert matches[0] == matches[1], matches
    print(f"{matches[0]:,} matches in each; max ÷ mean of shards {_uneven(as_it_was)} and {_uneven(rebalanced)}")
    return {"as it was": medians(as_it_was), "rebalanced": medians(rebalanced)}


def _uneven(each: Sequence[Progress]) -> str:
    return f"{statistics.median(one.max_over_mean or 1.0 for one in each):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--case", choices=CASES, default="shards")
    asked = parser.parse_args()
    case = CASES[asked.case]
    settings = {"spark.sql.shuffle.partitions": str(PARTITIONS)}
    spark = local_session("hot shards", settings=settings, time_zone="UTC")
    print(machine())
    with tempfile.TemporaryDirectory() as place:
        found = measured(spark, case, Path(place), asked.rows)
    before, after = found.values()
    rows = [(name, f"{one:.2f} s", f"{after[name]:.2f} s", f"{after[name] / one:.2f}") for name, one in before.items()]
    print_table(f"{case.title}: a micro-batch of {asked.rows:,} events", ("", *found, "ratio"), rows)


if __name__ == "__main__":
    main()
