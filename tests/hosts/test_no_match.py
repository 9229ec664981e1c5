"""Partial matches that a negation has ended, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.hosts.test_outputs import CALLS, OPTIONS, at, events, in_short

from cepheid import Matcher, Pattern, PatternError, SchemaError, Skip, detect
from cepheid.streams import split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = ("matches", "timeouts", "no_match")
PAID = (
    Pattern.begin("a", name="paid")
    .where("x = 'a'")
    .not_next("m")
    .where("x = 'm'")
    .followed_by("b")
    .where("x = 'b'")
    .not_followed_by("n")
    .where("x = 'n'")
    .followed_by("c")
    .where("x = 'c'")
    .within("10 seconds")
)
EVENTS = events(("p", "aanbbnc"), ("q", "abn a c"), ("r", "amb abnbc"), ("s", "ab c"), ("t", "a"))


def causes(found: pa.Table) -> list[tuple[Any, ...]]:
    """Rows without a match as (key, stages with the ids of their events, cause, second), sorted."""
    rows = found.filter(pa.compute.equal(found["kind"], "no_match"))
    short = [
        (
            row["k"],
            {stage: [event["id"] for event in taken] for stage, taken in row["stages"] if taken},
            row["cause"],
            (row["detected_at"] - at(0)).total_seconds(),
        )
        for row in rows.to_pylist()
    ]
    return sorted(short, key=str)


def test_what_negations_end() -> None:
    """Each partial match that an event of a negated stage ends is a row: what it had taken, the name of the stage as
    the cause, and the time of the event. Other rows have no cause.
    """
    found = detect(EVENTS, PAID, outputs=ALL, **OPTIONS)
    assert causes(found) == [
        ("p", {"a": [0], "b": [3]}, "n", 5),
        ("p", {"a": [1], "b": [3]}, "n", 5),
        ("q", {"a": [7], "b": [8]}, "n", 2),
        ("r", {"a": [12]}, "m", 1),
        ("r", {"a": [15], "b": [16]}, "n", 6),
    ]
    others = found.filter(pa.compute.not_equal(found["kind"], "no_match"))
    assert {*others["cause"].to_pylist()} == {None}
    assert others.drop_columns("cause").equals(detect(EVENTS, PAID, outputs=("matches", "timeouts"), **OPTIONS))


def test_columns() -> None:
    """The column `cause` is there if the output is asked for; the ids of rows are distinct."""
    found = detect(EVENTS, PAID, outputs="no_match", measures={"n": "count(b)"}, **OPTIONS)
    assert found.column_names == [
        *("kind", "pattern", "match_id", "k", "match_start", "match_end", "detected_at", "cause", "n", "event"),
    ]
    assert sorted(found["n"].to_pylist()) == [0, 1, 1, 1, 1]
    assert len({*found["match_id"].to_pylist()}) == len(found) == 5
    assert "cause" not in detect(EVENTS, PAID, outputs=("matches", "timeouts"), **OPTIONS).column_names


def test_each_call_of_a_matcher() -> None:
    """A matcher that is fed event by event, and restored in between, gives the same rows; it counts them as before."""
    options = {**OPTIONS, "outputs": ALL, "lateness": "0 seconds"}
    matcher, rows = Matcher(PAID, EVENTS, **options), []
    order = EVENTS.sort_by([("at", "ascending"), ("id", "ascending")])
    for row in range(len(order)):
        rows.append(matcher.process(order.slice(row, 1)))
        state, matcher = matcher.snapshot(), Matcher(PAID, EVENTS, **options)
        matcher.restore(state)
    rows.append(matcher.finish())
    found = pa.concat_tables(rows)
    expected = detect(EVENTS, PAID, outputs=ALL, **OPTIONS)
    assert sorted(found["match_id"].to_pylist()) == sorted(expected["match_id"].to_pylist())
    assert causes(found) == causes(expected)
    assert matcher.counts.matches == found["kind"].to_pylist().count("match") == 1


def test_branches_with_the_same_events() -> None:
    """Branches with the same events that one event ends are one row."""
    loop = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'").times(1, 3)
    pattern = loop.not_followed_by("n").where("x = 'n'").followed_by("c").where("x = 'c'")
    found = detect(events(("p", "abbn")), pattern, outputs="no_match", **OPTIONS)
    assert causes(found) == [("p", {"a": [0], "b": [1, 2]}, "n", 3), ("p", {"a": [0], "b": [1]}, "n", 3)]


def test_waiting_matches() -> None:
    """Rows without a match do not wait for earlier partial matches, as matches do with a skip strategy."""
    pattern = PAID.skip(Skip.past_last_event())
    matcher = Matcher(pattern, EVENTS, outputs=ALL, lateness="0 seconds", **OPTIONS)
    found = matcher.process(events(("p", "a abn")))
    assert in_short(found) == [
        ("no_match", "p", {"a": [0], "b": [2], "c": []}, 4),
        ("no_match", "p", {"a": [1], "b": [2], "c": []}, 4),
    ]


def test_conditions_in_python() -> None:
    """Patterns with conditions in Python give the same rows."""
    python = Pattern.begin("a", name="paid").where(lambda event: event["x"] == "a", name="is_a")
    python = python.not_followed_by("n").where("x = 'n'").followed_by("b").where("x = 'b'")
    compiled = Pattern.begin("a", name="paid").where("x = 'a'")
    compiled = compiled.not_followed_by("n").where("x = 'n'").followed_by("b").where("x = 'b'")
    asked = {**OPTIONS, "outputs": ("no_match", "matches")}
    here, there = (detect(EVENTS, one, **asked) for one in (python, compiled))
    assert sorted(here["match_id"].to_pylist()) == sorted(there["match_id"].to_pylist())
    assert causes(here) == causes(there) != []


def test_not_in_sets() -> None:
    """Where they are asked for, partial matches are kept one by one; matches and their ids are the same."""
    pattern = Pattern.begin("a").where("x = 'a'").not_followed_by("n").where("x = 'n'").followed_by("b")
    pattern = pattern.where("x = 'b'")
    in_sets = detect(EVENTS, pattern, outputs="matches", **OPTIONS)
    found = detect(EVENTS, pattern, outputs=("matches", "no_match"), **OPTIONS)
    matches = found.filter(pa.compute.equal(found["kind"], "match"))
    assert sorted(matches["match_id"].to_pylist()) == sorted(in_sets["match_id"].to_pylist()) != []
    assert causes(found) == [("p", {"a": [0]}, "n", 2), ("p", {"a": [1]}, "n", 2)]


def test_refusals() -> None:
    """What cannot be asked for is refused: names that the output needs, changes of real time, and patterns in which no
    negation can end anything, if nothing else is asked for.
    """
    named = EVENTS.rename_columns(["id", "cause", "at", "x"])
    with pytest.raises(SchemaError, match="key: 'cause' is the name of a column that the output has itself"):
        detect(named, PAID, outputs="no_match", **{**OPTIONS, "key": "cause"})
    assert len(detect(named, PAID, outputs="matches", **{**OPTIONS, "key": "cause"})) == 1
    with pytest.raises(PatternError, match="measure 'Cause' has the name of another column of the output"):
        detect(EVENTS, PAID, outputs="no_match", measures={"Cause": "a.x"}, **OPTIONS)
    with pytest.raises(SchemaError, match="outputs: a matcher with a consistency has no no_match, as what ends may"):
        Matcher(PAID, EVENTS, outputs="no_match", consistency="realtime", lateness="1 second", **OPTIONS)
    plain = Pattern.begin("a").followed_by("b")
    with pytest.raises(PatternError) as caught:
        detect(CALLS, plain, outputs="no_match", **OPTIONS)
    assert str(caught.value) == (
        "no_match alone is asked for, and without a negation there is none (outputs)\n"
        "Add not_followed_by(…) or not_next(…), or ask for matches too."
    )
    assert causes(detect(CALLS, plain, outputs=("matches", "no_match"), **OPTIONS)) == []


@pytest.mark.spark
@pytest.mark.parametrize("measures", [None, {"n": "count(b)"}])
def test_spark_gives_the_same(spark: SparkSession, measures: Any) -> None:
    """Spark gives the same rows, and `split` takes them apart."""
    options = {**OPTIONS, "columns": ["id", "at", "x"], "measures": measures, "outputs": ALL}
    expected = detect(EVENTS, PAID, **options)
    frame = detect(spark.createDataFrame(EVENTS), PAID, **options)
    found = frame.toArrow()
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist())) != []
    matches, ended = split(frame, "matches", "no_match")
    assert ("cause" in matches.columns, "cause" in ended.columns) == (False, True)
    assert sorted(row.cause for row in ended.collect()) == ["m", "n", "n", "n", "n"]
