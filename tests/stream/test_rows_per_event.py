"""Rows of events on Spark, as a batch and as a stream, are those in process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.live.events import events
from tests.stream.running import finished, streamed, written

from cepheid import OccurrencePattern, Pattern, detect, split
from cepheid.intervals import interval_pattern

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN = (
    Pattern.begin("a", name="run").where("x = 'a'").one_or_more().followed_by("b").where("x = 'b'").within("20 seconds")
)
ROWS = [(1, "k", 0, "a"), (2, "k", 1, "a"), (3, "k", 2, "b"), (4, "m", 3, "a"), (5, "m", 4, "b"), (6, "m", 90, "z")]
MEASURES = {"n": "count(a)", "all": "FINAL count(a)", "last": "a.id", "share": "count(a) / FINAL count(a)"}
OPTIONS: dict[str, Any] = {"time": "at", "rows_per": "event"}


def shown(rows: pa.Table, *, without: tuple[str, ...] = ()) -> list[str]:
    names = [name for name in rows.schema.names if name not in ("row_number", *without)]
    return sorted(map(repr, rows.select(names).to_pylist()))


@pytest.mark.spark
def test_a_batch_has_the_rows_of_a_table(spark: SparkSession) -> None:
    """Stages with measures, occurrences and intervals have the rows on Spark that they have in process."""
    table = events(*ROWS)
    keyed = {**OPTIONS, "key": table.schema.names[1]}
    asked: list[tuple[Any, dict[str, Any]]] = [
        ({"run": RUN, "other": RUN}, {**keyed, "measures": {"run": MEASURES, "other": {}}}),
        (OccurrencePattern.of("?p:a ; (b + 1s)").taxonomy("x"), keyed),
        (
            interval_pattern("EVENT PAL(a first before b then)").taxonomy("x"),
            {**keyed, "time": ("at", "at"), "measures": {"ids": "`first`.id + `then`.id"}},
        ),
    ]
    for pattern, options in asked:
        found = detect(spark.createDataFrame(table), pattern, **options).toArrow()
        expected = shown(detect(table, pattern, **options))
        assert expected
        assert shown(found) == expected


@pytest.mark.spark
def test_a_stream_has_the_rows_of_a_table(streams: SparkSession, tmp_path: Path) -> None:
    """Each match of a stream has a row for each of its events; split gives late events with their columns."""
    table = events(*ROWS)
    written([table, events((7, "k", 1, "b"), (8, "k", 95, "z"))], tmp_path / "events")
    options = {**OPTIONS, "key": table.schema.names[1], "measures": MEASURES, "outputs": ("matches", "late")}
    stream = streamed(streams, tmp_path / "events")
    rows = detect(stream, RUN, lateness="1 second", shards=2, **options)
    matches, late = list[pa.Table](), list[pa.Table]()

    def collect(batch: DataFrame, _: int) -> None:
        for found, part in zip((matches, late), split(batch, "matches", "late"), strict=True):
            found.append(part.toArrow())

    finished(rows.writeStream.foreachBatch(collect), tmp_path / "checkpoint")
    assert shown(pa.concat_tables(matches)) == shown(detect(table, RUN, **options))
    (row,) = pa.concat_tables(late).to_pylist()
    assert (row["kind"], row["id"], row["x"], row["n"]) == ("late", 7, "b", None)
    assert "stage" not in row
