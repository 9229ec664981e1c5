"""Detection on Spark gives what it gives in process, however Spark splits and moves the events."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid import CepheidWarning, EventError, Pattern, Report, SchemaError, Skip, detect
from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import Stage
from cepheid.streams import event_failures
from kernel.strategies import patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

T = datetime(2024, 3, 1, tzinfo=UTC)
UP = (
    Pattern.begin("low")
    .where("n < 3")
    .followed_by("rise")
    .where("n > low.n")
    .one_or_more()
    .consecutive()
    .longest()
    .within("10 minutes")
    .skip(Skip.past_last_event())
)


def table(count: int, *, keys: int = 5, seed: int = 1) -> pa.Table:
    """Events k, t, n, s, x: several at the same time, NULLs in s and x."""
    random_ = random.Random(seed)
    return pa.table(
        {
            "k": pa.array([f"k{random_.randrange(keys)}" for _ in range(count)]),
            "t": pa.array([T + timedelta(minutes=random_.randrange(count)) for _ in range(count)]).cast(
                pa.timestamp("us", "UTC")
            ),
            "n": pa.array([random_.randrange(6) for _ in range(count)], pa.int32()),
            "s": pa.array([random_.choice(["a", "b", None]) for _ in range(count)]),
            "x": pa.array([random_.choice([0.5, 1.5, None]) for _ in range(count)]),
        }
    )


def rows(matches: Any) -> list[str]:
    """All rows as sorted text, in which NaN equals itself."""
    arrow = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(repr(row) for row in arrow.to_pylist())


@pytest.fixture(scope="module")
def beside(spark: SparkSession) -> SparkSession:
    """A second session, for all tests here: each session has Python workers of its own."""
    return spark.newSession()


@pytest.fixture
def session(beside: SparkSession) -> Iterator[SparkSession]:
    """The second session for one test, which may change its settings: they are restored afterwards."""
    before = beside.conf.getAll
    beside.conf.set("spark.sql.session.timeZone", "UTC")
    beside.conf.set("spark.sql.shuffle.partitions", "3")
    yield beside
    for name, value in beside.conf.getAll.items():
        if name not in before:
            beside.conf.unset(name)
        elif value != before[name]:
            beside.conf.set(name, before[name])


@contextmanager
def ties_allowed() -> Iterator[None]:
    """Ignores warnings: in process, `detect` warns of ties at once."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        yield


def both(spark: SparkSession, events: pa.Table, pattern: Pattern, **options: Any) -> tuple[list[str], list[str]]:
    """The matches in process and on Spark."""
    with ties_allowed():
        expected = rows(detect(events, pattern, **options))
        return expected, rows(detect(spark.createDataFrame(events), pattern, **options))


TEXTS = ["n > 2", "s = 'a'", "s IS NULL OR n = 1", "x > 1", "n % 2 = 0 AND s = 'b'", "n BETWEEN 1 AND 4"]
ACROSS = ["n > s0.n", "s = s0.s", "x > avg(s0.x)", "n > 1 AND count(s0) < 3", "n <> last(s0.n) -- a comment"]


@st.composite
def sql_patterns(draw: st.DrawFn) -> Pattern:
    """Random patterns with conditions in SQL, and windows in minutes like the distances of the events."""
    pattern = draw(patterns())
    first = pattern.leaves[0]

    def minutes(window: timedelta | None) -> timedelta | None:
        return None if window is None else timedelta(minutes=window.microseconds)

    def with_sql(stage: Stage) -> Stage:
        text = draw(st.sampled_from(TEXTS if stage is first else TEXTS + ACROSS))
        return replace(
            stage,
            conditions=() if stage.group else (Condition(text),),
            quantifier=replace(stage.quantifier, window=minutes(stage.quantifier.window)),
            until=None if stage.until is None else Condition("n = 0"),
            window=minutes(stage.window),
            group=tuple(map(with_sql, stage.group)),
        )

    skip = replace(pattern.skip_strategy, error_on_miss=False)
    window = timedelta(minutes=draw(st.integers(5, 30)))
    return Pattern(tuple(map(with_sql, pattern.stages)), window, skip_strategy=skip)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(pattern=sql_patterns(), seed=st.integers(0, 99), cut=st.sampled_from([(1, 1), (3, 2), (8, 7)]))
