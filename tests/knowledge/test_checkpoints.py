"""On a Spark stream a checkpoint belongs to one knowledge and one mapping."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import OccurrencePattern, detect
from cepheid.knowledge import EventMapping, Knowledge, individual
from stream.running import run, streamed, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:.*keeps what is open"),
]

HEAD = "@prefix : <http://x/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
FACTS = [":Request a owl:Class .", ":about a owl:ObjectProperty .", ":dune a :Book ."]
SHOP = "".join([HEAD, *FACTS])
MAPPING = EventMapping("http://x/event/{id}", type="kind", properties={"about": individual("{item}")})


def batch(number: int) -> pa.Table:
    at = pa.array([datetime(2026, 1, 1, minute=number, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    return pa.table({"key": ["k"], "id": [number], "at": at, "kind": ["Request"], "item": ["dune"]})


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"knowledge": SHOP + ":alien a :Film ."}, "knowledge"),
    (
        {
            "mapping": EventMapping(
                "http://x/event/{id}", type="kind", properties={"about": individual("http://x/{item}")}
            )
        },
        "mapping",
    ),
]


def test_a_checkpoint_has_one_knowledge(spark: SparkSession, tmp_path: Path) -> None:
    """A query that continues with other facts or another mapping fails, and says which of them changed. The same facts
    in another order are no change.
    """
    streams = spark.newSession()
    streams.conf.set("spark.sql.shuffle.partitions", "1")

    def restarted(number: int, knowledge: str = SHOP, mapping: EventMapping = MAPPING) -> list[Any]:
        written([batch(number)], tmp_path / "events", first=number)
        text = "?a: Request ; ?r: Request [ about(?r, ?i) ^ about(?other, ?i) ^ Book(?i) ]"
        pattern = OccurrencePattern.of(
            text, knowledge=Knowledge.read(knowledge, prefixes={"": "http://x/"}), mapping=mapping
        )
        events = streamed(streams, tmp_path / "events")
        rows = detect(events, pattern, key="key", time="at", lateness="0 seconds", shards=1)
        return run(rows, tmp_path / "checkpoint")

    restarted(0)
    restarted(1, "".join([HEAD, *reversed(FACTS)]))
    for number, (change, what) in enumerate(CHANGES, 2):
        with pytest.raises(Exception, match=f"the checkpoint belongs to another query: .*{what}"):
            restarted(number, **change)
