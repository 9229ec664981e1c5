"""Outputs chosen by name: one documented frame, the same in process and on Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cepheid import Matcher, Pattern, PatternError, Report, SchemaError, Skip, detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = datetime(2024, 3, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
EVENT = pa.struct([("id", pa.int64()), ("x", pa.string())])
BOTH = ("matches", "timeouts")
OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "columns": ["id", "x"]}
CALL = (
    Pattern.begin("a", name="call")
    .where("x = 'a'")
    .followed_by("b")
    .where("x = 'b'")
    .one_or_more()
    .optional()
    .followed_by("c")
    .where("x = 'c'")
    .within("10 seconds")
    .skip(Skip.past_last_event())
)


def events(*keyed: tuple[str, str]) -> pa.Table:
    """The events of each key, one letter each, a second apart; a space is a second without an event."""
    rows = [(key, second, x) for key, letters in keyed for second, x in enumerate(letters) if x != " "]
    return pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "k": [key for key, _, _ in rows],
            "at": pa.array([T + timedelta(seconds=second) for _, second, _ in rows], TIME),
            "x": [x for _, _, x in rows],
        }
    )


def at(second: int) -> datetime:
    return T + timedelta(seconds=second)


def in_short(found: pa.Table) -> list[tuple[Any, ...]]:
    """Each row as (kind, key, stages with the ids of their events, second in which it was certain), sorted."""
    rows = [
        (
            row["kind"],
            row["k"],
            {stage: [event["id"] for event in taken] for stage, taken in row["stages"]},
            None if row["detected_at"] is None else (row["detected_at"] - T).total_seconds(),
        )
        for row in found.to_pylist()
    ]
    return sorted(rows, key=str)


CALLS = events(("p", "abbc"), ("q", "ac  ab"), ("r", "a"))


def test_the_frame() -> None:
    """Its columns do not depend on the pattern's stages: kind, pattern, match_id, the key, times, stages, event."""
    found = detect(CALLS, CALL, outputs=("matches", "timeouts", "late"), **OPTIONS)
    assert found.schema.equals(
        pa.schema(
            [
                pa.field("kind", pa.string(), nullable=False),
                pa.field("pattern", pa.string(), nullable=False),
                pa.field("match_id", pa.string(), nullable=False),
                ("k", pa.string()),
                ("match_start", TIME),
                ("match_end", TIME),
                ("detected_at", TIME),
                ("stages", pa.map_(pa.string(), pa.list_(EVENT))),
                ("event", EVENT),
            ]
        )
    )
    assert found.schema == detect(CALLS.slice(0, 0), CALL, outputs="late", **OPTIONS).schema
    assert in_short(found) == [
        ("match", "p", {"a": [0], "b": [1, 2], "c": [3]}, 3),
        ("match", "q", {"a": [4], "b": [], "c": [5]}, 1),
        ("timeout", "q", {"a": [6], "b": [7], "c": []}, 14),
        ("timeout", "q", {"a": [6], "b": [], "c": []}, 14),
        ("timeout", "r", {"a": [8], "b": [], "c": []}, 10),
    ]
    row = found.to_pylist()[0]
    assert {name: row[name] for name in ("kind", "pattern", "k", "match_start", "match_end", "event")} == {
        "kind": "match",
        "pattern": "call",
        "k": "p",
        "match_start": at(0),
        "match_end": at(3),
        "event": None,
    }
    assert row["stages"][1] == ("b", [{"id": 1, "x": "b"}, {"id": 2, "x": "b"}])


@pytest.mark.parametrize(
    ("outputs", "kinds"),
    [
        ("matches", {"match"}),
        (["timeouts"], {"timeout"}),
        (("timeouts", "matches", "timeouts"), {"match", "timeout"}),
        ("late", set()),
    ],
)
def test_only_named_outputs(outputs: Any, kinds: set[str]) -> None:
    """Only the named outputs are returned; a finite input has no late events."""
    assert {*detect(CALLS, CALL, outputs=outputs, **OPTIONS).column("kind").to_pylist()} == kinds


