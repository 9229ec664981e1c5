"""The host in process accepts every kind of table, and returns the matches as the same kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cepheid import CepheidWarning, ConditionError, EventError, Matcher, OccurrencePattern, Pattern, SchemaError, detect

PATTERN = (
    Pattern.begin("low").where("n < 2").followed_by("high").where("n > low.n + 1").one_or_more().within("9 minutes")
)
START = datetime(2024, 1, 1, tzinfo=UTC)
EVENTS = pa.table(
    {
        "device": pa.array(["p", "q"] * 6),
        "at": pa.array([START + timedelta(minutes=i) for i in range(12)], pa.timestamp("us", "UTC")),
        "n": pa.array([0, 1, 5, 3, 1, 0, None, 4, 2, 2, 9, 9], pa.int64()),
    }
)


def matches_of(events: Any) -> Any:
    measures = {"k": "count(high)", "n": "max(high.n)"}
    return detect(events, PATTERN, key="device", time="at", columns=["n"], measures=measures)


def rows(matches: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(matches.column(name).to_pylist() for name in ("match_id", "device", "k", "n")), strict=True))


EXPECTED = rows(matches_of(EVENTS))


def batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


KINDS: dict[str, tuple[Callable[[pa.Table], Any], type, Callable[[Any], pa.Table]]] = {
    "pandas": (
        lambda table: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
        pd.DataFrame,
        pa.Table.from_pandas,
    ),
    "pandas of Arrow types": (
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
        pd.DataFrame,
        pa.Table.from_pandas,
    ),
    "polars": (pl.DataFrame, pl.DataFrame, pa.table),
    "lazy polars": (lambda table: pl.DataFrame(table).lazy(), pl.LazyFrame, lambda frame: pa.table(frame.collect())),
    "Arrow table": (lambda table: table, pa.Table, lambda table: table),
    "Arrow batch": (batch, pa.Table, lambda table: table),
    "Arrow batches": (lambda table: table.to_reader(max_chunksize=5), pa.Table, lambda table: table),
    "many chunks": (
        lambda table: pa.Table.from_batches(table.to_batches(max_chunksize=1), table.schema),
        pa.Table,
        lambda table: table,
    ),
    "DuckDB": (duckdb.from_arrow, duckdb.DuckDBPyRelation, lambda relation: relation.to_arrow_table()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_table(kind: str) -> None:
    """The matches are the same, ids included, and have the kind of the input."""
    make, expected, to_arrow = KINDS[kind]
    matches = matches_of(make(EVENTS))
    assert isinstance(matches, expected)
    assert rows(to_arrow(matches)) == EXPECTED
    assert EXPECTED


@pytest.mark.parametrize("kind", KINDS)
def test_no_events(kind: str) -> None:
    """Without events there are no matches, with the same columns."""
    make, _, to_arrow = KINDS[kind]
    found = to_arrow(matches_of(make(EVENTS.slice(0, 0))))
    assert found.num_rows == 0
    assert found.column_names == ["match_id", "device", "match_start", "match_end", "detected_at", "k", "n"]


BIG = 2**53 + 1
"""Not a double."""


def test_integers_with_nulls_in_pandas() -> None:
    """All digits are retained: columns have nullable types, values within structs and lists are Python's."""
    pattern = Pattern.begin("one").where("n = 1").followed_by("two").where("n = 2").one_or_more().followed_by("end")
    pattern = pattern.where("n = 3")
    inner = pa.array([{"b": BIG, "l": [BIG, None]}, None, {"b": None, "l": None}] * 2)
    events = pd.DataFrame(
        {"k": [BIG, BIG, BIG, 7, 7, 7], "at": [START + timedelta(minutes=i) for i in range(6)], "n": [1, 2, 3] * 2}
    ).assign(
        v=pd.array([BIG, None, BIG, None, None, None], "Int64"), s=pd.Series(inner, dtype=pd.ArrowDtype(inner.type))
    )
    values = detect(
        events, pattern, key="k", time="at", measures={"v": "one.v", "small": "cast(one.v % 10 AS TINYINT)"}
    )
    assert values.dtypes[["k", "v", "small"]].map(str).tolist() == ["int64", "Int64", "Int8"]
    assert values[["k", "v"]].to_numpy(object).tolist() == [[BIG, BIG], [7, pd.NA]]
    found = detect(events, pattern, key="k", time="at", columns=["v", "s"])
    assert found["one"][0]["v"] == found["one"][0]["s"]["b"] == found["one"][0]["s"]["l"][0] == BIG
    assert found["one"][1]["v"] is None
    assert [row["v"] for row in found["two"][0]] == [None]


