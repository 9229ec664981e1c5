"""Spark divides a pattern without key by the values that tie its stages, and finds what one sequence has."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.hosts.tiered_patterns import FIRST, tied_events, tied_pattern

from cepheid import CepheidWarning, Limits, Pattern, PatternError, Report, SchemaError, Skip, detect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ONE_TASK = "no key: all events are one sequence, which a single Spark task processes"
EVENTS = tied_events(5, 240)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    """The events in several partitions."""
    return spark.createDataFrame(EVENTS).repartition(3)


def rows(matches: Any) -> list[str]:
    arrow = matches if isinstance(matches, pa.Table) else matches.toArrow()
    return sorted(map(repr, arrow.to_pylist()))


def in_process(pattern: Pattern, **options: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)  # of ties
        return rows(detect(EVENTS, pattern, time="at", **options))


def tiers_pattern() -> Pattern:
    """The values of the second tier are of different types, and its condition reads all earlier stages."""
    return (
        Pattern.begin("a")
        .where("kind <> 'C'")
        .followed_by_any("b")
        .where("x = a.x AND s = a.s")
        .followed_by_any("c")
        .where("y = b.small AND n > a.n AND n <> b.n")
        .followed_by("last")
        .where("d = c.d AND count(b) = 1")
        .within_previous("40 seconds")
        .within("90 seconds")
    )


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        (tiers_pattern(), {}),
        (tiers_pattern(), {"sequence": "id", "measures": {"gap": "last.at - a.at", "n": "sum(b.n)"}}),
        (tiers_pattern(), {"columns": ["x", "s"], "outputs": "matches"}),
        (
            Pattern.begin("a").followed_by("b").where("y = a.y AND n > a.n"),
            {"sequence": "id", "as_of": FIRST + timedelta(seconds=150)},
        ),
        (Pattern.begin("a").followed_by("b").where("x = a.small AND n > a.n"), {"columns": ["kind"]}),
        (tied_pattern(54, same=True), {}),  # FLOAT
        (tied_pattern(33), {"sequence": "id"}),  # three tiers
        (tied_pattern(17), {}),
    ],
)
def test_the_matches_are_those_of_one_sequence(events: DataFrame, pattern: Pattern, options: dict[str, Any]) -> None:
    """All rows are equal, ids included, and no task has all events: there is no warning."""
    expected = in_process(pattern, **options)
    assert len(expected) > 5
    assert rows(detect(events, pattern, time="at", **options)) == expected


def test_ids_do_not_depend_on_the_zone_of_the_session(spark: SparkSession) -> None:
    """In a session of another zone, times come back from workers in that zone. They are the same instants."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    found = detect(session.createDataFrame(EVENTS), tiers_pattern(), time="at").select("match_id").toArrow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected = detect(EVENTS, tiers_pattern(), time="at").select(["match_id"])
    assert rows(found) == rows(expected)


def test_several_patterns_share_a_value(events: DataFrame) -> None:
    """Patterns that have an equality in common are divided by it, each with its own matches."""
    first = Pattern.begin("a").followed_by("b").where("x = a.x AND s = a.s")
    second = (
        Pattern.begin("a").where("kind = 'A'").followed_by_any("b").where("n > a.n AND x = a.x").within("9 seconds")
    )
    patterns = {"first": first, "second": second}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected = rows(detect(EVENTS, patterns, time="at"))
    assert rows(detect(events, patterns, time="at")) == expected


def test_counts_are_those_of_all_tiers(events: DataFrame) -> None:
    """A report has the events read, once, and the matches of the whole pattern."""
    report, limits = Report(), Limits(max_partial_matches=1000)
    matches = detect(events, tiers_pattern(), time="at", limits=limits, report=report).toArrow().num_rows
    assert (report.counts.events, report.counts.matches, report.counts.timeouts) == (len(EVENTS), matches, 0)


def test_an_error_in_the_first_tier_is_reported(events: DataFrame) -> None:
    """A worker's error passes through the tiers after it."""
    found = detect(events, tiers_pattern(), time="at", limits=Limits(max_partial_matches=1))
    with pytest.raises(Exception, match=r"more than 1 partial matches are open for one key \(max_partial_matches\)"):
        found.toArrow()


