"""On Spark, events without a match have the rows that they have in process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cepheid import CepheidWarning, OccurrencePattern, Pattern, Report, SchemaError, Skip, detect
from cepheid.intervals import interval_pattern

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
A_QUARTER_PAST = NOON + timedelta(minutes=15)
TYPES = "abcdacbbadcaab"
ROWS = [
    (
        None if number % 13 == 7 else f"k{number % 3}",
        None if number % 17 == 5 else NOON + timedelta(minutes=number // 4),
        NOON + timedelta(minutes=number // 4 + number % 5),
        TYPES[number % len(TYPES)],
        float(number % 6),
    )
    for number in range(90)
]
SCHEMA = "device string, at timestamp, until timestamp, type string, price double"
A_B = (
    Pattern.begin("a", name="pair")
    .where("type = 'a'")
    .followed_by("b")
    .where("type = 'b' AND price > a.price")
    .within("9 minutes")
    .skip(Skip.past_last_event())
)
C_D = Pattern.begin("c", name="next").where("type = 'c'").next("d").where("type = 'd'").within("5 minutes")
OVERLAP = interval_pattern("EVENT PAL(a x overlap b y)").taxonomy("type")
CASES: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "one pattern, with measures": (A_B, {"key": "device", "measures": {"n": "coalesce(count(b), 0) + 1"}}),
    "two patterns, up to a time": (
        {"pair": A_B, "next": C_D},
        {"key": "device", "as_of": A_QUARTER_PAST},
    ),
    "timeouts, some columns": (A_B, {"key": "device", "outputs": ["matches", "timeouts"], "columns": ["type"]}),
    "no key": (A_B, {}),
    "sub-keys": (Pattern.begin("a").where("type = 'a'").next("b").where("device = a.device").within("3 minutes"), {}),
    "occurrences": (OccurrencePattern.of("a; b").taxonomy("type"), {"key": "device"}),
    "intervals": (OVERLAP, {"key": "device"}),
    "intervals, up to a time": (OVERLAP, {"key": "device", "as_of": A_QUARTER_PAST}),
}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """Two events in a hundred are equal, others agree in key and time, and some have no key or no time."""
    return spark.createDataFrame([*ROWS, ROWS[0], ROWS[3]], SCHEMA).repartition(3)


def quietly(*arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        return detect(*arguments, **options)


def shown(rows: pa.Table) -> Sequence[str]:
    """The rows without their numbers, in an order of their own."""
    names = [name for name in rows.schema.names if name != "row_number"]
    return sorted(map(repr, rows.select(names).to_pylist()))


@pytest.mark.parametrize("case", CASES)
def test_the_same_rows_as_in_process(events: DataFrame, case: str) -> None:
    """All events have a row on both hosts: of matches, of timeouts, or of none."""
    patterns, options = CASES[case]
    time: Any = ("at", "until") if patterns is OVERLAP else "at"
    options = {"rows_per": "event", "unmatched": True, "nulls": "drop", "report": Report(), "time": time, **options}
    expected = quietly(events.toArrow(), patterns, **options)
    assert 0 < expected.column("match_id").null_count < len(expected)
    found = quietly(events, patterns, **options).toArrow()
    assert found.schema.names == [n for n in expected.schema.names if n != "row_number"]
    assert shown(found) == shown(expected)


def test_slices_and_streams_are_refused(spark: SparkSession, events: DataFrame) -> None:
    """Where no worker knows all matches of an event, and where later ones may still take it."""
    options: dict[str, Any] = {"key": "device", "time": "at", "rows_per": "event", "unmatched": True}
    with pytest.raises(SchemaError, match=r"slices: an event is in several slices, .*; leave out slices or unmatched"):
        detect(events, A_B, slices=True, **options)
    stream = spark.readStream.format("rate").load().selectExpr("value AS device", "timestamp AS at", "'a' AS type")
    with pytest.raises(SchemaError, match=r"unmatched: on a stream a later match may still take an event. Store"):
        detect(stream, A_B, **options)