def test_matches_are_the_same() -> None:
    """The matches in the frame are those without outputs, with the same ids; timeouts have ids of their own."""
    alone = detect(CALLS, CALL, **OPTIONS).to_pylist()
    found = detect(CALLS, CALL, outputs=BOTH, **OPTIONS).to_pylist()
    matches = [row for row in found if row["kind"] == "match"]
    assert [row["match_id"] for row in matches] == [row["match_id"] for row in alone]
    assert [dict(row["stages"])["b"] for row in matches] == [row["b"] for row in alone]
    assert len({row["match_id"] for row in found}) == len(found)


def test_a_timeout_has_another_id_than_the_match_of_its_events() -> None:
    """A match and a timed-out partial match of the same events have different ids."""
    table = events(("p", "a"))
    match = detect(table, Pattern.begin("a"), outputs="matches", **OPTIONS)
    timeout = detect(table, Pattern.begin("a").next("b").within("1 second"), outputs="timeouts", **OPTIONS)
    assert (len(match), len(timeout)) == (1, 1)
    assert match.column("match_id") != timeout.column("match_id")


def test_timeouts_are_distinct() -> None:
    """Partial matches with the same events at the deadline give one timeout. Here the loop may still take events in
    one, and has ended in another.
    """
    table = events(("p", "abb"))
    loop = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'").times(1, 3).followed_by("c")
    found = detect(table, loop.where("x = 'c'").within("9 seconds"), outputs="timeouts", **OPTIONS)
    assert in_short(found) == [
        ("timeout", "p", {"a": [0], "b": [1, 2], "c": []}, 9),
        ("timeout", "p", {"a": [0], "b": [1], "c": []}, 9),
    ]


@pytest.mark.parametrize("restored", [False, True])
def test_timeouts_remain_distinct(*, restored: bool) -> None:
    """An event moves a branch to a state whose deadline has passed, after another branch with the same events has timed
    out: there is no second timeout.
    """
    group = Pattern.begin("a").where("x = 'a'").times(2, 3, window="2 seconds")
    pattern = Pattern.begin(group).one_or_more().followed_by("c").where("x = 'c'")
    table = events(("p", "aaaa     z          z"), ("q", "c"))
    found = detect(table, pattern, outputs="timeouts", **OPTIONS)
    assert in_short(found) == [("timeout", "p", {"a": [*range(first, 4)], "c": []}, 5) for first in range(4)]
    rows = []
    matcher = Matcher(pattern, table, outputs="timeouts", lateness="0 seconds", **OPTIONS)
    for row in range(len(table)):
        rows.append(matcher.process(table.slice(row, 1)))
        if restored:
            state = matcher.snapshot()
            matcher = Matcher(pattern, table, outputs="timeouts", lateness="0 seconds", **OPTIONS)
            matcher.restore(state)
    rows.append(matcher.finish())
    assert sorted(pa.concat_tables(rows)["match_id"].to_pylist()) == sorted(found["match_id"].to_pylist())
    assert matcher.counts.timeouts == 4


def test_deadlines() -> None:
    """A timeout is reported at its deadline: that of the window, or of the stage in which the partial match waited."""
    pattern = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'").within_previous("2 seconds")
    pattern = pattern.followed_by("c").where("x = 'c'").within_previous("4 seconds").within("5 seconds")
    found = detect(events(("p", "ab"), ("q", "a"), ("r", "a b")), pattern, outputs="timeouts", **OPTIONS)
    assert in_short(found) == [
        ("timeout", "p", {"a": [0], "b": [1], "c": []}, 5),
        ("timeout", "q", {"a": [2], "b": [], "c": []}, 2),
        ("timeout", "r", {"a": [3], "b": [], "c": []}, 2),
    ]


