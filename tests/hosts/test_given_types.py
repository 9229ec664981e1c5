"""The output has the types of the input, for each combination of types and frames."""

# ruff: noqa: DTZ001 - times without a zone are tested here
from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cepheid import CepheidWarning, IntervalMatcher, Matcher, OccurrencePattern, Pattern, Report, SchemaError, detect
from cepheid.intervals import interval_pattern

AT = [datetime(2026, 3, 2, 8, minute) for minute in (0, 1, 2, 3)]
PAIR = Pattern.begin("a").where("x = 1").next("b").where("x = 2")

TIMES: dict[str, tuple[pa.DataType, pa.DataType]] = {
    "naive": (pa.timestamp("us"), pa.timestamp("us")),
    "zone": (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "Europe/Berlin")),
    "nanoseconds": (pa.timestamp("ns"), pa.timestamp("us")),
    "seconds": (pa.timestamp("s", "UTC"), pa.timestamp("us", "UTC")),
}
"""The type of the event time → that of detected_at."""


def table(time: pa.DataType = TIMES["zone"][0], **columns: pa.Array) -> pa.Table:
    at = pa.array(AT, pa.timestamp("us")).cast(pa.timestamp("us", "UTC") if time.tz else pa.timestamp("us"))
    return pa.table({"at": at.cast(time), "x": [1, 2, 1, 2], **columns})


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda events: events,
    "pandas": lambda events: events.to_pandas(),
    "polars": pl.DataFrame,
    "duckdb": duckdb.from_arrow,
}


def type_of(frame: Any, name: str) -> Any:
    if isinstance(frame, pa.Table):
        return frame.schema.field(name).type
    if isinstance(frame, pd.DataFrame):
        return frame[name].dtype
    return frame.schema[name] if isinstance(frame, pl.DataFrame) else frame[name].types[0]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("time", TIMES)
def test_times(time: str, frame: str) -> None:
    """match_start and match_end have the type of the event time; detected_at has its zone, in microseconds."""
    events = FRAMES[frame](table(TIMES[time][0], t=pa.array(["A", "B", "A", "B"])))
    for pattern in (PAIR, OccurrencePattern.of("A; B").taxonomy("t")):
        matches = detect(events, pattern, time="at", columns=["x"])
        assert type_of(matches, "match_start") == type_of(matches, "match_end") == type_of(events, "at")
        computed = FRAMES[frame](pa.table({"d": pa.array([], TIMES[time][1])}))
        assert str(type_of(matches, "detected_at")) == str(type_of(computed, "d"))


def test_times_that_agree_with_the_events() -> None:
    """Times of the output can be looked up in, and joined with, those of the events."""
    for time, _ in TIMES.values():
        events = table(time).to_pandas()
        matches = detect(events, PAIR, time="at", columns=["x"])
        assert events["at"].isin(matches["match_start"]).tolist() == [True, False, True, False]
        assert len(matches.merge(events, left_on="match_end", right_on="at")) == 2


def test_dates() -> None:
    """A DATE stands for its first instant; a deadline may be any instant, so detected_at is a TIMESTAMP."""
    days = [date(2026, 3, day) for day in (1, 2, 3, 4)]
    pattern = Pattern.begin("a").where("x = 1").not_followed_by("b").where("x = 3").within("36 hours")
    matches = detect(pa.table({"at": days, "x": [1, 2, 1, 2]}), pattern, time="at").to_pylist()
    assert [row["match_start"] for row in matches] == [days[0], days[2]]
    assert matches[0]["detected_at"] == datetime(2026, 3, 2, 12)


def test_times_in_structs_of_occurrences() -> None:
    """Times of members, and of variables that are not one event, have the zone of the events."""
    events = table(pa.timestamp("us"), t=pa.array(["A", "B", "A", "C"]))
    pattern = OccurrencePattern.of("?w:(A; B) | (A; (?d:C + 1min))").taxonomy("t")
    for row in detect(events, pattern, time="at").to_pylist():
        assert {member["time"].tzinfo for member in row["events"]} == {None}
    spans = [row["w"] for row in detect(events, pattern, time="at").to_pylist() if row["w"] is not None]
    assert spans == [{"start": AT[0], "end": AT[1]}]


