"""The sequence as items of ORDER BY: columns or expressions, ascending or descending, with NULL first or last."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share
from tests.stream.running import detected
from typer.testing import CliRunner

from cepheid import Matcher, Pattern, Report, SchemaError, SnapshotError, detect, partial_matches
from cepheid.cli.app import app
from cepheid.host import MatchesOf, open_host

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAIR = Pattern.begin("a").next("b")
NUMBERS = [None, -math.inf, -2.5, -0.0, 0.0, 7.0, math.nan]
TEXTS = [None, "", "a", "ab", "b", "é"]
ROWS = st.lists(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(TEXTS)), max_size=9)
ITEMS = [
    (way, nulls, name)
    for way in ("", " asc", " DESC")
    for nulls in ("", " nulls first", " NULLS LAST")
    for name in ("x", "s", "-x", "`s`")
]


def table(rows: list[tuple[Any, Any]]) -> pa.Table:
    numbers, texts = ([row[place] for row in rows] for place in range(2))
    columns = {"x": pa.array(numbers, pa.float64()), "s": pa.array(texts, pa.string())}
    at = pa.array([NOON] * len(rows), pa.timestamp("us", "UTC"))
    return pa.table({"n": range(len(rows)), **columns, "at": at, "k": [1] * len(rows)})


def in_order(rows: list[tuple[Any, Any]], items: list[tuple[str, str, str]]) -> list[int]:
    """The numbers of the rows in the order of Spark's ORDER BY; a name alone has NULL last."""
    numbers = [*range(len(rows))]
    for way, nulls, name in reversed(items):
        descending = way == " DESC"
        by_name = way == nulls == "" and name in ("x", "s")
        first = nulls == " nulls first" or (nulls == "" and not descending and not by_name)
        values = [_key(row, name) for row in rows]
        there = [n for n in numbers if values[n] is not None]
        there.sort(key=lambda n: _Backwards(values[n]) if descending else values[n])
        missing = [n for n in numbers if values[n] is None]
        numbers = [*missing, *there] if first else [*there, *missing]
    return numbers


def _key(row: tuple[Any, Any], name: str) -> Any:
    value = row[1] if "s" in name else row[0]
    if value is None or isinstance(value, str):
        return value if value is None else value.encode()
    return (math.isnan(value), 0.0 if math.isnan(value) else (-value if name == "-x" else value))


class _Backwards:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Backwards) -> bool:
        return bool(other.value < self.value)


def pairs(found: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["a"]["n"], row["b"]["n"]) for row in found.to_pylist())


@pytest.mark.filterwarnings("ignore:sequence. .* is NULL for every event:cepheid.errors.CepheidWarning")
@share(20)
@given(rows=ROWS, items=st.lists(st.sampled_from(ITEMS), min_size=1, max_size=2, unique_by=lambda item: item[2]))
def test_ties_are_in_the_order_of_order_by(rows: list[tuple[Any, Any]], items: list[tuple[str, str, str]]) -> None:
    """In process, whole tables and live matchers order events of equal time as ORDER BY does."""
    sequence = [*(f"{name}{way}{nulls}" for way, nulls, name in items), "n"]
    expected = sorted(pairwise(in_order(rows, items)))
    events = table(rows)
    assert pairs(detect(events, PAIR, time="at", sequence=sequence, report=Report())) == expected
    matcher = Matcher(PAIR, events.schema, time="at", key="k", sequence=sequence)
    for start in range(0, len(rows), 4):
        matcher.process(events.slice(start, 4))
    assert pairs(matcher.finish()) == expected


def test_a_direction_changes_no_match_id() -> None:
    """An event is identified by its time and the values of the sequence, whatever their direction."""
    events = table([(1.0, "a"), (2.0, "b")]).set_column(3, "at", [[NOON, NOON + timedelta(seconds=1)]])

    def ids(sequence: str) -> list[bytes]:
        ids_: list[bytes] = detect(events, PAIR, time="at", sequence=sequence).column("match_id").to_pylist()
        return ids_

    assert ids("x") == ids("x DESC") == ids("X ASC NULLS LAST")
    assert ids("-x") != ids("x desc")


def test_an_exact_name_of_a_column_wins() -> None:
    """A column named like an item of ORDER BY is this column."""
    events = table([(1.0, "a"), (2.0, "b")]).append_column("x desc", [[1, 2]])
    assert pairs(detect(events, PAIR, time="at", sequence="x desc")) == [(0, 1)]
    assert pairs(detect(events, PAIR, time="at", sequence="`x` desc")) == [(1, 0)]


def test_what_is_computed_is_not_in_the_output() -> None:
    """The value of an expression orders events, and is in no row and in no function's event."""
    seen: list[set[str]] = []

    def any_event(event: Any) -> bool:
        seen.append({*event})
        return True

    events = table([(1.0, "a"), (-2.0, "b")])
    pattern = Pattern.begin("a").where(any_event).next("b")
    (row,) = detect(events, pattern, time="at", sequence="abs(x) DESC").to_pylist()
    assert (row["a"]["n"], row["b"]["n"]) == (1, 0)
    assert {*row["a"]} == {*events.schema.names} == seen[0]