@pytest.mark.parametrize(
    ("events", "advice"),
    [
        ([{"device": "p", "at": START, "n": 1}], ". Make a table of it: pyarrow.Table.from_pylist(events)"),
        ({"n": [1]}, ". Make a table of it: pyarrow.table(events)"),
        (None, ""),
        (3, ""),
    ],
)
def test_what_is_no_table(events: object, advice: str) -> None:
    """Other values are refused, and the message says what is accepted, and how to make a table of them."""
    message = (
        f"events are a {type(events).__name__}; detect takes a Spark DataFrame, or a pandas, polars or "
        "pyarrow table, a DuckDB relation, or anything with the Arrow C stream interface" + advice
    )
    with pytest.raises(SchemaError) as error:
        detect(events, PATTERN, time="at")
    assert str(error.value) == message


def test_a_column_without_values() -> None:
    """A column of Arrow's type null is returned, also in arrays."""
    events = EVENTS.append_column("nothing", pa.nulls(len(EVENTS)))
    (row, *_) = detect(events, PATTERN, key="device", time="at", columns=["n", "nothing"]).to_pylist()
    assert row["low"]["nothing"] is None
    assert [event["nothing"] for event in row["high"]] == [None] * len(row["high"])


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("nothing = a.nothing", 0),
        ("nothing <=> a.nothing", 1),
        ("inside.nothing = a.inside.nothing", 0),
        ("last(a.nothing, 1) IS NULL", 1),
        ("sum(a.nothing) IS NULL AND avg(a.nothing) IS NULL", 1),
        ("CASE WHEN n > 1 THEN NULL END = a.n", 0),
        ("CASE WHEN a.n > 1 THEN NULL END IS NULL", 1),
    ],
)
def test_conditions_on_nothing_but_nulls(condition: str, count: int) -> None:
    """A column of Arrow's type null, such as an empty one in a file, is NULL in conditions across events."""
    nulls = pa.nulls(2)
    inside = pa.StructArray.from_arrays([nulls], names=["nothing"])
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    events = pa.table({"n": [1, 2], "at": times, "nothing": nulls, "inside": inside})
    found = detect(events, Pattern.begin("a").next("b").where(condition), time="at", measures={"s": "sum(a.nothing)"})
    assert found.column("s").to_pylist() == [None] * count


def test_polars_categories_and_lists() -> None:
    """Categorical and Enum are returned as strings, also in structs and lists, and may be key and sequence."""
    category, letters = pl.Enum(["q", "p"]), ["p", "q", None, "p"]
    frame = pl.DataFrame(
        {
            "k": pl.Series(["p", "q", "p", "q"], dtype=category),
            "at": [START] * 4,
            "n": pl.Series(["b", "a", "c", "c"], dtype=pl.Categorical),
            "c": pl.Series(letters, dtype=pl.Categorical),
            "l": pl.Series([["p"], [], None, ["q", None]], dtype=pl.List(category)),
            "f": pl.Series([["p", "q"]] * 4, dtype=pl.Array(pl.Categorical, 2)),
            "s": pl.Series(
                [{"x": letter, "y": letter} for letter in letters], dtype=pl.Struct({"x": category, "y": str})
            ),
            "t": [["p"], None, ["q"], []],
            "b": [b"p"] * 4,
        }
    )
    pattern = Pattern.begin("one").where("c IS NOT NULL").next("two").where("n = 'c'")
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "n"}
    found = detect(frame, pattern, **options)
    assert found["k"].to_list() == ["p", "q"]
    given = frame.to_dicts()
    assert [[row["one"], row["two"]] for row in found.to_dicts()] == [[given[0], given[2]], [given[1], given[3]]]
    live = Matcher(pattern, frame.schema.to_frame(), **options)
    rows = pa.concat_tables([live.process(frame), live.finish()])
    assert sorted(pl.DataFrame(rows).to_dicts(), key=lambda row: row["k"]) == found.to_dicts()


