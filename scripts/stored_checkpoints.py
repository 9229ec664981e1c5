"""Writes checkpoints in the current format, which the tests retain permanently. It is run once, when `store.FORMAT` or
`snapshot.FORMAT` is raised.

    python -m scripts.stored_checkpoints tests/stream/checkpoints

Each checkpoint is of a Spark query that has processed a part of its events. A second file has the rows that the query
emits from there. Spark's files contain the name of the query's folder: a placeholder replaces it here, and the tests
insert the name of their own folder. Formats that are no longer written must still be read, so older checkpoints are
never rewritten.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cepheid import detect
from cepheid.hosts.shards import store as stream_store
from cepheid.intervals import interval_pattern
from cepheid.matchers import snapshot
from scripts.stored_snapshots import (
    AFTER,
    BEFORE,
    INTERVALS,
    OCCURRENCES,
    PATTERN,
    SETS,
    WITH_CONDITIONS,
    events_of,
    with_ends,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "stages": ({"account": PATTERN, "sets": SETS}, {"time": "at", "sequence": "id"}),
    "occurrences": (
        {"recent": OCCURRENCES.taxonomy("what"), "conditions": WITH_CONDITIONS.taxonomy("what")},
        {"time": "at", "sequence": "id"},
    ),
    "intervals": (
        {
            "sure": interval_pattern(INTERVALS.format(0)).taxonomy("what"),
            "now": interval_pattern(INTERVALS.format(1)).taxonomy("what"),
        },
        {"time": ("at", "until")},
    ),
}
"""Two patterns of each kind, and their arguments. Of the two patterns of stages, one stores its partial matches one by
one, the other in sets.
"""

FORMATS = f"{stream_store.FORMAT}-{snapshot.FORMAT}"
"""The start of the files' names. Then comes the kind, `-even` if the shards have even numbers, and `-together` if the
patterns have the same shards (`placement`).
"""

_HERE = b"{folder}"
_OF_THE_FOLDER = ("sources", "_metadata")
"""The folders in which Spark's files contain the name of the query's folder."""


def go_on(spark: SparkSession, folder: Path, kind: str, **others: Any) -> list[dict[str, Any]]:
    """Continues from the checkpoint in the folder, with these `others` among the arguments of `detect`, and returns the
    rows of the later events as JSON values.
    """
    _write(folder, 2, AFTER, kind)
    return _run(spark, folder, kind, **others)


def pack(folder: Path, file: Path) -> None:
    """Writes the checkpoint in `folder` to a zip file. Spark's checksum files are left out, as the content changes."""
    checkpoint, here = folder / "checkpoint", str(folder).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(checkpoint.rglob("*")):
            if path.is_dir() or path.name.startswith("."):
                continue
            content = path.read_bytes()
            if any(part in _OF_THE_FOLDER for part in path.parts):
                content = content.replace(here, _HERE)
            assert here not in content, path
            packed.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), content, zipfile.ZIP_DEFLATED)


def unpack(file: Path, folder: Path) -> None:
    """Unpacks a checkpoint into `folder`, where a query can continue from it."""
    with zipfile.ZipFile(file) as packed:
        for name in packed.namelist():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = packed.read(name)
            if any(part in _OF_THE_FOLDER for part in path.parts):
                content = content.replace(_HERE, str(folder).encode())
            path.write_bytes(content)


def write(target: Path) -> None:
    """Writes the checkpoints, and the rows that the queries emit after them."""
    from cepheid.hosts.spark.session import local_session

    target.mkdir(exist_ok=True)
    spark = local_session("stored", settings={"spark.sql.shuffle.partitions": "1"}, time_zone="UTC")
    for kind in QUERIES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, rows in enumerate((BEFORE[:5], BEFORE[5:])):
                _write(folder, number, rows, kind)
                _run(spark, folder, kind)
            file = target / f"{FORMATS}-{kind}-even{'-together' if kind == 'intervals' else ''}"
            pack(folder, file.with_suffix(".zip"))
            shown = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in go_on(spark, folder, kind))
            file.with_suffix(".jsonl").write_text(shown, "utf-8")
    spark.stop()


def _write(folder: Path, number: int, rows: list[tuple[int, str, int, str, str]], kind: str) -> None:
    (folder / "events").mkdir(exist_ok=True)
    events = events_of(rows)
    pq.write_table(with_ends(events) if kind == "intervals" else events, folder / "events" / f"{number}.parquet")


def _run(spark: SparkSession, folder: Path, kind: str, **others: Any) -> list[dict[str, Any]]:
    """The rows that the query emits for the files that it has not read yet, sorted."""
    columns = spark.read.parquet(str(folder / "events")).schema
    events = spark.readStream.schema(columns).parquet(str(folder / "events"))
    patterns, options = QUERIES[kind]
    options = {**options, "lateness": "2 seconds", "shards": 2, "checkpoint": folder / "checkpoint", **others}
    rows = detect(events, patterns, key="account", outputs=["matches", "late"], **options)
    found: list[pa.Table] = []

    def collect(batch: DataFrame, _: int) -> None:
        found.append(batch.toArrow())

    writer = rows.writeStream.foreachBatch(collect).option("checkpointLocation", str(folder / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    shown = [json.dumps(row, default=str) for part in found for row in part.to_pylist()]
    return [json.loads(row) for row in sorted(shown)]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
