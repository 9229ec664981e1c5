"""Interval patterns on Spark: the matches of a DataFrame are those of the same table in process."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.intervals.events import NAMES, Row, interval_pattern, table

from cepheid import IntervalPattern
from cepheid.detect import detect
from cepheid.errors import CepheidWarning, PatternError, SchemaError
from cepheid.requests.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATTERN = interval_pattern(
    "EVENT PAL((A a overlap B b) (!D d WHERE length(d.id) < length(a.id)) before C c)"
    " WHERE length(a.id) <= length(c.id) WITHIN 20 seconds"
)


def events() -> pa.Table:
    random = Random(7)
    starts = [random.randrange(60) for _ in range(200)]
    rows: list[Row] = [
        (random.choice("AABBCCD"), start, start + random.randrange(9), f"e{i}", random.choice("uvw"))
        for i, start in enumerate(starts)
    ]
    return table(rows)


def test_matches_are_those_in_process(spark: SparkSession) -> None:
    """Matches have the same ids, times and events, with a key and without one."""
    frame = spark.createDataFrame(events())
    expected = detect(events(), PATTERN, key="user", **NAMES)
    found = detect(frame, PATTERN, key="user", **NAMES)
    assert len(expected) > 5
    assert found.columns == expected.schema.names
    by_id = [("match_id", "ascending")]
    assert found.toArrow().sort_by(by_id).cast(expected.schema) == expected.sort_by(by_id)
    ended = interval_pattern("EVENT PAL(A a overlap B b, !D d) WITHIN 20 seconds")
    options: dict[str, Any] = {"key": "user", "as_of": "1970-01-01T00:00:50Z", "sequence": "id DESC"} | NAMES
    expected = detect(events(), ended, **options)
    assert 0 < len(expected) < len(detect(events(), ended, key="user", **NAMES))
    assert detect(frame, ended, **options).toArrow().sort_by(by_id).cast(expected.schema) == expected.sort_by(by_id)
    with pytest.warns(CepheidWarning, match="no key: all events are one sequence"):
        detect(frame, IntervalPattern.pal(a="A").taxonomy("kind"), **NAMES)


MEASURES = {"ids": "concat(a.id, b.id)", "gap": "unix_seconds(start(b)) - unix_seconds(end(a))"}


@pytest.mark.parametrize("options", [{"columns": ["kind"], "measures": MEASURES}, {"key": "user", "slices": True}])
def test_time_slices(spark: SparkSession, options: dict[str, Any]) -> None:
    """Without a key, and on request with one, events are divided by time, which changes no row, no id and no count."""
    pattern = interval_pattern("EVENT PAL(A a, (!D d), B b) RELATE a before | meet b WITHIN 5 seconds")
    reports, in_process = (Report(), Report()), {name: options[name] for name in options if name != "slices"}
    expected = detect(events(), pattern, report=reports[0], **in_process, **NAMES)
    sliced = detect(spark.createDataFrame(events()), pattern, report=reports[1], **options, **NAMES)
    by_id = [("match_id", "ascending")]
    assert sliced.toArrow().sort_by(by_id).cast(expected.schema) == expected.sort_by(by_id)
    assert len(expected) > 5
    assert reports[0].counts == reports[1].counts
    shown = StringIO()
    with redirect_stdout(shown):
        sliced.explain(extended=True)
    shuffle = next(line for line in shown.getvalue().splitlines() if "RepartitionByExpression" in line)
    assert shuffle.count("#") == 1 + ("key" in options)


def test_what_is_wrong_is_reported_as_in_process(spark: SparkSession) -> None:
    """A wrong pattern is reported at once; events that are not intervals are reported by the action."""
    frame = spark.createDataFrame(table([("A", 3, 2, "a1", "u")]))
    with pytest.raises(SchemaError, match="time: no column named 'starts'"):
        detect(frame, PATTERN, time=("starts", "ends"))
    with pytest.raises(PatternError, match="no event has the variable 'x'"):
        detect(frame, interval_pattern("EVENT PAL(A a) WHERE x.n = 1"), **NAMES)
    with pytest.raises(Exception, match="an event ends before it starts: 'ends' is before 'begins'"):
        detect(frame, interval_pattern("EVENT PAL(A a)"), key="user", **NAMES).toArrow()
    assert not detect(frame, interval_pattern("EVENT PAL(A a)"), key="user", nulls="drop", **NAMES).toArrow()
    sound = spark.createDataFrame(table([("A", 1, 2, "a1", "u"), ("B", 3, 4, "b1", "u")]))
    failing = interval_pattern("EVENT PAL(A a, B b) WHERE 1 / (length(a.id) - length(b.id)) > 0")
    with pytest.raises(Exception, match=r"division by zero in the condition \(1 / "):
        detect(sound, failing, key="user", **NAMES).toArrow()


def test_times_of_which_one_has_a_zone(spark: SparkSession) -> None:
    """It is refused as in process."""
    frame = spark.createDataFrame(events())
    frame = frame.withColumn("begins", frame["begins"].cast("timestamp_ntz"))
    with pytest.raises(SchemaError, match="time: 'begins' is TIMESTAMP_NTZ and 'ends' is TIMESTAMP, so only one has"):
        detect(frame, PATTERN, key="user", **NAMES)


def test_several_patterns_and_a_report(spark: SparkSession) -> None:
    """One shuffle serves all patterns; the counts are those in process."""
    patterns = {"both": PATTERN, "pair": interval_pattern("EVENT SEQ(A a, !D d, B x) WITHIN 5 seconds")}
    rows = [*events().to_pylist(), {"kind": "A", "user": "u"}, {"kind": "A"}]
    given = pa.Table.from_pylist(rows, schema=events().schema)
    reports = Report(), Report()
    options = {"key": "user", "nulls": "drop"} | NAMES
    expected = detect(given, patterns, report=reports[0], **options)
    found = detect(spark.createDataFrame(given), patterns, report=reports[1], **options).toArrow()
    by_id = [("match_id", "ascending")]
    assert found.sort_by(by_id).cast(expected.schema) == expected.sort_by(by_id)
    assert reports[0].counts == reports[1].counts
    assert (reports[0].counts.null_keys, reports[0].counts.null_times) == (1, 1)
