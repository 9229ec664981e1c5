"""Records that cannot be read as events are reported, and never become events of NULLs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stream.running import finished

from cepheid import EventError, Pattern, detect
from cepheid.hosts.spark.stream.progress import progress_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS = "k STRING, at TIMESTAMP, price DOUBLE"
GOOD = ['{"k": "a", "at": "2026-03-02T08:00:00Z", "price": 1}', '\n {"price": 2, "more": []}', "{}"]
MALFORMED = ["nonsense", '{"k": "a", "price": "high"}', '{"k": "a"', "[]", "3", "null", "  ", "", None]


def messages(spark: SparkSession, *values: str | None) -> DataFrame:
    """Messages in the columns of Spark's Kafka source."""
    frame = spark.createDataFrame([*enumerate(values)], "offset BIGINT, text STRING")
    return frame.selectExpr("offset", "CAST(text AS BINARY) AS value", "3 AS partition", "'prices' AS topic")


def test_messages(streams: SparkSession) -> None:
    """JSON objects are events, even without any of the columns; other messages are reported with their position, or
    dropped.
    """
    from cepheid.hosts.spark.failures import event_failures
    from cepheid.hosts.spark.records import json_events

    rows = json_events(messages(streams, *GOOD, *MALFORMED), COLUMNS, "drop").collect()
    assert [(row.k, row.price) for row in rows] == [("a", 1.0), (None, 2.0), (None, None)]
    for text, reason in (("no\nsense" * 20, f": '{('no sense' * 20)[:100]}'"), (None, ": it has no value")):
        with pytest.raises(EventError) as caught, event_failures():
            json_events(messages(streams, GOOD[0], text), COLUMNS).collect()
        assert str(caught.value) == (
            f"the message of offset 1 in partition 3 of topic prices cannot be read as an event{reason}. Correct it "
            "where it is written, or leave such records out with nulls='drop', which counts them"
        )


def test_files_of_a_stream(streams: SparkSession, tmp_path: Path) -> None:
    """Dropped records of files are counted in the query's progress, added up over several sources."""
    from pyspark.sql.types import StructType

    from cepheid.hosts.spark.records import READER_OPTIONS, file_events, with_malformed

    columns = with_malformed(StructType.fromDDL(COLUMNS))  # type: ignore[arg-type]
    (tmp_path / "json").mkdir()
    (tmp_path / "csv").mkdir()
    (tmp_path / "json" / "a.jsonl").write_text("\n".join([GOOD[0], "", "nonsense", '{"k": "b"']))
    (tmp_path / "csv" / "a.csv").write_text("b,2026-03-02T08:00:01Z,2\nc,2026-03-02T08:00:02Z,high\n")
    sources = [
        file_events(
            streams.readStream.schema(columns).options(**READER_OPTIONS).format(kind).load(str(tmp_path / kind)), "drop"
        )
        for kind in ("json", "csv")
    ]
    rows = detect(sources[0].union(sources[1]), Pattern.begin("a"), key="k", time="at", lateness="0 seconds", shards=1)
    query = finished(rows.writeStream.format("noop"), tmp_path / "checkpoint")
    assert sum(one.malformed for report in query.recentProgress if (one := progress_of(json.loads(report.json)))) == 3


def test_failures_within_a_sink(streams: SparkSession, tmp_path: Path) -> None:
    """What the events cause is told as it is, where the function of `foreachBatch` computes the rows."""
    from cepheid.hosts.spark.failures import event_failures

    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_text('{"at": "2026-03-02T08:00:00Z"}')
    events = streams.readStream.schema(COLUMNS).json(str(tmp_path / "events"))
    rows = detect(events, Pattern.begin("a").next("b"), key="k", time="at", lateness="1 second")
    with pytest.raises(EventError) as caught, event_failures():
        finished(rows.writeStream.foreachBatch(lambda batch, _: batch.collect()), tmp_path / "checkpoint")
    assert str(caught.value).startswith("an event has no key: 'k' is NULL. Drop such events before")
    assert "\n" not in str(caught.value)