def test_a_deadline_in_an_hour_that_clocks_show_twice() -> None:
    """A local time does not say which of the two hours is meant, so there is one warning."""
    at = [datetime(2026, 10, 25, 1, 30), datetime(2026, 10, 25, 1, 40)]
    pattern = Pattern.begin("a").not_followed_by("b").where("x = 3").within("1 hour")
    with pytest.warns(
        CepheidWarning, match="in 2 rows detected_at is in an hour that clocks in Europe/Berlin show twice"
    ):
        found = detect(pa.table({"at": at, "x": [1, 2]}), pattern, time="at", time_zone="Europe/Berlin")
    assert found.column("detected_at")[0].as_py() == datetime(2026, 10, 25, 2, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detect(pa.table({"at": at, "x": [1, 2]}), pattern, time="at", report=Report())


KEYS: dict[str, pa.Array] = {
    "categorical": pa.array(["p", "p", "q", "q"]).dictionary_encode(),
    "integers": pa.array([1, 1, 2, 2], pa.int16()),
    "unsigned": pa.array([1, 1, 2, 2], pa.uint32()),
    "large": pa.array(["p", "p", "q", "q"], pa.large_string()),
    "views": pa.array(["p", "p", "q", "q"], pa.string_view()),
    "dates": pa.array([date(2026, 1, 1)] * 2 + [date(2026, 1, 2)] * 2),
    "decimals": pa.array([Decimal("1.50")] * 2 + [Decimal("2.50")] * 2),
    "nanoseconds": pa.array([1_000, 1_000, 2_000, 2_000], pa.timestamp("ns")),
    "durations": pa.array([1, 1, 2, 2], pa.duration("s")),
}


LACKING = {("views", "pandas"), ("durations", "duckdb")}
"""Kinds of columns that a frame does not have."""


@pytest.mark.parametrize(("kind", "frame"), sorted({(kind, frame) for kind in KEYS for frame in FRAMES} - LACKING))
def test_keys_and_columns(kind: str, frame: str) -> None:
    """The key, and a measure that is just a column of an event, have the column's type."""
    events = FRAMES[frame](table(k=KEYS[kind]))
    matches = detect(events, PAIR, key="k", time="at", measures={"one": "a.k", "last": "last(b.k)", "n": "count(b)"})
    if frame != "duckdb" or kind not in ("categorical", "unsigned"):
        for name in ("k", "one", "last"):
            assert type_of(matches, name) == type_of(events, "k"), name
    keys = (matches if isinstance(matches, pa.Table) else pa.table(matches)).column("k").to_pylist()
    assert keys == KEYS[kind].to_pylist()[::2]


def test_types_of_pandas_alone() -> None:
    """Categories without a match are retained; nullable integers remain nullable, also without NULLs."""
    frame = table().to_pandas()
    frame["k"] = pd.Categorical(["p", "p", "q", "q"], categories=["r", "q", "p"], ordered=True)
    frame["n"] = pd.array([1, 2, 3, 4], dtype="Int32")
    matches = detect(frame, PAIR, key="k", time="at", measures={"n": "a.n"})
    assert matches["k"].dtype == frame["k"].dtype
    assert matches["n"].dtype == pd.Int32Dtype()


def test_types_of_polars_alone() -> None:
    """Enum and Categorical are distinguished."""
    frame = pl.DataFrame(table()).with_columns(
        k=pl.Series(["p", "p", "q", "q"], dtype=pl.Enum(["q", "p"])), c=pl.Series(["u"] * 4, dtype=pl.Categorical)
    )
    matches = detect(frame, PAIR, key=["k", "c"], time="at", columns=["x"])
    assert matches.schema["k"] == frame.schema["k"]
    assert matches.schema["c"] == pl.Categorical
    live = Matcher(PAIR, frame, key=["k", "c"], time="at", columns=["x"], lateness="0 seconds")
    rows = pl.DataFrame(pa.concat_tables([live.process(frame), live.finish()]))
    assert rows.sort("match_start").equals(matches.sort("match_start"))
    assert rows.schema == matches.schema


def test_matchers() -> None:
    """A matcher gives the types of the schema with which it was made, also in the list of partial matches."""
    events = table(pa.timestamp("ns"), k=KEYS["categorical"])
    live = Matcher(PAIR.within("1 hour"), events, key="k", time="at", lateness="0 seconds", outputs=["matches", "late"])
    rows = pa.concat_tables([live.process(events), live.finish()])
    assert (rows.schema.field("k").type, len(rows)) == (KEYS["categorical"].type, 2)
    assert rows.schema.field("match_end").type == pa.timestamp("ns")
    live.process(events.slice(0, 1))
    open_ = live.partial_matches()
    assert open_.schema.field("match_start").type == pa.timestamp("ns")
    assert open_.schema.field("deadline").type == pa.timestamp("us")
    spans = table(pa.timestamp("us"), t=pa.array(["A"] * 4)).rename_columns(["start", "x", "t"])
    spans = spans.append_column("end", spans.column("start"))
    intervals = IntervalMatcher(
        interval_pattern("EVENT PAL(A a)").taxonomy("t"), spans, time=("start", "end"), lateness=None
    )
    rows = pa.concat_tables([intervals.process(spans), intervals.finish()])
    assert {rows.schema.field(name).type for name in ("match_start", "match_end", "detected_at")} == {
        pa.timestamp("us")
    }


@pytest.mark.spark
def test_spark(spark: Any) -> None:
    """TIMESTAMP_NTZ and DATE are returned as such, in the local time of `time_zone`, whatever the session's zone."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.createDataFrame(table(pa.timestamp("us"), k=pa.array([1, 1, 2, 2], pa.int16())).to_pandas())
    frame = frame.withColumn("at", F.col("at").cast("timestamp_ntz"))
    matches = detect(frame, PAIR, key="k", time="at", time_zone="Europe/Berlin", measures={"one": "a.at"})
    types = dict(matches.dtypes)
    assert {types[name] for name in ("match_start", "match_end", "detected_at", "one")} == {"timestamp_ntz"}
    assert types["k"] == "smallint"
    assert sorted(row.match_start for row in matches.collect()) == [AT[0], AT[2]]
    days = frame.withColumn("at", F.to_date("at") + F.col("x").cast("int"))
    late = detect(days, PAIR, key="k", time="at", columns=["x"])
    assert dict(late.dtypes)["match_start"] == "date"
    assert dict(late.dtypes)["detected_at"] == "timestamp_ntz"
    assert {row.match_start for row in late.collect()} == {date(2026, 3, 3)}
    instants = frame.withColumn("at", F.col("at").cast("timestamp"))
    assert dict(detect(instants, PAIR, key="k", time="at", columns=["x"]).dtypes)["match_start"] == "timestamp"


@pytest.mark.parametrize(("given", "with_null"), [("bool", "boolean"), ("uint8", "UInt8"), ("uint64", "UInt64")])
def test_measures_that_are_null_in_pandas(given: str, with_null: str) -> None:
    """A measure that a pattern lacks is NULL in its rows, not False and not another number."""
    events = table(pa.timestamp("us")).to_pandas()
    events["n"] = events["x"].astype(given)
    patterns = {"p": Pattern.begin("a").where("x = 1"), "q": Pattern.begin("b").where("x = 2")}
    measures = {"p": {"z": "a.x"}, "q": {"m": "b.n"}}
    found = detect(events, patterns, time="at", measures=measures)["m"]
    assert (str(found.dtype), found.isna().tolist()) == (with_null, [True, True, False, False])
    assert str(detect(events, patterns["q"], time="at", measures={"m": "b.n"})["m"].dtype) == given


def test_times_that_are_objects_in_pandas() -> None:
    """They remain objects, so that they can be joined."""
    events = table(pa.timestamp("us")).to_pandas()
    events["at"] = pd.Series([time.to_pydatetime() for time in events["at"]], dtype=object)
    matches = detect(events, PAIR, time="at", columns=["x"])
    assert len(matches.merge(events, left_on="match_end", right_on="at")) == 2


def test_types_of_polars_that_arrow_lacks() -> None:
    """The message names them; for objects, polars gives only the addresses."""
    events = pl.DataFrame(table(pa.timestamp("us"))).with_columns(
        o=pl.Series([object()] * 4, dtype=pl.Object), i=pl.lit(1).cast(pl.Int128)
    )
    with pytest.raises(SchemaError, match=r"(?s)column 'o' .* type Object.*column 'i' .* type Int128"):
        detect(events, PAIR, time="at")


def test_keys_of_a_dictionary_can_be_joined() -> None:
    """All chunks have the same dictionary."""
    events = table(pa.timestamp("us"), k=KEYS["categorical"])
    found = detect(events, PAIR, key="k", time="at", columns=["x"]).column("k")
    assert len({str(chunk.dictionary) for chunk in found.chunks}) <= 1


def test_measures_of_the_same_name_from_different_columns() -> None:
    """The column has the common type of both, which can represent the values of each."""
    small = pa.array([1, 2, 3, 4], pa.uint8())
    events = table(pa.timestamp("us"), small=small, large=pa.array([1000] * 4, pa.int16()))
    patterns = {"p": Pattern.begin("a").where("x = 1"), "q": Pattern.begin("b").where("x = 2")}
    found = detect(events, patterns, time="at", measures={"p": {"m": "a.small"}, "q": {"m": "b.large"}})
    assert sorted(found.column("m").to_pylist()) == [1, 3, 1000, 1000]