def test_a_type_column_without_values() -> None:
    """With an empty column of types, as an empty CSV file has it, no event is of any type."""
    pattern = Pattern.begin("a").subtype("payment").taxonomy("type", {"card": "payment"})
    for events in (EVENTS, EVENTS.slice(0, 0)):
        typed = events.append_column("type", pa.nulls(len(events)))
        assert detect(typed, pattern, key="device", time="at").num_rows == 0


def test_a_taxonomy_the_wrong_way_round_is_warned_of() -> None:
    """Without the warning, such a pattern would silently find nothing."""
    pattern = Pattern.begin("a").subtype("payment").taxonomy("device", {"payment": ["p", "q"]})
    with pytest.warns(CepheidWarning, match='write {"p": "payment", "q": "payment"}') as caught:
        assert detect(EVENTS, pattern, key="device", time="at").num_rows == 0
    assert caught[0].filename == __file__


def test_an_event_at_a_time_that_python_lacks() -> None:
    """An error message contains the event, with the time as text."""
    at = pa.array([0, 1 << 60], pa.timestamp("us", "UTC"))
    pattern = Pattern.begin("low").followed_by("high").where("1 div (n - low.n) > 0")
    message = re.escape("device = 'p', at = '38504-08-17T21:30:06.846976+00:00', n = 0")
    with pytest.raises(ConditionError, match=message):
        detect(pa.table({"device": ["p", "p"], "at": at, "n": [0, 0]}), pattern, key="device", time="at")


def test_a_function_and_a_time_that_python_lacks() -> None:
    """The time cannot be passed to a function, so it is an error, and is not replaced by another time."""
    at = pa.array([0, 1 << 60], pa.timestamp("us", "UTC"))
    pattern = Pattern.begin("low").where(lambda event: event["n"] > 0, name="f")
    with pytest.raises(
        EventError, match="a value in column 'at' cannot become a Python value, as functions need it: date v"
    ):
        detect(pa.table({"device": ["p", "p"], "at": at, "n": [0, 0]}), pattern, key="device", time="at")


def test_deadlines_that_python_lacks() -> None:
    """Columns of times can hold them. Within structs, where pandas has Python's values, they are an error."""
    last = pa.array([datetime(9999, 12, 31, 23, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    events = pa.table({"at": last, "type": ["A"]})
    gone = Pattern.begin("a").not_followed_by("b").within("2 hours")
    later = OccurrencePattern.of("A + 2 hours").taxonomy("type")
    for make in (lambda table: table, pl.DataFrame, pa.Table.to_pandas):
        found = pa.table(detect(make(events), gone, time="at", measures={"type": "a.type"}))
        assert str(found.column("detected_at")[0].value) == "253402304400000000"
    assert len(detect(pl.DataFrame(events), later, time="at")) == 1
    with pytest.raises(EventError) as caught:
        detect(events.to_pandas(), later, time="at")
    assert str(caught.value) == (
        "a time within structs is none of Python's, in which pandas has them: year 10000 is out of range. "
        "Choose columns without it, or give the events as a polars or pyarrow table"
    )


def test_times_that_are_placeholders() -> None:
    """A time so far away that deadlines after it could not be computed is refused."""
    at = pa.array([0, 2**63 - 1]).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(EventError, match="further than 100,000 years from 1970: is it a placeholder"):
        detect(pa.table({"device": ["p", "p"], "at": at, "n": [0, 5]}), PATTERN, key="device", time="at")
