"""Errors are raised before anything runs, or by the action that meets them, with Cepheid's message first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cepheid import ConditionError, EventError, Pattern, PatternError, Report, SchemaError, detect
from cepheid.streams import event_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

T = datetime(2024, 3, 1, tzinfo=UTC)
PAIR = Pattern.begin("a").where("n = 1").followed_by("b").where("n = 2")


@contextmanager
def fails_with(message: str) -> Iterator[None]:
    """Expects a Spark exception that begins with the message."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        yield
    assert str(caught.value).startswith(f"[USER_RAISED_EXCEPTION] {message}")


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    data = [("x", T, 1), (None, T, 1), ("x", None, 1), (None, None, 2), ("x", T + timedelta(minutes=1), 2)]
    return spark.createDataFrame(data, "k string, t timestamp, n int")


def test_null_keys_and_times_fail(events: DataFrame) -> None:
    """An event without key or time is an error that says how to drop such events."""
    how = 'Drop such events before, or with nulls="drop", which counts them'
    with fails_with(f"an event has no key: 'k' is NULL. {how}"):
        detect(events.where("t IS NOT NULL"), PAIR, key="k", time="t").count()
    with fails_with(f"an event has no time: 't' is NULL. {how}"):
        detect(events.where("k IS NOT NULL"), PAIR, key="k", time="t").count()


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("parse_json(k)", "a VARIANT"),
        ("struct(parse_json(k) AS v)", "a VARIANT"),
        ("map(k, k)", "a MAP or an ARRAY"),
        ("struct(array(parse_json(k)) AS v)", "a MAP or an ARRAY"),
    ],
)
def test_keys_that_spark_does_not_divide_by(events: DataFrame, key: str, what: str) -> None:
    """They are refused before anything runs, each with one message."""
    message = f"a key cannot be or hold {what}. Cast it, for example to STRING"
    with pytest.raises(SchemaError, match=rf"^key: 'k' is of type [^\n]*; {message}$"):
        detect(events.selectExpr(f"{key} AS k", "t", "n"), PAIR, key="k", time="t")


def test_all_faults_at_once(spark: SparkSession, events: DataFrame) -> None:
    """What only Spark refuses is reported together with what a plan refuses, in a batch as on a stream."""
    columns = ["INTERVAL 3 MONTH AS m", "array(1) AS k", "1 AS n", "now() AS t"]
    stream = spark.readStream.format("rate").load().selectExpr(*columns)
    for frame, lateness in ((events.selectExpr(*columns), None), (stream, "1 minute")):
        with pytest.raises(PatternError) as caught:
            detect(frame, Pattern.begin("a").where("nosuch = 1"), key=["m", "k"], time="t", lateness=lateness)
        said = [problem.message for problem in caught.value.problems]
        assert [one.split(" is ")[0] for one in said] == ["key: 'm'", "columns: 'm'", "key: 'k'", *said[3:]]
        assert said[3:] == ["no column named 'nosuch'"]


def test_null_keys_and_times_are_dropped_and_counted(events: DataFrame) -> None:
    """With nulls="drop", the other events are matched; an event without key and time counts as one without key."""
    report = Report()
    matches = detect(events, PAIR, key="k", time="t", nulls="drop", report=report)
    assert len(matches.collect()) == 1
    counts = report.counts
    assert (counts.events, counts.null_keys, counts.null_times, counts.matches) == (5, 2, 1, 1)


@pytest.mark.parametrize("usable", [True, False])
def test_counts_where_no_event_is_left(events: DataFrame, usable: bool) -> None:  # noqa: FBT001 a parameter of pytest
    """Events read and dropped are counted also if no event is relevant, so that Spark has nothing to sort."""
    report = Report()
    never = Pattern.begin("a").where("n = 7").followed_by("b").where("n = 8")
    matches = detect(
        events if usable else events.where("k IS NULL"), never, key="k", time="t", nulls="drop", report=report
    )
    assert matches.collect() == []
    counts = report.counts
    assert (counts.events, counts.null_keys, counts.null_times) == ((5, 2, 1) if usable else (2, 2, 0))


def test_a_condition_that_fails(events: DataFrame) -> None:
    """A failure in a worker is reported as in process. One in Spark is Spark's own error; `event_failures` makes it the
    error that it is in process, with the condition and its stage.
    """
    from pyspark.errors import PySparkException

    clean = events.dropna()
    pattern = Pattern.begin("a").where("n = 1").next("b").where("n / (a.n - 1) > 0")
    with pytest.raises(ConditionError) as in_process:
        detect(clean.toArrow(), pattern, key="k", time="t", columns=["n"])
    with fails_with(str(in_process.value)):
        detect(clean, pattern, key="k", time="t", columns=["n"]).select("k").count()
    alone = Pattern.begin("a").where("1 / (n - 1) > 0 /* not 1 */")
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        detect(clean, alone, key="k", time="t").count()
    measured = detect(clean, Pattern.begin("a"), key="k", time="t", measures={"m": "1 / (a.n - 1)"})
    for rows, place in ((detect(clean, alone, key="k", time="t"), "(stage 'a', where)"), (measured, "(measure 'm')")):
        with pytest.raises(ConditionError, match=r"Division by zero.*, in '1 / .*") as told, event_failures():
            rows.collect()
        assert str(told.value).endswith(place)
    with pytest.raises(EventError, match=r"an event has no (key|time)"), event_failures():
        detect(events, Pattern.begin("a"), key="k", time="t").collect()


