"""Errors between Spark and Kafka are reported in one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from cepheid.cli.stream_ends import columns_of, read_stream, source_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_no_such_topic(spark: SparkSession, broker: str, tmp_path: Path) -> None:
    """The error is Kafka's own message, without the stack trace."""
    from pyspark.errors import StreamingQueryException

    from cepheid.hosts.spark.failures import failure_message

    events = read_stream(spark, source_of(f"kafka://{broker}/nowhere"), columns_of("id INT"), "error")
    query = events.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(60)
    assert failure_message(caught.value) == (
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition."
    )


@pytest.mark.usefixtures("spark")
def test_no_such_type() -> None:
    """A schema that cannot be parsed is reported with Spark's reason."""
    with pytest.raises(typer.BadParameter) as caught:
        columns_of("id INT, at TIEM")
    assert str(caught.value).startswith("'id INT, at TIEM' is no list of columns: "), caught.value
    assert "TIEM" in str(caught.value).partition(": ")[2]
