"""On Spark, lists with many constants become tables that are joined, in a batch and in a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.stream.running import detected

from cepheid import OccurrencePattern, Pattern, detect, semantic
from cepheid.knowledge import EventMapping, Knowledge, individual
from cepheid.plan.semantics.name_lists import LONG
from occurrences.shop import at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:pattern 'two events'")]

SHOP = "http://shop.example/"
KNOWN = Knowledge.read(
    f"@prefix : <{SHOP}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . :Event a owl:Class . "
    ":item a owl:ObjectProperty . " + " ".join(f":i{number} a :Book ." for number in range(12 * LONG)),
    prefixes={"": SHOP},
)
MAPPING = EventMapping(f"{SHOP}event/{{id}}", type="kind", properties={"item": individual("item")})
NUMBERS = ", ".join(map(str, range(LONG + 1)))
PATTERNS = {
    "semantic": OccurrencePattern.of("?a: Event [item(?a, ?i) ∧ Book(?i)]", knowledge=KNOWN, mapping=MAPPING),
    "in SQL": OccurrencePattern.of(
        f"?a: Event [sql: NOT (a.id IN ({NUMBERS})) OR a.item IS NULL]", knowledge=KNOWN, mapping=MAPPING
    ),
    "two events": OccurrencePattern.of(
        "((?a: Event ; ?b: Event)_1d)[item(?a, ?i) ∧ Book(?i) ∧ item(?b, ?i)]", knowledge=KNOWN, mapping=MAPPING
    ),
}
OPTIONS: dict[str, Any] = {"time": "at", "key": "user", "sequence": "id", "columns": ["id"]}


def events() -> pa.Table:
    items = ["i1", "tin", None, f":i{12 * LONG - 1}", f"i{12 * LONG}", "i1"]
    return pa.table(
        {
            "id": [0, 1, 2, LONG, LONG + 1, LONG + 2],
            "at": pa.array([at(number) for number in range(len(items))], pa.timestamp("us", "UTC")),
            "kind": ["Event"] * len(items),
            "user": ["ann"] * len(items),
            "item": pa.array(items),
        }
    )


def ids(rows: list[dict[str, Any]]) -> list[tuple[object, object]]:
    return sorted((row["pattern"], row["match_id"]) for row in rows)


def expected() -> list[tuple[object, object]]:
    found = ids(detect(events(), PATTERNS, **OPTIONS).to_pylist())
    assert [name for name, _ in found] == ["in SQL"] * 3 + ["semantic"] * 3 + ["two events"]
    return found


def test_batch(spark: SparkSession) -> None:
    """The same matches as in process; no name is in Spark's plan."""
    found = detect(spark.createDataFrame(events()), PATTERNS, **OPTIONS)
    assert ids(found.toArrow().to_pylist()) == expected()


def test_stream(streams: SparkSession, tmp_path: Path) -> None:
    """The same matches, micro-batch by micro-batch."""
    found = detected(streams, batches(), tmp_path, PATTERNS, lateness="1 second", **OPTIONS)
    assert ids([row for batch in found for row in batch]) == expected()


def test_stages_on_a_stream(streams: SparkSession, tmp_path: Path) -> None:
    """A checkpoint has what stages know, whose facts as text are more than Spark takes with a pattern."""
    assert len(KNOWN.ntriples) > 1 << 20
    pattern = Pattern.begin("a", knowledge=KNOWN, mapping=MAPPING).where(semantic("item(?a, ?i) ∧ Book(?i)"))
    found = detected(streams, batches(), tmp_path, pattern, lateness="1 second", **OPTIONS)
    assert sorted(row["a"]["id"] for batch in found for row in batch) == [0, LONG, LONG + 2]


def batches() -> list[pa.Table]:
    """The events, then one of another user that brings time, so that the others are certain."""
    last = events().slice(0, 1).set_column(1, "at", pa.array([at(900)], pa.timestamp("us", "UTC")))
    return [events().slice(0, 3), events().slice(3), last.set_column(3, "user", pa.array(["end"]))]
