"""Streams whose shards need more than Spark takes with a function."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.stream.running import run, streamed, written

from cepheid import OccurrencePattern, detect
from cepheid.knowledge import EventMapping, Knowledge, individual
from occurrences.shop import at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:a stream does not end")]

SHOP = "http://shop.example/"
OPTIONS: dict[str, Any] = {"time": "at", "key": "user", "sequence": "id", "columns": ["id"]}


def known(labels: int) -> Knowledge:
    """Knowledge that is about 3 kB a label when it is packed."""
    chance = Random(7)
    facts = f"@prefix : <{SHOP}> . :Event a <http://www.w3.org/2002/07/owl#Class> . "
    facts += ":item a <http://www.w3.org/2002/07/owl#ObjectProperty> . :i1 a :Book . :i3 a :Book . "
    return Knowledge.read(
        facts + " ".join(f':i{n} :label "{chance.randbytes(3000).hex()}" .' for n in range(labels)), prefixes={"": SHOP}
    )


def asked_in_sessions(knowledge: Knowledge) -> OccurrencePattern:
    mapping = EventMapping(f"{SHOP}event/{{id}}", type="kind", properties={"item": individual("item")}, linked=True)
    return OccurrencePattern.of("?a: Event [item(?a, ?i) ∧ Book(?i)]", knowledge=knowledge, mapping=mapping)


def events(items: list[str], user: str = "ann", first: int = 0) -> pa.Table:
    numbers = range(first, first + len(items))
    columns = {"id": [*numbers], "kind": ["Event"] * len(items), "user": [user] * len(items), "item": items}
    return pa.table(columns).append_column("at", pa.array(map(at, numbers), pa.timestamp("us", "UTC")))


def test_stream_with_large_knowledge(streams: SparkSession, tmp_path: Path) -> None:
    """Sessions on a stream may know more than 2 MB of packed facts, also after it continues from its checkpoint."""
    pattern = asked_in_sessions(known(800))
    before, after = events(["i1", "i2", "i3"]), events(["i1", "i3"], first=3)
    found = []
    for number, batch in enumerate([before, after]):
        written([batch], tmp_path / "events", first=number)
        rows = detect(streamed(streams, tmp_path / "events"), pattern, lateness="0 seconds", shards=2, **OPTIONS)
        found += [row for some in run(rows, tmp_path / "checkpoint") for row in some]
    expected = detect(pa.concat_tables([before, after]), pattern, as_of=at(3), **OPTIONS).to_pylist()
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)
    assert len(expected) == 3