def test_the_one_that_fails_among_several(events: DataFrame) -> None:
    """Of several conditions, or measures of several patterns, the message names the one that fails, on whatever line of
    it that is.
    """
    clean, failing = events.dropna(), "k IS NOT NULL AND\n  100 / (n - 2) > 0"
    pattern = Pattern.begin("a").where("n = 1 -- first").next("b").where(failing).next("c").where("n / 7 > 0")
    both = {"it's one": Pattern.begin("a"), "other": Pattern.begin("a")}
    measures = {"it's one": {"m": "a.n / 7"}, "other": {"m": "a.n +\n 200 / (a.n - 2)"}}
    measured = detect(clean, both, key="k", time="t", measures=measures)
    for rows, place in (
        (detect(clean, pattern, key="k", time="t"), f"in {failing!r} (stage 'b', where)"),
        (measured, "in 'a.n +\\n 200 / (a.n - 2)' (measure 'm')"),
    ):
        with pytest.raises(ConditionError) as told, event_failures():
            rows.collect()
        assert str(told.value).endswith(place)


def test_problems_of_patterns(events: DataFrame) -> None:
    """Spark's reasons are short, and all problems are reported together."""
    pattern = Pattern.begin("a").where("nosuch(n) > 1").next("b").where("n + true > 1")
    with pytest.raises(PatternError) as caught:
        detect(events, pattern, key="k", time="t")
    assert len(caught.value.problems) == 2
    assert "Spark refuses this: Cannot resolve routine `nosuch`" in str(caught.value)
    assert "the operands have" in str(caught.value) or "incompatible types" in str(caught.value)
    assert "SQLSTATE" not in str(caught.value)
    assert "Relation" not in str(caught.value)


def test_what_is_not_deterministic_is_refused(spark: SparkSession, events: DataFrame) -> None:
    """Spark knows that a registered function is not deterministic, so it is refused."""
    from pyspark.sql.functions import udf

    spark.udf.register("guess", udf(lambda n: n, "int").asNondeterministic())
    with pytest.raises(PatternError, match="Spark refuses this: The operator expects a deterministic expression"):
        detect(events, Pattern.begin("a").where("guess(n) = 1"), key="k", time="t")


def test_types_that_do_not_reach_a_worker(spark: SparkSession) -> None:
    """Such a column is an error only as a key or in the output; Spark itself can use it in conditions."""
    events = spark.sql("SELECT 1 AS k, now() AS t, 1 AS n, parse_json('{\"a\": 5}') AS v, INTERVAL 3 MONTH AS m")
    with pytest.raises(SchemaError) as caught:
        detect(events, PAIR, key="m", time="t", columns=["k", "m"])
    assert str(caught.value).splitlines() == [
        f"{what}: 'm' is of type INTERVAL MONTH, which cannot be sent to a worker. {advice}"
        for what, advice in (
            ("key", "Cast it, for example to STRING"),
            ("columns", "Choose other columns with columns=[…], or cast it"),
        )
    ]
    pattern = Pattern.begin("a").where("variant_get(v, '$.a', 'int') = 5 AND m > INTERVAL 2 MONTH")
    assert detect(events, pattern, key="k", time="t", columns=["k", "v"]).count() == 1
    with pytest.raises(PatternError, match="a condition across events cannot hold"):
        detect(events, Pattern.begin("a").next("b").where("m = a.m"), key="k", time="t", columns=[])


def test_repeated_names(spark: SparkSession) -> None:
    """Two columns of the same name are refused."""
    events = spark.sql("SELECT 1 AS k, now() AS t, 1 AS n, 2 AS n")
    with pytest.raises(SchemaError, match="two columns of the events are named 'n': rename one"):
        detect(events, PAIR, key="k", time="t")


# Local times


def local(spark: SparkSession, *times: str) -> DataFrame:
    data = [("x", datetime.fromisoformat(time), n % 2 + 1) for n, time in enumerate(times)]
    return spark.createDataFrame(data, "k string, t timestamp_ntz, n int")


