"""In a batch on Spark, rows open and close events as in process: the same rows, ids, counts and errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from tests.intervals.events import NAMES, Row, interval_pattern, table

from cepheid import CepheidWarning, EventError, Report, SchemaError, detect
from cepheid.hosts.spark.failures import event_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "user", "event_id": "id"} | NAMES
CHAIN = interval_pattern(
    "EVENT PAL((A a overlap B b) (!D d gap WHERE length(d.id) <= length(a.id)) before C c) "
    "WHERE end(b) - start(b) > INTERVAL 1 SECOND AND date_format(end(a), 'ss') > '03' "
    "AND length(concat(date_format(end(c), 'HH'), c.id)) > 3 WITHIN 12 seconds"
)


def sound() -> list[Row]:
    """Events of one row and of two, in any order. Closing rows have no key. Some have a start, which says nothing."""
    random = Random(5)
    rows: list[Row] = []
    for i in range(300):
        kind, start, user = random.choice("AABBCD"), i // 4 + random.randrange(6), random.choice("uv")
        end, name = start + random.randrange(12), f"e{i}"
        if i % 4:
            rows += [(kind, start, None, name, user), (None, None if i % 9 else end + 5, end, name, None)]
        else:
            rows.append((kind, start, end, name, user))
    return random.sample(rows, len(rows))


def faulty() -> list[Row]:
    """Rows of few ids, with all that can be wrong: one id may have any number of rows, of any times."""
    random = Random(11)
    at = [None, *range(12)]
    return [
        (
            random.choice("ABCD"),
            random.choice(at),
            random.choice([None, *at]),
            random.choice([None, *(f"e{n}" for n in range(90))]),
            random.choice(["u", "u", "v", None]),
        )
        for _ in range(400)
    ]


def shown(rows: pa.Table) -> Sequence[str]:
    """The rows without their numbers, in an order of their own."""
    return sorted(map(repr, rows.select([name for name in rows.schema.names if name != "row_number"]).to_pylist()))


def both(spark: SparkSession, rows: Sequence[Row], pattern: Any, **options: Any) -> tuple[pa.Table, pa.Table]:
    """What is found in process and on Spark. The counts are the same."""
    reports = Report(), Report()
    given = table(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected = detect(given, pattern, report=reports[0], **(OPTIONS | options))
        found = detect(spark.createDataFrame(given).repartition(3), pattern, report=reports[1], **(OPTIONS | options))
    rows_found = found.toArrow()
    assert found.columns == [name for name in expected.schema.names if name != "row_number"]
    assert reports[0].counts == reports[1].counts
    return expected, rows_found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"measures": {"until": "unix_seconds(end(c))", "of": "concat(a.kind, b.id)"}},
        {"as_of": "1970-01-01T00:00:40Z"},
        {"rows_per": "event", "unmatched": True},
        {"rows_per": "event", "unmatched": True, "as_of": "1970-01-01T00:00:40Z"},
        {"key": None},
    ],
)
def test_the_same_rows_as_in_process(spark: SparkSession, options: dict[str, Any]) -> None:
    """Whatever rows an event has, in whatever partitions. Conditions read its end together with other columns."""
    expected, found = both(spark, sound(), CHAIN, **options)
    assert shown(found) == shown(expected)
    assert len(expected) > 4


@pytest.mark.parametrize("options", [{}, {"rows_per": "event", "unmatched": True}])
@pytest.mark.parametrize("second", [None, 8])
def test_dropped_rows_are_those_in_process(spark: SparkSession, options: dict[str, Any], second: int | None) -> None:
    """Rows that are not used are counted as in process, and have the same rows of their own. Rows of one id with the
    same times are left out: they have no order on Spark.
    """
    seen, rows = set[tuple[Any, ...]](), list[Row]()
    for row in faulty():
        own = row[2] if row[2] is not None else row[1]
        if (same := (row[3], own, row[2] is None)) not in seen:
            seen.add(same)
            rows.append(row)
    pattern = interval_pattern("EVENT PAL(A a before B b, !D d) WITHIN 6 seconds")
    as_of = {} if second is None else {"as_of": f"1970-01-01T00:00:0{second}Z"}
    expected, found = both(spark, rows, pattern, nulls="drop", **options, **as_of)
    assert shown(found) == shown(expected)
    assert len(expected)


def test_rows_with_equal_times_have_an_order(spark: SparkSession) -> None:
    """It does not depend on how the rows are divided."""
    rows = [("A", 1, 2, "x", "u"), ("B", 1, 2, "x", "u"), ("A", 1, 2, "x", "v"), ("B", 5, 6, "y", "u")]
    frame = spark.createDataFrame(table(rows))
    pattern = interval_pattern("EVENT PAL(A a)", {"B": "A"})
    found = {
        repr(detect(frame.repartition(n, "kind"), pattern, nulls="drop", **OPTIONS).toArrow().sort_by("match_id"))
        for n in (1, 2, 3)
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("A", 0, None, "a1", "u")], r"event 'a1' is opened and no row closes it \(id\)\. Drop such rows before"),
        ([("A", 0, 1, None, "u")], "a row has no id: 'id' is NULL. Drop such rows"),
        ([("A", 0, 1, "a1", "u"), ("A", 3, 4, "a1", "u")], r"a row has the id of event 'a1', which is there \(id\)"),
        ([(None, None, 1, "a1", "u")], "a row closes event 'a1', which no row opens"),
        ([("A", 5, None, "a1", "u"), (None, None, 3, "a1", None)], "a row closes event 'a1' before its start"),
        (
            [("A", 5, None, "a1", "u"), (None, None, 8, "a1", None), (None, None, 9, "a1", None)],
            "a row closes event 'a1', which has ended already",
        ),
        ([("A", 5, None, "a1", None), (None, None, 8, "a1", "u")], "event 'a1' has no key: 'user' is NULL"),
        ([("A", None, None, "a1", "u")], "event 'a1' has no time: 'begins' is NULL"),
        ([("A", 4, 3, "a1", "u")], "event 'a1' ends before it starts: 'ends' is before 'begins'"),
    ],
)
def test_rows_that_cannot_be_used_are_errors(spark: SparkSession, rows: list[Row], message: str) -> None:
    """The message names the event. As in process, an event may be open where rows that come later do not count."""
    frame = spark.createDataFrame(table([("B", 0, 1, "z", "u"), *rows]))
    with pytest.raises(EventError, match=message), event_failures():
        detect(frame, interval_pattern("EVENT PAL(A a)"), **OPTIONS).toArrow()


def test_ids_of_any_type(spark: SparkSession) -> None:
    """An id may be a number or a struct; what cannot divide a window of Spark, or cannot be sent, is refused."""
    frame = spark.createDataFrame(table([("A", 0, None, "1", "u"), ("A", None, 4, "1", "u"), ("B", 5, 6, "2", "u")]))
    pattern = interval_pattern("EVENT PAL(A a before B b)")
    for sql in ("cast(id AS INT)", "struct(id, cast(id AS DOUBLE) AS n)", "cast(id AS BINARY)"):
        events = frame.selectExpr("kind", "begins", "ends", "user", f"{sql} AS id", "map(1, 2) AS m")
        assert detect(events, pattern, **OPTIONS).count() == 1
    collated = frame.selectExpr("* EXCEPT (id)", "id COLLATE UTF8_LCASE AS id")
    with pytest.raises(SchemaError, match=r"event_id: 'id' is of type .*, which cannot be sent to a worker\. Cast it"):
        detect(collated, pattern, columns="kind", **OPTIONS)
    for sql, type_ in (
        ("map(id, 1)", "MAP<STRING,INT>"),
        ("struct(array(map(id, 1)) AS x)", "STRUCT<X:ARRAY<MAP<STRING,INT>>>"),
        ("parse_json(id)", "VARIANT"),
    ):
        message = (
            f"event_id: 'id' is of type {type_}; an id cannot be or hold a MAP or a VARIANT in a batch on Spark. Cast "
            "it, for example to STRING"
        )
        with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
            detect(frame.withColumn("id", F.expr(sql)), pattern, **OPTIONS)


def test_columns_without_a_hash(spark: SparkSession) -> None:
    """Rows open and close events also where Spark computes no hash of some columns, which come out unchanged."""
    frame = spark.createDataFrame(table([("A", 0, None, "1", "u"), ("A", None, 4, "1", "u"), ("B", 5, 6, "2", "u")]))
    pattern = interval_pattern("EVENT PAL(A a before B b)")
    for sql in ("parse_json(id)", "array(parse_json(id))", "struct(parse_json(id) AS v)", "map('v', id)"):
        events = frame.withColumn("more", F.expr(sql))
        (found,) = detect(events, pattern, **OPTIONS).selectExpr("to_json(struct(a.more)) AS more").collect()
        (given,) = events.where("ends IS NULL").selectExpr("to_json(struct(more)) AS more").collect()
        assert found == given


def test_rows_that_revise_events_are_refused(spark: SparkSession) -> None:
    """The message says where there are such rows."""
    frame = spark.createDataFrame(table([("A", 0, 1, "a1", "u")]))
    with pytest.raises(SchemaError, match="changes: rows revise and withdraw events in tables in process and for an"):
        detect(frame, interval_pattern("EVENT PAL(A a)"), changes="kind", **OPTIONS)


def test_local_times(spark: SparkSession) -> None:
    """Times without a zone are read in that of the call; one that does not exist is an error, also of a closing row."""
    frame = spark.createDataFrame(table([("A", 0, None, "a1", "u"), (None, None, 4, "a1", None)]))
    local = frame.selectExpr("* EXCEPT (begins, ends)", "cast(begins AS timestamp_ntz)", "cast(ends AS timestamp_ntz)")
    pattern = interval_pattern("EVENT PAL(A a)")
    found = detect(local, pattern, time_zone="Asia/Tokyo", **OPTIONS).collect()
    assert [(row.match_start.second, row.match_end.second) for row in found] == [(0, 4)]
    moved = local.selectExpr("* EXCEPT (ends)", "ends + INTERVAL '19813 02:10' DAY TO MINUTE AS ends")
    missing = "the local time 2024-03-31 02:10:04 in column 'ends' does not exist in Europe/Berlin"
    with pytest.raises(EventError, match=missing), event_failures():
        detect(moved, pattern, time_zone="Europe/Berlin", **OPTIONS).toArrow()
