"""split: the outputs of a stream, each as its own table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import events
from tests.stream.running import finished, streamed, written

from cepheid import Pattern, SchemaError, detect, split
from cepheid.intervals import interval_pattern

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAIR = Pattern.begin("a", name="pair").where("x = 'a'").followed_by("b").where("x = 'b'").within("6 seconds")
ALL = ("matches", "timeouts", "late")


@pytest.mark.long
@pytest.mark.spark
def test_each_output_of_a_micro_batch(partitioned: SparkSession, tmp_path: Path) -> None:
    """Every row is in exactly one output; a key name with a dot is not read as a field access."""
    batches = [
        events((1, "k1", 0, "a"), (2, "k1", 2, "b"), (3, "k2", 3, "a"), (4, "k3", 60, "z")),
        events((5, "k1", 1, "b"), (6, "k3", 70, "z")),
        events((7, "k3", 80, "z")),
    ]
    written([batch.rename_columns(["id", "k.ey", "at", "x"]) for batch in batches], tmp_path / "events")
    rows = detect(
        streamed(partitioned, tmp_path / "events"), PAIR, key="k.ey", time="at", lateness="1 second", outputs=ALL
    )
    kinds: list[str] = []
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ALL}

    def collect(batch: DataFrame, _: int) -> None:
        kinds.extend(row.kind for row in batch.collect())
        for name, part in zip(ALL, split(batch, *ALL), strict=True):
            found[name] += part.toArrow().to_pylist()

    finished(rows.writeStream.foreachBatch(collect), tmp_path / "checkpoint")
    assert sorted(kinds) == ["late", "match", "timeout"]
    assert [(row["kind"], row["k.ey"]) for row in found["matches"]] == [("match", "k1")]
    assert [(row["kind"], row["k.ey"]) for row in found["timeouts"]] == [("timeout", "k2")]
    assert [(row["k.ey"], row["event"]["id"]) for row in found["late"]] == [("k1", 5)]
    assert [*found["late"][0]] == ["kind", "pattern", "match_id", "k.ey", "detected_at", "event"]
    whole = [name for name in rows.columns if name != "event"]
    assert [*found["matches"][0]] == [*found["timeouts"][0]] == whole


@pytest.mark.spark
def test_matches_of_intervals_are_insertions_and_retractions(partitioned: SparkSession, tmp_path: Path) -> None:
    batches = [
        events((1, "a", 0, "m"), (2, "b", 10, "m"), (3, "z", 12, "m")),
        events((4, "c", 5, "m"), (5, "z", 13, "m")),
        events((6, "b", 1, "m"), (7, "z", 60, "m")),
        events((8, "z", 61, "m")),
    ]
    written([batch.rename_columns(["id", "kind", "at", "machine"]) for batch in batches], tmp_path / "events")
    pattern = interval_pattern("EVENT PAL(a x (!c) before b y) WITHIN 1 minute REALTIME 1").taxonomy("kind")
    stream = streamed(partitioned, tmp_path / "events")
    rows = detect(stream, pattern, time=("at", "at"), key="machine", lateness="10 seconds")
    emitted: list[tuple[str, str]] = []

    def collect(batch: DataFrame, _: int) -> None:
        matches, late = split(batch, "matches", "late")
        emitted.extend(("matches", row.kind) for row in matches.collect())
        emitted.extend(("late", row.event.kind) for row in late.collect())

    finished(rows.writeStream.foreachBatch(collect), tmp_path / "checkpoint")
    assert emitted == [("matches", "insertion"), ("matches", "retraction"), ("late", "b")]


@pytest.mark.spark
def test_all_problems_are_reported_at_once(spark: SparkSession) -> None:
    with pytest.raises(SchemaError) as raised:
        split(spark.createDataFrame([("match",)], "kind STRING"), "matches", "tardy")  # type: ignore[arg-type]
    problems = str(raised.value).splitlines()
    assert problems[0].startswith("outputs: 'tardy' cannot be requested; allowed are 'matches'")
    assert problems[1].startswith("rows: a Spark DataFrame is expected that detect gave with outputs=")


def test_rows_without_spark() -> None:
    rows = detect(events((1, "k", 0, "a")), PAIR, key="k", time="at", outputs="matches")
    with pytest.raises(SchemaError, match="a Spark DataFrame is expected"):
        split(rows, "matches")  # type: ignore[type-var]