@pytest.mark.parametrize("session_zone", ["UTC", "Asia/Kolkata"])
def test_local_times_are_read_in_the_zone(spark: SparkSession, session_zone: str) -> None:
    """Times without a zone are read in `time_zone`, whatever the session's zone is; the event's own
    column is not changed.
    """
    beside = spark.newSession()
    beside.conf.set("spark.sql.session.timeZone", session_zone)
    events = local(beside, "2024-03-10 01:59:59", "2024-03-10 03:00:00")
    options: dict[str, Any] = {"key": "k", "time": "t", "time_zone": "America/New_York"}
    (expected,) = detect(events.toArrow(), PAIR.within("2 seconds"), **options).to_pylist()
    (found,) = detect(events, PAIR.within("2 seconds"), **options).toArrow().to_pylist()
    assert found == expected
    assert found["match_start"] == datetime(2024, 3, 10, 1, 59, 59)  # noqa: DTZ001
    at = datetime(2024, 3, 10, 6, 59, 59, tzinfo=UTC)
    assert detect(events, Pattern.begin("a"), as_of=at, **options).count() == 1


def test_the_sessions_zone_is_the_default(spark: SparkSession) -> None:
    """Without `time_zone`, local times are read in the session's zone."""
    beside = spark.newSession()
    beside.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    events = local(beside, "2024-01-01 05:30:00")
    (found,) = detect(events, Pattern.begin("a"), key="k", time="t").toArrow().to_pylist()
    (same,) = detect(events.toArrow(), Pattern.begin("a"), key="k", time="t", time_zone="Asia/Kolkata").to_pylist()
    assert found["match_id"] == same["match_id"]  # made of the instants


@pytest.mark.parametrize(
    ("time", "zone", "what"),
    [
        (
            "2024-03-10 02:30:00",
            "America/New_York",
            "does not exist in America/New_York, where clocks were set forward",
        ),
        ("2024-11-03 01:30:00", "America/New_York", "is ambiguous in America/New_York, where clocks were set back"),
        (
            "2024-04-07 01:45:00",
            "Australia/Lord_Howe",
            "is ambiguous in Australia/Lord_Howe, where clocks were set back",
        ),
    ],
)
def test_uncertain_local_times_fail(spark: SparkSession, time: str, zone: str, what: str) -> None:
    """They fail here and in process, also if the event cannot matter to any match."""
    events = local(spark, "2024-01-01 00:00:00", time).selectExpr("k", "t", "9 AS n")
    with fails_with(f"the local time {time} in column 't' {what}. Convert the column to instants (TIMESTAMP) first"):
        detect(events, PAIR, key="k", time="t", time_zone=zone).count()
    with pytest.raises(EventError):
        detect(events.toArrow(), PAIR, key="k", time="t", time_zone=zone)


@pytest.mark.parametrize("time", ["2024-11-03 00:59:59.999999", "2024-11-03 02:00:00", "2024-03-10 03:00:00"])
def test_local_times_beside_a_change_are_certain(spark: SparkSession, time: str) -> None:
    """Only times in the repeated or missing hour are refused."""
    found = detect(local(spark, time), Pattern.begin("a"), key="k", time="t", time_zone="America/New_York")
    assert found.count() == 1


# Workers


def run_in_worker(events: DataFrame, prepare: str) -> list[Any]:
    """Runs detection in a worker after executing `prepare` there; afterwards it restores the worker, which Spark uses
    again.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    from cepheid.hosts.spark.shipping import mapped

    function = mapped(
        "cepheid.hosts.spark.batch.worker.find_matches",
        (b"", (), None),
        StructType([StructField("_error", StringType())]),
    )

    def find(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.metadata
        import sys

        modules, finders, version = dict(sys.modules), list(sys.meta_path), importlib.metadata.version
        exec(prepare, {})  # noqa: S102
        try:
            yield from function(batches)
        finally:
            sys.modules.update(modules)
            sys.meta_path[:] = finders
            importlib.metadata.version = version

    return events.coalesce(1).mapInArrow(find, "_error string").collect()


def test_a_worker_without_cepheid_says_so(events: DataFrame) -> None:
    """The function that is sent to workers reports a missing cepheid without needing it."""
    hidden = """
import sys
for name in [n for n in sys.modules if n.split(".")[0] == "cepheid"]:
    del sys.modules[name]
sys.meta_path.insert(0, type("Hide", (), {"find_spec": staticmethod(
    lambda name, *_: (_ for _ in ()).throw(ModuleNotFoundError("No module named 'cepheid'"))
    if name.split(".")[0] == "cepheid" else None)}))
"""
    (row,) = run_in_worker(events, hidden)
    assert row[0].startswith(f"a Spark worker ({sys.executable}) cannot import cepheid (No module named 'cepheid')")
    assert "Install cepheid==" in row[0]
    assert "or set PYSPARK_PYTHON to one that has it" in row[0]


def test_a_worker_with_another_cepheid_says_so(events: DataFrame) -> None:
    """Another version might interpret the plan differently, so it is refused."""
    other = "import importlib.metadata as m; m.version = lambda name: '0.0.1'"
    (row,) = run_in_worker(events, other)
    assert row[0].startswith(f"a Spark worker ({sys.executable}) has cepheid 0.0.1, not ")