def test_random_patterns(session: SparkSession, pattern: Pattern, seed: int, cut: tuple[int, int]) -> None:
    """Any pattern has the same matches in process and on Spark, for any number of partitions and any batch size."""
    session.conf.set("spark.sql.shuffle.partitions", str(cut[0]))
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(cut[1]))
    expected, found = both(session, table(60, seed=seed), pattern, key="k", time="t")
    assert found == expected


def test_counts_and_match_ids(session: SparkSession) -> None:
    """The first action fills the report, which also counts ties and irrelevant events."""
    events = table(300)
    on_spark, in_process = Report(), Report()
    with ties_allowed():
        expected = detect(events, UP, key="k", time="t", report=in_process)
    matches = detect(session.createDataFrame(events), UP, key="k", time="t", report=on_spark)
    assert rows(matches) == rows(expected)
    assert on_spark.counts == in_process.counts
    assert on_spark.counts.ties > 0
    assert on_spark.counts.events == 300


def test_irrelevant_events_are_counted_and_dropped_before_the_shuffle(
    session: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """If no state needs strict contiguity, events for which no condition is true are not shuffled."""
    pattern = Pattern.begin("a").where("n = 1").followed_by("b").where("n = 2")
    report = Report()
    matches = detect(session.createDataFrame(table(200)), pattern, key="k", time="t", columns=["n"], report=report)
    expected, found = both(session, table(200), pattern, key="k", time="t", columns=["n"])
    assert rows(matches) == found == expected
    assert report.counts.events == 200
    matches.explain()
    plan = capsys.readouterr().out
    assert plan.index("& 3") > plan.index("Exchange")  # further down in the plan: before the shuffle


def test_only_what_is_needed_is_read(session: SparkSession, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns that neither the output nor a condition uses are not read from Parquet."""
    session.createDataFrame(table(50)).write.parquet(str(tmp_path / "events"))
    events = session.read.parquet(str(tmp_path / "events"))
    detect(events, UP, key="k", time="t", columns=["n"]).explain()
    assert "ReadSchema: struct<k:string,t:timestamp,n:int>" in capsys.readouterr().out


def test_adaptive_execution_splits_no_key(session: SparkSession) -> None:
    """A key with nearly all events stays in one partition, and in order, although Spark considers
    the partition skewed.
    """
    for name, value in {
        "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "100",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.1",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "200",
        "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }.items():
        session.conf.set(name, value)
    events = pa.concat_tables([table(2000, keys=1), table(30, keys=9, seed=2)])
    with ties_allowed():
        expected = detect(events, UP, key="k", time="t")
    frame = session.createDataFrame(events).repartition(8)
    matches = detect(frame, UP, key="k", time="t")
    joined = matches.join(matches.selectExpr("match_id", "k as other"), "match_id").drop("other")
    assert rows(matches) == rows(expected)
    assert rows(joined) == rows(expected)


def test_a_key_over_many_batches(session: SparkSession) -> None:
    """A partial match continues over the borders of Arrow batches, and of the matcher's pieces."""
    from pyspark.sql import functions as F  # noqa: N812

    count = 300_000
    events = session.range(count).select(
        F.lit("one").alias("k"),
        F.timestamp_seconds("id").alias("t"),
        F.when(F.col("id") == 0, 1).when(F.col("id") == count - 1, 2).otherwise(3).alias("n"),
    )
    pattern = Pattern.begin("first").where("n = 1").followed_by("last").where("n = 2").or_where("n = 3 AND n < first.n")
    (row,) = detect(events, pattern, key="k", time="t").collect()
    assert row.match_start == datetime(1970, 1, 1)  # noqa: DTZ001 - Spark's rows have local times, here UTC
    assert row.last.n == 2


KEYS: dict[str, list[Any]] = {
    "decimal(10,2)": [Decimal("1.10"), Decimal("-2.00"), Decimal("0.00")],
    "date": [date(2024, 1, 1), date(1969, 1, 1), date(2000, 2, 29)],
    "binary": [b"", b"\x00", b"\xff\x00"],
    "boolean": [True, False],
    "timestamp": [(T + timedelta(days=days)).astimezone(ZoneInfo("UTC")) for days in (0, 1, -20_000)],
    "struct<a: int, b: string>": [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": 1, "b": "x"}],
    "bigint": [2**53, 2**53 + 1, -1],
    "struct<x: double, t: time(6)>": [{"x": 0.5, "t": None}, {"x": None, "t": None}],
}


@pytest.mark.parametrize("type_", KEYS)
def test_keys_keep_their_type(session: SparkSession, type_: str) -> None:
    """A key of any hashable type has the same type in the output, and distinguishes keys as well as a number does."""
    values = KEYS[type_]
    data = [(values[i % len(values)], i % len(values), T + timedelta(minutes=i), i % 4) for i in range(40)]
    events = session.createDataFrame(data, f"k {type_}, i int, t timestamp, n int")
    matches = detect(events, UP, key="k", time="t", columns=["n"])
    assert matches.schema["k"].dataType == events.schema["k"].dataType
    numbered = detect(events.drop("k").toArrow(), UP, key="i", time="t", columns=["n"]).to_pylist()
    expected = [(values[row["i"]], row["match_start"], row["match_end"]) for row in numbered]
    found = [(row["k"], row["match_start"], row["match_end"]) for row in matches.toArrow().to_pylist()]
    assert sorted(found, key=repr) == sorted(expected, key=repr) != []  # a zone may be written in two ways


def test_keys_are_equal_as_spark_groups_them(session: SparkSession) -> None:
    """NaN is one key, and so are 0.0 and -0.0, also within several key columns."""
    nan = float("nan")
    data = [
        (key, "z", T + timedelta(minutes=i), n) for i, (key, n) in enumerate([(0.0, 1), (nan, 1), (-0.0, 5), (nan, 5)])
    ]
    events = session.createDataFrame(data, "k double, z string, t timestamp, n int")
    found = detect(events, UP, key=["k", "z"], time="t").collect()
    assert sorted(str(abs(row.k)) for row in found) == ["0.0", "nan"]


def test_structs_are_keys_as_their_fields_are(session: SparkSession) -> None:
    """NaN, 0.0 and NULL within structs are one key each, here and in process."""
    nan = float("nan")
    keys = [{"x": x, "y": y} for x, y in [(0.0, None), (nan, "a"), (-0.0, None), (nan, "a"), (0.0, "a"), (None, None)]]
    events = pa.table(
        {
            "k": pa.array(keys, pa.struct([("x", pa.float64()), ("y", pa.string())])),
            "t": pa.array([T + timedelta(minutes=i) for i in range(6)], pa.timestamp("us", "UTC")),
            "n": [1, 1, 5, 5, 5, 5],
        }
    )
    expected, found = both(session, events, UP, key="k", time="t", measures={"n": "rise.n"})
    assert found == expected
    assert len(found) == 2


def test_nested_values_have_one_identity(session: SparkSession) -> None:
    """Match ids are equal if events have instants and doubles in structs and lists, whatever zone Arrow gives them."""
    at = pa.array([T + timedelta(minutes=i) for i in range(4)], pa.timestamp("us", "UTC"))
    berlin = at.cast(pa.timestamp("us", "Europe/Berlin"))
    doubles = pa.array([[0.0], [-0.0, None], None, [float("nan")]], pa.list_(pa.float64()))
    inner = pa.StructArray.from_arrays([berlin, doubles], ["t", "x"])
    events = pa.table({"t": at, "n": [1, 2, 1, 2], "s": inner})
    pattern = Pattern.begin("a").where("n = 1").followed_by("b").where("n = 2")
    with ties_allowed():
        here = detect(events, pattern, time="t")
        there = detect(session.createDataFrame(events), pattern, time="t").toArrow()
    ids = [sorted(matches.column("match_id").to_pylist()) for matches in (here, there)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 2


def test_dropped_events_have_no_ordinals(session: SparkSession) -> None:
    """Of two events that are equal in all chosen columns, one is irrelevant: both hosts drop it before they number
    equal events.

    So the other event is the first of its kind for this pattern.
    """
    events = pa.table(
        {
            "k": ["x"] * 4,
            "t": pa.array([T, T, T, T + timedelta(minutes=1)], pa.timestamp("us", "UTC")),
            "n": [9, 1, 1, 2],
        }
    )
    pattern = Pattern.begin("a").where("n = 1").followed_by("b").where("n = 2")
    expected, found = both(session, events, pattern, key="k", time="t", columns=[])
    assert found == expected
    assert both(session, events.slice(1), pattern, key="k", time="t", columns=[])[1] == found
    assert len(found) == 2


def test_ties_go_by_content(session: SparkSession) -> None:
    """Events of the same time have the same order however they arrive."""
    data = [(1, T, n % 6, n) for n in range(30)]
    pattern = Pattern.begin("a").where("n = 1").followed_by("b").where("n = 2").skip(Skip.past_last_event())
    found = set()
    for seed in range(3):
        random.Random(seed).shuffle(data)
        events = session.createDataFrame(data, "k int, t timestamp, n int, id int").repartition(seed + 1)
        found.add("".join(rows(detect(events, pattern, key="k", time="t"))))
    assert len(found) == 1


def test_a_sequence_orders_ties(session: SparkSession) -> None:
    """With a sequence column, events of equal time are not ties, and NULLs come last."""
    data = [(1, T, 2, 5), (1, T, 1, 1), (1, T, None, 4), (1, T, 0, 2)]
    events = session.createDataFrame(data, "k int, t timestamp, q int, n int")
    pattern = Pattern.begin("a").next("b").next("c").next("d")
    (row,) = detect(
        events, pattern, key="k", time="t", sequence="q", measures={"n": "a.n * 1000 + b.n * 100 + d.n"}
    ).collect()
    assert row.n == 2104


def test_sequences_of_doubles(session: SparkSession) -> None:
    """NaN comes after all numbers and NULL last, on both hosts."""
    sequence = [None, float("nan"), 4.0, -0.0, -1.0, 0.5]
    events = pa.table(
        {
            "k": ["x"] * 6,
            "t": pa.array([T] * 6, pa.timestamp("us", "UTC")),
            "q": pa.array(sequence, pa.float64()),
            "n": [6, 5, 4, 2, 1, 3],
        }
    )
    pattern = Pattern.begin("s1").where("n = 1")
    for number in range(2, 7):
        pattern = pattern.next(f"s{number}").where(f"n = {number}")
    expected, found = both(session, events, pattern, key="k", time="t", sequence="q")
    assert found == expected
    assert len(found) == 1


def test_measures(session: SparkSession) -> None:
    """Measures are Spark's own expressions over the columns of matches, with Spark's types."""
    measures = {"n": "count(rise)", "name": "upper(low.s)", "d": "low.n * 1.1"}
    with ties_allowed():
        expected = detect(table(200), UP, key="k", time="t", measures=measures)
    found = detect(session.createDataFrame(table(200)), UP, key="k", time="t", measures=measures)
    assert found.columns == ["match_id", "k", "match_start", "match_end", "detected_at", "n", "name", "d"]
    assert dict(found.dtypes)["d"] == "decimal(13,1)"
    assert rows(found) == rows(expected)


def test_as_of(session: SparkSession) -> None:
    """Later events do not count, and a match that may still grow is not emitted."""
    expected, found = both(session, table(200), UP, key="k", time="t", as_of=T + timedelta(minutes=90))
    assert found == expected
    assert found != both(session, table(200), UP, key="k", time="t")[1]


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "+05:30"])
def test_a_local_as_of_is_the_session_s(session: SparkSession, zone: str) -> None:
    """Without `time_zone`, a naive `as_of` is read in the session's zone, like naive event times."""
    session.conf.set("spark.sql.session.timeZone", zone)
    events = session.sql("SELECT 'x' AS k, timestamp_seconds(0) AS t, 1 AS n")
    for as_of, count in (("1970-01-01 05:30:00", 1), ("1970-01-01 05:29:59", 0), ("1970-01-01 00:00:00Z", 1)):
        assert detect(events, Pattern.begin("a"), key="k", time="t", as_of=as_of).count() == count
    early = detect(events, Pattern.begin("a"), key="k", time="t", as_of="1970-01-01 00:00:00", time_zone="UTC")
    assert early.count() == 1


def test_an_uncertain_as_of(session: SparkSession) -> None:
    """A local `as_of` that occurs twice in the session's zone is refused at once."""
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    message = "as_of: the local time 2024-10-27 02:30:00 is ambiguous in Europe/Berlin. Give it with its offset"
    with pytest.raises(SchemaError, match=message):
        detect(session.createDataFrame(table(1)), UP, key="k", time="t", as_of="2024-10-27 02:30:00")


def test_empty_input(session: SparkSession) -> None:
    """Without events there are no matches, but the columns of the output."""
    report = Report()
    matches = detect(session.createDataFrame(table(0)), UP, key="k", time="t", report=report)
    assert matches.columns == ["match_id", "k", "match_start", "match_end", "detected_at", "low", "rise"]
    assert matches.collect() == []
    assert report.counts.events == report.counts.matches == 0


def test_without_key_it_says_so(session: SparkSession) -> None:
    """Without `key` all events are one sequence, in one task, and there is a warning."""
    with pytest.warns(
        CepheidWarning, match="no key: all events are one sequence, which a single Spark task processes"
    ) as caught:
        found = detect(session.createDataFrame(table(60)), UP, time="t")
    assert [warning.filename for warning in caught] == [__file__]
    with ties_allowed():
        assert rows(found) == rows(detect(table(60), UP, time="t"))


@pytest.mark.parametrize(
    "names",
    [
        ("a.k", "t`t", "n", "_mask", "c0"),
        ("la clé 'k'", "${spark.app.name}`t`", "n", "SELECT", "\\x ${user} -- "),
    ],
)
def test_odd_names(session: SparkSession, names: tuple[str, ...]) -> None:
    """Columns and measures may have names with dots, quotes, what Spark reads as variables, and Cepheid's own prefixes.
    Messages show the names.
    """
    key, time, *_, last = names
    events = table(60).rename_columns(names)
    expected, found = both(session, events, UP, key=key, time=time)
    assert found == expected
    measures = {last: f"low.`{last}`", f"m.{time}": "count(rise)"}
    expected, found = both(session, events, UP, key=key, time=time, nulls="drop", measures=measures)
    assert found == expected
    lacking = session.createDataFrame(events.set_column(0, key, pa.nulls(60, pa.string())))
    with pytest.raises(EventError) as caught, event_failures():
        detect(lacking, UP, key=key, time=time).count()
    assert str(caught.value).startswith(f"an event has no key: {key!r} is NULL. ")


def test_escapes_in_texts(session: SparkSession) -> None:
    """A session that reads backslashes as they are is refused, as workers read them as escapes."""
    session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    with pytest.raises(SchemaError, match=r"^backslashes in texts .*'spark.sql.parser.escapedStringLiterals', False"):
        detect(session.createDataFrame(table(3)), UP, key="k", time="t")


@pytest.mark.parametrize(
    "condition",
    [
        "s = '${x}'",
        "s = '\\${x}'",
        "s = r'${x}'",
        'concat(s, "${env:HOME}") = "${x}\\${env:HOME}"',
        "s /* ${x */ = '${x}' -- ${env:HOME}",
        "`a${x}` = 1",
        "'${spark.sql.shuffle.partitions}' LIKE '$%' AND '\\\\${env:HOME}' = concat('\\\\', '${env:HOME}')",
    ],
)
def test_no_variables_are_substituted(session: SparkSession, condition: str) -> None:
    """A condition reads no settings and no environment: `${…}` is what it says, as in process."""
    events = pa.table({"s": ["${x}", "$", "{x}"], "a${x}": [1, 2, 3], "n": [1, 2, 3]})
    pattern, measures = Pattern.begin("a").where(condition), {"m": "concat(first(a.s), '${x}', r'\\${y}')"}
    options: dict[str, Any] = {"key": "a${x}", "sequence": "n", "time": None, "measures": measures}
    found = rows(detect(session.createDataFrame(events), pattern, **options))
    assert found == rows(detect(events, pattern, **options))
    assert found


@pytest.mark.parametrize("condition", ["NULL", "CASE WHEN n > 1 THEN NULL END", "nullif(NULL, 1)"])
def test_conditions_without_a_type(session: SparkSession, condition: str) -> None:
    """A condition that is always NULL holds for no event."""
    pattern = Pattern.begin("a").where(condition)
    with pytest.warns(CepheidWarning, match="never true|held for no event"):
        assert detect(table(9), pattern, key="k", time="t").num_rows == 0
    assert detect(session.createDataFrame(table(9)), pattern, key="k", time="t").count() == 0


def test_a_key_named_event(session: SparkSession) -> None:
    """A key has its place in the output, also if it has the name of another column of some outputs."""
    events = table(50).rename_columns(["event", "t", "n", "s", "x"])
    found = detect(session.createDataFrame(events), UP, key="event", time="t")
    with ties_allowed():
        assert found.columns == detect(events, UP, key="event", time="t").column_names


def test_a_session_without_ansi_mode(session: SparkSession) -> None:
    """It has other values where conditions fail in process, so `detect` warns."""
    session.conf.set("spark.sql.ansi.enabled", "false")
    with pytest.warns(CepheidWarning, match="this session is not in ANSI mode"):
        detect(session.createDataFrame(table(3)), UP, key="k", time="t")


def test_a_match_can_be_joined_and_used_twice(session: SparkSession) -> None:
    """The result is a DataFrame like any other: it can be counted, joined with itself and united."""
    matches = detect(session.createDataFrame(table(100)), UP, key="k", time="t")
    count = matches.count()
    assert matches.union(matches).count() == 2 * count
    assert matches.join(matches.select("match_id"), "match_id").count() == count


def test_functions_of_the_session(spark: SparkSession) -> None:
    """Functions registered with Spark, in Python or in SQL, can be used in conditions on one event and in measures."""
    spark.udf.register("of_python", lambda n: n > 1, "boolean")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION of_sql(n BIGINT) RETURNS BIGINT RETURN n * 10")
    events = spark.sql(
        "SELECT * FROM VALUES (1L, TIMESTAMP '2024-01-01 00:00:00'), (2L, TIMESTAMP '2024-01-01 00:00:01') AS t(n, at)"
    ).selectExpr("1 AS k", "*")
    pattern = Pattern.begin("a").where("of_sql(n) = 10").next("b").where("of_python(n) AND n > a.n")
    (match,) = detect(events, pattern, key="k", time="at", measures={"m": "of_sql(a.n + b.n)"}).collect()
    assert match.m == 30