def test_live_events_come_in_the_direction() -> None:
    """With lateness "0 seconds" an event is late if it does not come after its key's last one in the direction."""
    events = table([(5.0, "a"), (3.0, "b"), (4.0, "c"), (None, "d")])
    matcher = Matcher(
        PAIR, events.schema, time="at", key="k", sequence="x desc", lateness="0 seconds", outputs=("matches", "late")
    )
    found = [matcher.process(events.slice(i, 1)).to_pylist() for i in range(4)]
    kinds = [[(row["kind"], row["event"] and row["event"]["n"]) for row in rows] for rows in found]
    assert kinds == [[], [("match", None)], [("late", 2)], [("match", None)]]
    other = Matcher(PAIR, events.schema, time="at", key="k", sequence="x", outputs=("matches", "late"))
    with pytest.raises(SnapshotError, match="sequence"):
        other.restore(matcher.snapshot())


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("rank", "sequence: no column named 'rank'"),
        ("rank desc", "sequence: no column named 'rank'"),
        ("x desc nulls", "sequence: 'x desc nulls'"),
        ("x +", "sequence: 'x +'"),
        ("rank + 1 desc", "sequence: 'rank + 1 desc'"),
        ("1 desc", "sequence: '1 desc': the expression names no column, so it orders nothing"),
        ("array(x) desc", "whose values have no order"),
        (" ", "sequence: ' ': it is empty"),
        ("rand() + x", "sequence: 'rand() + x'"),
    ],
)
def test_what_is_no_item_is_refused(item: str, message: str) -> None:
    """A text that is neither a column nor an item of ORDER BY over the columns is an error that says so."""
    events = table([(1.0, "a")])
    with pytest.raises(SchemaError) as error:
        detect(events, PAIR, time="at", sequence=item)
    assert message in str(error.value)
    with pytest.raises(SchemaError) as error:
        Matcher(PAIR, events.schema, time="at", sequence=item)
    assert message in str(error.value)


def test_a_durable_host_computes_what_orders_events(tmp_path: Path) -> None:
    """An input has items of ORDER BY, too; kept events and tiers are ordered by them."""
    events = table([(1.0, "a"), (-2.0, "b"), (3.0, "c")])
    url = f"sqlite:///{tmp_path}/store.db"
    with open_host(url) as host:
        host.input("events", events.schema, time="at", sequence=["abs(x) desc"], lateness="1 minute", keep="1 day")
        with pytest.raises(SchemaError, match=r"sequence: 'abs\(y\) desc'"):
            host.input("others", events.schema, time="at", sequence=["abs(y) desc"])
        host.deploy(PAIR.named("pairs"), input="events", measures={"x": "b.x"})
        host.deploy(PAIR.named("of pairs"), input=MatchesOf(("pairs",)))
        host.feed(events, input="events")
    with open_host(url) as host:
        host.deploy(PAIR.named("later"), input="events", columns="n", since=NOON)
        found = host.advance_time(NOON + timedelta(minutes=1), input="events").rows
    stages = [dict(row["stages"]) for row in found["later"].to_pylist()]
    assert sorted((one["a"][0]["n"], one["b"][0]["n"]) for one in stages) == [(1, 0), (2, 1)]
    assert sorted(row["x"] for row in found["pairs"].to_pylist()) == [-2.0, 1.0]


def test_the_command_line_takes_items(tmp_path: Path) -> None:
    """--sequence is a column or an item of ORDER BY."""
    pattern, events = tmp_path / "pair.yaml", tmp_path / "events.parquet"
    pattern.write_text("stages: [{begin: a}, {next: b}]")
    pq.write_table(table([(1.0, "a"), (-2.0, "b")]), events)
    given = ["detect", str(pattern), str(events), "--time", "at", "--sequence", "abs(x) desc", "--measure", "n=a.n"]
    done = CliRunner().invoke(
        app, [*given, "--json", "--output", str(tmp_path / "found.jsonl")], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["n"] for line in (tmp_path / "found.jsonl").read_text().splitlines()] == [1]


SEQUENCES = [["x desc", "s asc", "n"], ["s DESC NULLS FIRST", "-x", "n"], ["length(s) desc", "x", "n desc"]]


@pytest.mark.spark
def test_spark_orders_as_in_process(spark: SparkSession) -> None:
    """A DataFrame's events of equal time are in the order of Spark's own ORDER BY, and of tables in process."""
    values = [(x, s) for x in NUMBERS for s in TEXTS]
    events = table([values[(7 * i) % len(values)] for i in range(len(values))])
    frame = spark.createDataFrame(events.combine_chunks())
    for sequence in SEQUENCES:
        found = detect(frame, PAIR, key="k", time="at", sequence=sequence).toArrow()
        by_name = [item.replace("x", "x ASC NULLS LAST") if item == "x" else item for item in sequence]
        ordered = spark.sql(f"SELECT n FROM {{ties}} ORDER BY {', '.join(by_name)}", ties=frame)
        expected = sorted(pairwise(row["n"] for row in ordered.collect()))
        in_process = detect(events, PAIR, key="k", time="at", sequence=sequence)
        assert pairs(found) == pairs(in_process) == expected
        assert {*found.column("match_id").to_pylist()} == {*in_process.column("match_id").to_pylist()}


@pytest.mark.spark
def test_a_stream_orders_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    """On a stream, too, expressions and directions order events of equal time, and its checkpoint says so."""
    events, sequence = table([(1.0, "a"), (-2.0, "b"), (3.0, None), (3.0, "c")]), ["abs(x) desc", "s"]
    last = table([(None, None)]).set_column(3, "at", pa.array([NOON + timedelta(hours=1)], pa.timestamp("us", "UTC")))
    arguments: dict[str, Any] = {"key": "k", "time": "at", "sequence": sequence, "lateness": "1 second", "shards": 1}
    found = detected(spark, [events, last], tmp_path, PAIR, **arguments)
    rows = [row for batch in found for row in batch]
    assert sorted((row["a"]["n"], row["b"]["n"]) for row in rows) == [(1, 0), (2, 1), (3, 2)]
    assert {*rows[0]["a"]} == {*events.schema.names}
    assert partial_matches(tmp_path / "checkpoint").count() == 1