@pytest.mark.parametrize(
    ("pattern", "shuffles"),
    [(Pattern.begin("a").followed_by("b").where("x = a.x"), 1), (tiers_pattern(), 3)],
)
def test_there_is_a_shuffle_for_each_tier(
    events: DataFrame, pattern: Pattern, shuffles: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each tier's rows are divided by its values."""
    detect(events, pattern, time="at").explain()
    plan = capsys.readouterr().out
    assert plan.count("Exchange hashpartitioning") == shuffles
    assert "SinglePartition" not in plan


SLICED = {
    "any": Pattern.begin("a").where("kind = 'A'").followed_by_any("b").where("n > a.n").within("9 seconds"),
    "absent": Pattern.begin("a").where("kind = 'A'").not_followed_by("b").where("kind = 'B'").within("4 seconds"),
    "longest": Pattern.begin("a").next("b").where("n > a.n").one_or_more().consecutive().longest().within("6 seconds"),
    "next": (
        Pattern.begin("a")
        .where("kind = 'A'")
        .followed_by("b")
        .where("n > a.n")
        .one_or_more()
        .greedy()
        .followed_by("c")
        .where("kind = 'C'")
        .within("9 seconds")
        .skip(Skip.to_next())
    ),
    "without": (
        Pattern.begin("a").begin_without("c", where="kind = 'C'", within="3 seconds").next("b").within("5 seconds")
    ),
}
"""Nothing ties their stages, so they are divided by time."""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_time_slices(events: DataFrame, zone: str, recwarn: pytest.WarningsRecorder) -> None:
    """Patterns with a window are divided by time, also with local times in any zone of the session. Rows and counts are
    those of one sequence, and there is no warning.
    """
    frame, table = events, EVENTS
    if zone != "UTC":
        frame = events.withColumn("at", events["at"].cast("timestamp_ntz"))
        local = EVENTS["at"].cast(pa.timestamp("us"))
        table = EVENTS.set_column(EVENTS.schema.get_field_index("at"), "at", local)
    until = (FIRST + timedelta(seconds=200)).replace(tzinfo=None)  # read in the zone of the events
    asked = {"time": "at", "outputs": ("matches", "timeouts"), "as_of": until}
    asked |= {} if zone == "UTC" else {"time_zone": zone}
    ours, theirs = Report(), Report()
    found = rows(detect(frame, SLICED, report=ours, **asked))
    assert not [str(one.message) for one in recwarn if ONE_TASK in str(one.message)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        assert found == rows(detect(table, SLICED, report=theirs, **asked))
    assert ours.counts == theirs.counts
    assert len(found) > 100


def test_slices_of_late_years(spark: SparkSession) -> None:
    """Local times after 2038, whose seconds since 1970 do not fit 32 bits, are divided by time, too."""
    late = pc.add(EVENTS["at"].cast(pa.timestamp("us")), pa.scalar(timedelta(days=10_000)))
    table = EVENTS.set_column(EVENTS.schema.get_field_index("at"), "at", late)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected = rows(detect(table, SLICED, time="at", time_zone="UTC"))
    instants = spark.createDataFrame(table)
    frame = instants.withColumn("at", instants["at"].cast("timestamp_ntz"))
    assert rows(detect(frame, SLICED, time="at", time_zone="UTC")) == expected


def test_a_pattern_that_cannot_be_divided_is_one_task(events: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning says that a single task has all events."""
    with pytest.warns(CepheidWarning, match=ONE_TASK):
        found = detect(events, Pattern.begin("a").next("b").where("x = a.x"), time="at")
    found.explain()
    assert "SinglePartition" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["x", ["small", "s"]])
def test_slices_of_keys(events: DataFrame, key: str | list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """On request the events of each key are divided by time, too: rows and counts are as without, and no job runs
    before an action.
    """
    ours, theirs = Report(), Report()
    asked: dict[str, Any] = {"key": key, "time": "at", "nulls": "drop"}
    asked["outputs"] = ("matches", "timeouts", "no_match")
    found = detect(events, SLICED, slices=True, report=ours, **asked)
    found.explain()
    assert "slice" in capsys.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected = rows(detect(EVENTS, SLICED, report=theirs, **asked))
    assert rows(found) == expected
    assert ours.counts == theirs.counts
    assert len(expected) > 100


def test_slices_and_a_value_that_extends_the_key(events: DataFrame) -> None:
    """Both divide the key's events."""
    tied = Pattern.begin("a").followed_by("b").where("s = a.s AND n > a.n").within("20 seconds")
    expected = in_process(tied, key="x", nulls="drop")
    assert len(expected) > 5
    assert rows(detect(events, tied, key="x", time="at", nulls="drop", slices=True)) == expected


def test_slices_that_are_refused(events: DataFrame) -> None:
    """The clause that forbids them is named."""
    last = SLICED["any"].skip(Skip.past_last_event())
    message = (
        "slices: a key's events cannot be divided by time on Spark, because SKIP_PAST_LAST_EVENT lets a match drop "
        "partial matches that started after it. Leave it out"
    )
    with pytest.raises(PatternError, match=f"^{message}$"):
        detect(events, last, key="x", time="at", slices=True)
    with pytest.raises(SchemaError, match="slices: they are for batches on Spark; workers=n divides large keys"):
        detect(EVENTS, SLICED["any"], key="x", time="at", slices=True)
    stream = events.sparkSession.readStream.format("rate").load()
    with pytest.raises(SchemaError, match="slices: they divide finite input; standbys=… divide the hot keys of a"):
        detect(stream, SLICED["any"], time="timestamp", slices=True)
    with pytest.raises(SchemaError, match="slices: True or False is expected, got 1"):
        detect(events, SLICED["any"], time="at", slices=1)  # type: ignore[arg-type]
