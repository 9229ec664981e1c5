"""On Spark the columns of events become the same facts as in process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cepheid import OccurrencePattern, detect
from occurrences.test_mapped_events import KNOWLEDGE, MAPPING, events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FILTERS = {
    "input": "input(?r, ?b) ^ toParameter(?b, item) ^ objectValue(?b, ?i) ^ Book(?i)",
    "price": "hasPrice(?r, 20)",
    "tag": 'tag(?r, "gift")',
    "about": "about(?r, ?i) ^ Film(?i)",
    "took": 'took(?r, ?d) ^ greaterThan(?d, "PT1M"^^xsd:dayTimeDuration)',
    "paid": "paid(?r, true)",
    "day": 'day(?r, "2024-01-01"^^xsd:date)',
    "zoned": 'at(?r, "2024-01-01T00:00:01Z"^^xsd:dateTime)',
    "local": 'at(?r, "2024-01-01T08:00:00"^^xsd:dateTime)',
    # Another event counts: this is asked in sessions, not by SQL.
    "grown": "about(?r, item:dune) ^ about(?x, item:alien)",
}


def test_equal_in_process(spark: SparkSession) -> None:
    """Each type of a column is the same literal or individual on both hosts."""
    table = events(shop=["graz"] * 3)
    # Spark would read times without a zone as times in the session's zone.
    frame = spark.createDataFrame(table).selectExpr("* EXCEPT (local)", "TIMESTAMP_NTZ '2024-01-01 08:00:00' AS local")
    patterns = {
        name: OccurrencePattern.of(f"?r: Event [ {text} ]", knowledge=KNOWLEDGE, mapping=MAPPING).policy("unrestricted")
        for name, text in FILTERS.items()
    }
    expected = detect(table, patterns, key="shop", time="at", columns=["id"])
    found = detect(frame, patterns, key="shop", time="at", columns=["id"]).toArrow()

    def ids(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
        return sorted((str(row["pattern"]), row["match_id"]) for row in rows)

    assert ids(found.to_pylist()) == ids(expected.to_pylist())
    assert {row["pattern"] for row in found.to_pylist()} == {*FILTERS}