def test_as_of() -> None:
    """With `as_of`, only partial matches whose deadline is not after that time give timeouts."""
    for second, count in ((9, 0), (10, 1), (13, 1), (14, 3)):
        found = detect(CALLS, CALL, outputs="timeouts", as_of=at(second), **OPTIONS)
        assert len(found) == count


def test_groups_and_loops() -> None:
    """Every stage that takes events is in the map, stages of groups with their events of all turns."""
    turn = Pattern.begin("b").where("x = 'b'").next("c").where("x = 'c'")
    pattern = Pattern.begin("a").where("x = 'a'").next(turn).times(2).next("d").where("x = 'd'").not_next("e")
    pattern = pattern.where("x = 'e'").within("60 seconds").skip(Skip.past_last_event())
    found = detect(events(("p", "abcbcdx"), ("q", "abcb")), pattern, outputs=BOTH, **OPTIONS)
    assert in_short(found) == [
        ("match", "p", {"a": [0], "b": [1, 3], "c": [2, 4], "d": [5]}, 6),
        ("timeout", "q", {"a": [7], "b": [8, 10], "c": [9], "d": []}, 60),
    ]


def test_measures() -> None:
    """Measures take the place of the stages, for timeouts too, before the late event."""
    measures = {"n": "count(b)", "last": "c.id", "text": "concat(a.x, first(b.x))"}
    found = detect(CALLS, CALL, outputs=BOTH, measures=measures, **OPTIONS)
    assert found.column_names == [
        *("kind", "pattern", "match_id", "k", "match_start", "match_end", "detected_at"),
        *("n", "last", "text", "event"),
    ]
    assert sorted((row["k"], row["kind"], row["n"], row["last"], row["text"]) for row in found.to_pylist()) == [
        ("p", "match", 2, 3, "ab"),
        ("q", "match", 0, 5, None),
        ("q", "timeout", 0, None, None),
        ("q", "timeout", 1, None, "ab"),
        ("r", "timeout", 0, None, None),
    ]


def test_counts() -> None:
    """The report counts both kinds; without outputs, timeouts are neither determined nor counted."""
    report = Report()
    detect(CALLS, CALL, outputs=BOTH, report=report, **OPTIONS)
    assert (report.counts.matches, report.counts.timeouts) == (2, 3)
    detect(CALLS, CALL, report=report, **OPTIONS)
    assert (report.counts.matches, report.counts.timeouts) == (2, 0)


def test_kinds_of_tables() -> None:
    """The frame is of the same kind as the events; its rows are the same."""
    expected = in_short(detect(CALLS, CALL, outputs=BOTH, **OPTIONS))
    frame = detect(CALLS.to_pandas(), CALL, outputs=BOTH, **OPTIONS)
    assert isinstance(frame, pd.DataFrame)
    assert sorted(zip(frame["kind"], frame["k"], strict=True)) == [row[:2] for row in expected]
    assert frame["stages"][0][1][0] == "b"
    polars = detect(pl.DataFrame(CALLS), CALL, outputs=BOTH, **OPTIONS)
    assert isinstance(polars, pl.DataFrame)
    assert polars.select("kind", "k").sort("kind", "k").rows() == [row[:2] for row in expected]
    relation = detect(duckdb.from_arrow(CALLS), CALL, outputs=BOTH, **OPTIONS)
    assert relation.select("len(stages['b']) AS n").order("n").fetchall() == [(0,), (0,), (0,), (1,), (2,)]


