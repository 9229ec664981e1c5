"""A stream of which one key has most events, with a copy of that key and without. The key's work is that of its open
partial matches: `price + a.price > 599` visits thousands of them at each event that may end one. The same events are
processed twice. The figures are those that `progress` reports of tasks: matching and state.

python benchmarks/hot_keys.py --rows 20000    # the size of a micro-batch
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import machine, print_table
from streaming import each_progress, stream_of

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session
from cepheid.hosts.spark.stream.copies.assignment import Decision
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.load.hot_keys import key_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cepheid.hosts.spark.stream.progress import Progress

BATCHES, COPIED_AFTER = 12, 3
"""Micro-batches, and the one after which the hot key gets its copy."""
SHARDS, STANDBYS = 4, 1
PATTERN = (
    Pattern.begin("a")
    .where("phase = 0")
    .followed_by_any("b")
    .where("phase = 1 AND price + a.price > 599")
    .within("30 seconds")
)
OPTIONS: dict[str, Any] = {"key": "device", "time": "at", "sequence": "id", "columns": ["id"], "lateness": "1 second"}
SPAN = 10_000_000
"""The event time of a micro-batch, in microseconds."""


def write_batches(folder: Path, rows: int) -> None:
    """Writes one file per micro-batch: nine of ten events have one key; few of its pairs match."""
    folder.mkdir()
    drawn = np.random.default_rng(7)
    for batch in range(BATCHES):
        at = batch * SPAN + np.sort(drawn.integers(0, SPAN, rows))
        device = np.where(drawn.random(rows) < 0.9, 0, drawn.integers(1, 1000, rows))
        columns = {
            "id": pa.array(np.arange(rows) + batch * rows),
            "device": pa.array(device),
            "at": pa.array(at + 1_700_000_000_000_000, pa.timestamp("us", "UTC")),
            "phase": pa.array(drawn.integers(0, 8, rows)),
            "price": pa.array(100 + 199.9 * drawn.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{batch:05}.parquet")


def progress_with(spark: SparkSession, events: Path, folder: Path, *, copies: int) -> list[Progress]:
    """The progress of each micro-batch; after some of them the hot key gets so many copies."""
    checkpoint = folder / "checkpoint"
    stream = stream_of(spark, events)
    rows = detect(stream, PATTERN, shards=SHARDS, standbys=STANDBYS, checkpoint=checkpoint, **OPTIONS)
    copies_folder = CopiesFolder(str(checkpoint))

    def decide(batch: Any, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        if number == COPIED_AFTER and copies:
            for shard in range(SHARDS):  # in one of them the key is
                copies_folder.decide(Decision(0, shard, key_hash((0,)), tuple(range(copies))))

    writer = rows.writeStream.foreachBatch(decide).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [one for one in each_progress(query) if one.together.events]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--picture", type=Path, help="Write the load of the tasks over time here, as SVG.")
    asked = parser.parse_args()
    spark = local_session("hot keys", settings={"spark.sql.shuffle.partitions": "4"}, time_zone="UTC")
    with tempfile.TemporaryDirectory() as place:
        write_batches(Path(place) / "events", asked.rows)
        without = progress_with(spark, Path(place) / "events", Path(place) / "without", copies=0)
        copied = progress_with(spark, Path(place) / "events", Path(place) / "copied", copies=1)
    print(machine())
    rows = []
    for name, before in (("slowest task", 0), ("all tasks", 1)):
        figures = [[_seconds(one)[before] for one in each[COPIED_AFTER + 5 :]] for each in (without, copied)]
        one_place, divided = map(statistics.median, figures)
        rows.append((name, f"{one_place:.2f} s", f"{divided:.2f} s", f"{divided / one_place:.2f}"))
    print_table("Matching and state, a micro-batch", ("", "without", "one copy", "ratio"), rows)
    if asked.picture is not None:
        asked.picture.write_text(picture([_tasks(one) for one in copied]), "utf-8")


def _seconds(one: Progress) -> tuple[float, float]:
    together = one.together
    return one.slowest_task.total_seconds(), (together.matching + together.state).total_seconds()


def picture(tasks: list[list[float]]) -> str:
    """The matching and state time of each task over the micro-batches, in seconds, as SVG."""
    left, right, top, bottom = 56, 600, 30, 220
    most = max(map(max, tasks))
    step = (right - left) / max(1, len(tasks) - 1)
    lines = []
    for task, colour in enumerate(("#c0392b", "#2471a3", "#7d8a97", "#b7c0c8")):
        heights = [bottom - (bottom - top) * one[task] / most for one in tasks]
        points = " ".join(f"{left + number * step:.0f},{height:.0f}" for number, height in enumerate(heights))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if min(heights) < bottom - (bottom - top) / 5:
            lines.append(f'<text x="{right + 6}" y="{heights[-1] + 4:.0f}" fill="{colour}">task {task + 1}</text>')
    at = left + (COPIED_AFTER + 1) * step
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 260">',
            '<g font-family="sans-serif" font-size="12">',
            '<rect width="660" height="260" fill="white"/>',
            f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="#444"/>',
            f'<line x1="{left}" y1="{top}" x2="{left}" y2="{bottom}" stroke="#444"/>',
            f'<line x1="{at:.0f}" y1="{top}" x2="{at:.0f}" y2="{bottom}" stroke="#999" stroke-dasharray="4 4"/>',
            f'<text x="{at + 4:.0f}" y="{top + 12}" fill="#444">the hot key gets a copy</text>',
            f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{most:.1f} s</text>',
            f'<text x="{left - 6}" y="{bottom}" text-anchor="end">0</text>',
            f'<text x="{left}" y="16">matching and state of each task, a micro-batch</text>',
            f'<text x="{right}" y="{bottom + 20}" text-anchor="end">micro-batches</text>',
            *lines,
            "</g></svg>\n",
        ]
    )


def _tasks(one: Progress) -> list[float]:
    """Seconds of each partition, by its number."""
    found = [0.0] * 4
    for pattern in one.patterns.values():
        for shard in pattern.shards:
            if shard.partition is not None:
                found[shard.partition] += shard.useful.total_seconds()
    return found


if __name__ == "__main__":
    main()