ALL = "'matches', 'timeouts', 'no_match', 'inconsistent', 'late'"


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            "match",
            f"outputs: 'match' cannot be requested; allowed are {ALL}",
        ),
        (
            ["matches", "all", 3],
            f"outputs: 'all', 3 cannot be requested; allowed are {ALL}",
        ),
        (
            [],
            (f"outputs: none is named; name at least one of {ALL}, or leave it out for matches only"),
        ),
        (7, f"outputs: 7 cannot be requested; allowed are {ALL}"),
    ],
)
def test_unknown_outputs(outputs: Any, message: str) -> None:
    """The message names the unknown output and the possible ones."""
    with pytest.raises(SchemaError) as caught:
        detect(CALLS, CALL, outputs=outputs, **OPTIONS)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["kind", "Pattern", "stages", "event"])
def test_keys_with_names_of_the_frame(name: str) -> None:
    """A key column is a column of the frame, so its name is refused; without outputs a key may have it."""
    table = CALLS.rename_columns(["id", name, "at", "x"])
    with pytest.raises(SchemaError) as caught:
        detect(table, CALL, outputs="matches", **{**OPTIONS, "key": name})
    assert str(caught.value) == f"key: {name!r} is the name of a column that the output has itself; rename the key's"
    assert len(detect(table, CALL, **{**OPTIONS, "key": name})) == 2


# On Spark


@pytest.mark.spark
@pytest.mark.parametrize("measures", [None, {"n": "count(b)", "open_for": "c.at - a.at", "text": "concat(a.x, b.x)"}])
@pytest.mark.parametrize("outputs", ["timeouts", ("matches", "timeouts", "late")])
def test_spark_gives_the_same(spark: SparkSession, measures: Any, outputs: Any) -> None:
    """Spark gives the same columns, rows and counts."""
    here, there = Report(), Report()
    options = {**OPTIONS, "columns": ["id", "at", "x"], "measures": measures, "outputs": outputs}
    expected = detect(CALLS, CALL, report=here, **options)
    frame = detect(spark.createDataFrame(CALLS), CALL, report=there, **options)
    found = frame.toArrow()
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist())) != []
    assert there.counts == here.counts
    if measures is None:
        assert frame.schema["stages"].dataType.simpleString() == (
            "map<string,array<struct<id:bigint,at:timestamp,x:string>>>"
        )
        (open_,) = (
            frame.where("kind = 'timeout' AND size(stages['b']) = 1").selectExpr("stages['b'][0].id AS id").collect()
        )
        assert open_.id == 7


@pytest.mark.spark
def test_spark_refuses_the_same(spark: SparkSession) -> None:
    """Names are checked before anything runs."""
    frame = spark.createDataFrame(CALLS.rename_columns(["id", "kind", "at", "x"]))
    with pytest.raises(SchemaError, match="key: 'kind' is the name of a column that the output has itself"):
        detect(frame, CALL, outputs="matches", **{**OPTIONS, "key": "kind"})


def test_timeouts_of_a_pattern_that_has_none() -> None:
    """Without a window, timeouts alone are refused; together with matches they are accepted for any pattern."""
    pattern = Pattern.begin("a").followed_by("b")
    with pytest.raises(PatternError) as caught:
        detect(CALLS, pattern, outputs="timeouts", **OPTIONS)
    assert str(caught.value) == (
        "timeouts alone are asked for, and without a window there are none (outputs)\n"
        "Add within(…) or max_gap(…), or within_previous(…) to a stage, or ask for matches too."
    )
    with pytest.raises(PatternError) as caught:
        detect(CALLS, {"with": pattern.within("1 hour"), "without": pattern}, outputs="timeouts", **OPTIONS)
    assert str(caught.value) == (
        "timeouts alone are asked for, and without a window there are none (pattern 'without', outputs)\n"
        "Add within(…) or max_gap(…), or within_previous(…) to a stage, or ask for matches too, "
        "or leave this pattern out."
    )
    windows = pattern.within_previous("1 hour"), pattern.one_or_more(window="1 hour"), pattern.within("1 hour")
    for windowed in windows:
        detect(CALLS, windowed, outputs="timeouts", **OPTIONS)
    detect(CALLS, pattern, outputs=("matches", "timeouts"), **OPTIONS)
