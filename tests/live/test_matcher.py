"""Matcher: when rows are emitted, which events are late, and what the matcher stores."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.live.events import ALL, PAIR, SCHEMA, T, at, events, matcher, summaries

from cepheid import (
    EventError,
    Matcher,
    Pattern,
    SchemaError,
    Skip,
    detect,
)
from cepheid.matchers.snapshot import from_bytes

# When rows are emitted


def test_in_order_with_a_sequence() -> None:
    """With lateness zero and a sequence, a match is emitted with its last event, and a timeout when time has passed its
    deadline.
    """
    live = matcher()
    assert summaries(live.process(events((1, "p", 0, "a"), (2, "q", 0, "a")))) == []
    assert summaries(live.process(events((3, "p", 4, "b")))) == [("match", (1, 3), 4)]
    assert summaries(live.process(events((4, "p", 10, "x")))) == [("timeout", (2,), 10)]
    assert summaries(live.finish()) == []


def test_in_order_without_a_sequence() -> None:
    """Without a sequence an event waits until a later time shows that no other event of its time can come."""
    live = matcher(sequence=None)
    assert summaries(live.process(events((1, "p", 0, "a"), (2, "p", 4, "b")))) == []
    assert live.counts.waiting == 1
    assert summaries(live.process(events((3, "q", 5, "x")))) == [("match", (1, 2), 4)]
    assert live.counts.ties == 0


def test_ties_without_a_sequence() -> None:
    """Events of equal time are ordered by their content, however they arrive, as in detect."""
    pattern = Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b'").next("c").where("x = 'c'")
    found = set()
    for letters in ("abc", "cab", "bca"):
        live = matcher(pattern, sequence=None, columns="x")
        for letter in letters:
            assert len(live.process(events((1, "p", 0, letter)))) == 0
        found.add(repr(live.finish().to_pylist()))
        assert live.counts.ties == 3
    with pytest.warns(match="3 events agree in key and time"):
        expected = detect(
            events((1, "p", 0, "a"), (1, "p", 0, "b"), (1, "p", 0, "c")),
            pattern,
            key="k",
            time="at",
            columns="x",
            outputs=ALL,
        )
    assert found == {repr(expected.to_pylist())}


def test_without_lateness_only_advance_time_moves_time() -> None:
    """Without lateness events may arrive in any order, and nothing is certain before time advances."""
    live = matcher(lateness=None)
    assert summaries(live.process(events((2, "p", 4, "b"), (1, "p", 0, "a")))) == []
    assert summaries(live.advance_time(at(3))) == []
    assert live.counts.waiting == 1
    assert summaries(live.advance_time("2024-01-01 00:00:04")) == [("match", (1, 2), 4)]


def test_lateness() -> None:
    """The watermark follows the latest event at the distance of the lateness; an event exactly at the limit is
    in time.
    """
    live = matcher(lateness=timedelta(seconds=2))
    assert summaries(live.process(events((2, "p", 4, "b")))) == []
    assert summaries(live.process(events((1, "p", 2, "a")))) == []
    assert summaries(live.process(events((3, "q", 6, "x")))) == []
    assert summaries(live.process(events((4, "q", 6.000001, "x")))) == [("match", (1, 2), 4)]


def test_a_batch_is_whole() -> None:
    """The events of one batch may have any order: the watermark advances after the whole batch."""
    live = matcher()
    assert summaries(live.process(events((2, "p", 9, "b"), (1, "p", 0, "a")))) == [("match", (1, 2), 9)]


def test_deadlines_pass_one_by_one() -> None:
    """However far time advances at once, each timeout has the time of its own deadline, and skip strategies apply in
    between.
    """
    live = matcher(PAIR.skip(Skip.past_last_event()))
    live.process(events((1, "p", 0, "a"), (2, "p", 1, "a"), (3, "q", 2, "a")))
    assert summaries(live.advance_time(at(60))) == [("timeout", (1,), 10), ("timeout", (2,), 11), ("timeout", (3,), 12)]


def test_time_does_not_pass_twice() -> None:
    """Advancing to an earlier or the same time changes nothing."""
    live = matcher(lateness=None)
    live.process(events((1, "p", 0, "a")))
    assert summaries(live.advance_time(at(10))) == [("timeout", (1,), 10)]
    counts = live.counts
    for second in (10, 5, -100):
        assert summaries(live.advance_time(at(second))) == []
    assert live.counts == counts


def test_a_deadline_that_an_event_has_already_passed() -> None:
    """If an event moves a partial match to a stage whose deadline is already before the event's time, the timeout is
    emitted at the next advance of time or event, but not by an advance to the event's own time. `as_of` agrees.
    """
    pattern = Pattern.begin("a").where("x = 'a'").one_or_more().followed_by("c").where("x = 'c'")
    pattern = pattern.within_previous("2 seconds")
    table = events((1, "p", 0, "a"), (2, "p", 5, "x"))  # since its second event it waits for c, until second 2
    live = matcher(pattern)
    assert summaries(live.process(table)) == []
    assert summaries(live.advance_time(at(5))) == []
    assert summaries(live.advance_time(at(5.000001))) == [("timeout", (1,), 2)]
    live = matcher(pattern)
    live.process(table)
    assert summaries(live.process(events((3, "p", 5, "c")))) == [("timeout", (1,), 2)]
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL}
    assert summaries(detect(table, pattern, as_of=at(5), **options)) == []
    assert summaries(detect(table, pattern, as_of=at(5.000001), **options)) == [("timeout", (1,), 2)]


def test_finish() -> None:
    """finish() ends open partial matches as detect does at the end of complete input; afterwards nothing is left."""
    pattern = Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b'").one_or_more().consecutive().longest()
    live = matcher(pattern)
    live.process(events((1, "p", 0, "a"), (2, "p", 1, "b"), (3, "p", 2, "b")))
    assert (live.counts.open_partial_matches, live.counts.withheld) == (1, 1)
    assert summaries(live.finish()) == [("match", (1, 2, 3), None)]
    assert summaries(live.finish()) == []
    assert (live.counts.open_partial_matches, live.counts.withheld) == (0, 0)


def test_a_match_that_waits_for_an_earlier_one() -> None:
    """A match that a skip strategy withholds is counted as withheld until it is emitted."""
    pattern = Pattern.begin("a").followed_by("b").where("x = a.x").skip(Skip.past_last_event())
    live = matcher(pattern)
    assert summaries(live.process(events((1, "p", 0, "u"), (2, "p", 1, "v"), (3, "p", 2, "v"), (4, "q", 2, "v")))) == []
    assert (live.counts.matches, live.counts.withheld) == (0, 1)
    other = matcher(pattern)
    other.restore(live.snapshot())
    assert other.counts.withheld == 1
    assert summaries(live.finish()) == [("match", (2, 3), None)]
    assert (live.counts.matches, live.counts.withheld) == (1, 0)


def test_a_match_that_waits_for_time() -> None:
    """A match that ends with an absence waits until the time of the absence has passed; the forbidden event discards
    it.
    """
    live = matcher(Pattern.begin("a").where("x = 'a'").not_followed_by("b").where("x = 'b'").within("10 seconds"))
    live.process(events((1, "p", 0, "a"), (2, "q", 1, "a")))
    assert (live.counts.open_partial_matches, live.counts.withheld) == (2, 2)
    live.process(events((3, "q", 2, "b")))
    assert live.counts.withheld == 1
    assert summaries(live.advance_time(at(10))) == [("match", (1,), 10)]
    assert live.counts.withheld == 0


def test_in_sets_no_match_waits() -> None:
    """Without timeouts, longest, skip and absence, a match is emitted with its last event."""
    live = matcher(outputs=["matches"])
    live.process(events((1, "p", 0, "a"), (2, "q", 1, "a"), (3, "q", 2, "b")))
    assert (live.counts.open_partial_matches, live.counts.withheld) == (1, 0)


def test_after_finish() -> None:
    """Events after finish are late, and their `detected_at` is NULL."""
    live = matcher()
    live.finish()
    assert summaries(live.process(events((1, "p", 0, "a")))) == [("late", (1,), None)]
    assert summaries(live.advance_time(at(100))) == []
    assert live.counts.late == 1


def test_empty_batches() -> None:
    """Empty batches give no rows, whatever kind of table they are."""
    live = matcher()
    live.process(events((1, "p", 0, "a")))
    for nothing in (events(), events().to_pandas(), pl.DataFrame(events()), pd.DataFrame(columns=SCHEMA.names)):
        found = live.process(nothing)
        assert found.num_rows == 0
    assert summaries(live.process(events((2, "p", 1, "b")))) == [("match", (1, 2), 1)]


# Late events


def test_late_events() -> None:
    """Late events are returned with the watermark that made them late; they are counted and not matched."""
    live = matcher(lateness="2 seconds")
    live.process(events((1, "p", 0, "a"), (2, "p", 9, "x")))
    late = live.process(events((3, "p", 5, "b"), (4, "p", 8, "b")))
    assert summaries(late) == [("late", (3,), 6.999999)]
    (row,) = late.to_pylist()
    assert (row["k"], row["match_start"], row["match_end"], row["stages"]) == ("p", None, None, None)
    assert row["event"] == {"id": 3, "k": "p", "at": at(5), "x": "b"}
    assert len(row["match_id"]) == 32
    assert summaries(live.finish()) == [("match", (1, 4), 8)]
    assert live.counts.late == 1


def test_late_events_without_the_output() -> None:
    """Late events are counted even if they are not among the outputs."""
    live = matcher(outputs=None)
    live.process(events((2, "p", 5, "a")))
    assert live.process(events((1, "p", 1, "a"))).num_rows == 0
    assert live.counts.late == 1


def test_late_in_sequence() -> None:
    """At the latest time reached, an event is late if its sequence is not after the last one of its key; keys are
    independent of each other.
    """
    live = matcher()
    live.process(events((5, "p", 1, "a")))
    rows = live.process(events((5, "p", 1, "b"), (4, "p", 1, "b"), (4, "q", 1, "a")))
    assert summaries(rows) == [("late", (5,), 1), ("late", (4,), 1)]
    assert summaries(live.process(events((6, "p", 1, "b")))) == [("match", (5, 6), 1)]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.float64(), [-0.0, 1.0, float("nan"), None]),
        (pa.string(), ["", "a", "é", None]),
        (pa.decimal128(5, 2), [Decimal("-1.00"), Decimal("2.50"), None]),
        (pa.timestamp("us"), [datetime(2024, 1, 1), datetime(2024, 1, 2), None]),  # noqa: DTZ001 - without a zone
        (pa.duration("us"), [timedelta(-1), timedelta(1), None]),
        (pa.timestamp("us", "UTC"), [-(1 << 60), datetime(2024, 1, 1), 1 << 60, None]),  # noqa: DTZ001
        (pa.date32(), [-(1 << 30), 0, 1 << 30, None]),
    ],
)
def test_sequences_of_many_types(type_: pa.DataType, values: list[Any]) -> None:
    """Events of equal time are ordered by sequences of any type, NaN after numbers and NULL last, also after a
    snapshot.
    """
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("s", type_)])
    options: dict[str, Any] = {"time": "at", "sequence": "s", "lateness": "0 seconds", "outputs": ALL}
    pattern = Pattern.begin("one").next("two")
    live = Matcher(pattern, schema, **options)
    found = []
    for value in values:
        found.append(live.process(pa.table({"at": [T], "s": pa.array([value], type_)}, schema=schema)).num_rows)
        state = live.snapshot()
        live = Matcher(pattern, schema, **options)
        live.restore(state)
    assert found == [0] + [1] * (len(values) - 1)
    late = live.process(pa.table({"at": [T] * len(values), "s": pa.array(values, type_)}, schema=schema))
    assert late.column("kind").to_pylist() == ["late"] * len(values)


# Events, keys and times


KEYS: dict[str, tuple[pa.Schema, dict[str, Any], dict[str, Any]]] = {
    "strings": (
        pa.schema([(name, pa.string()) for name in "pqr"]),
        {"p": "1", "q": "2", "r": "3"},
        {"p": "1", "q": "23", "r": ""},
    ),
    "a struct": (
        pa.schema([("n", pa.int32()), ("s", pa.struct([("d", pa.float64())]))]),
        {"n": 1, "s": {"d": -0.0}},
        {"n": 1, "s": {"d": float("nan")}},
    ),
    "a date and a decimal": (
        pa.schema([("day", pa.date32()), ("d", pa.decimal128(4, 1))]),
        {"day": T.date(), "d": Decimal("1.5")},
        {"day": T.date(), "d": Decimal("2.5")},
    ),
    "none": (pa.schema([]), {}, {}),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys(kind: str) -> None:
    """Key columns of any type, one or several, separate events as in detect; without a key, all events belong
    together.
    """
    columns, one, other = KEYS[kind]
    schema = pa.schema([*columns, ("at", pa.timestamp("us", "UTC")), ("x", pa.string())])
    rows = [{**key, "at": at(i), "x": x} for i, (key, x) in enumerate([(one, "a"), (other, "a"), (one, "b")])]
    table = pa.Table.from_pylist(rows, schema=schema)
    options: dict[str, Any] = {"key": columns.names, "time": "at", "outputs": ["matches", "timeouts"]}
    live = Matcher(PAIR, schema, **options)
    for i in range(3):
        live.process(table.slice(i, 1))
        live.restore(live.snapshot())
    expected = detect(table, PAIR, **options)
    assert sorted(map(repr, live.finish().to_pylist())) == sorted(map(repr, expected.to_pylist()))
    assert expected.column("kind").to_pylist().count("timeout") == (1 if columns.names else 0)


def test_nulls() -> None:
    """Events without key or time are refused, or dropped and counted; a refusal leaves the matcher unchanged."""
    live = matcher()
    live.process(events((1, "p", 0, "a")))
    message = (
        r"1 with a NULL in the key \(k\) in row 1, counted from 0; 1 without a time \(at\) in row 2, counted from 0"
    )
    with pytest.raises(EventError, match=message):
        live.process(events((2, "p", 1, "b"), (3, None, 1, "b"), (4, "p", None, "b")))
    assert summaries(live.process(events((2, "p", 1, "b")))) == [("match", (1, 2), 1)]
    assert live.counts.events == 2
    lenient = matcher(nulls="drop")
    lenient.process(events((1, "p", 0, "a"), (3, None, 1, "b"), (4, "p", None, "b"), (5, None, None, "a")))
    assert (lenient.counts.events, lenient.counts.null_keys, lenient.counts.null_times) == (4, 2, 1)


def test_a_time_far_away() -> None:
    """A time in the far future, as of a placeholder, is refused at once: the watermark would follow it."""
    live = matcher()
    far = pa.array([(1 << 62) + 1]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"id": [1], "k": ["p"], "at": far, "x": ["a"]}, schema=SCHEMA)
    with pytest.raises(EventError, match=r"further than 100,000 years from 1970.*Make it NULL"):
        live.process(table)
    assert live.counts.events == 0


@pytest.mark.parametrize(
    "kind",
    [
        lambda table: table.to_pandas(),
        pl.DataFrame,
        lambda table: pl.DataFrame(table).lazy(),
        duckdb.from_arrow,
        lambda table: table.to_batches()[0],
        lambda table: table.set_column(1, "k", table.column("k").dictionary_encode()),
        lambda table: table.append_column("more", table.column("x")),
        lambda table: table.select(["x", "at", "k", "id"]),
    ],
)
def test_kinds_of_tables(kind: Any) -> None:
    """Every kind of table that detect accepts is accepted, with columns in any order and with unused columns."""
    live = matcher()
    live.process(kind(events((1, "p", 0, "a"))))
    assert summaries(live.process(kind(events((2, "p", 1, "b"))))) == [("match", (1, 2), 1)]


@pytest.mark.parametrize("schema", [SCHEMA, events(), pl.DataFrame(events()), events((7, "q", 9, "a")).to_pandas()])
def test_kinds_of_schemas(schema: Any) -> None:
    """The schema is given as an Arrow schema, or as a table of any kind, whose rows are ignored."""
    live = Matcher(PAIR, schema, key="k", time="at", sequence="id", lateness="0 seconds", outputs=ALL)
    live.process(events((1, "p", 0, "a")))
    assert summaries(live.process(events((2, "p", 1, "b")))) == [("match", (1, 2), 1)]


def test_instants_that_do_not_fit_microseconds() -> None:
    """A time with a fraction of a microsecond is refused with the column's name; the matcher continues."""
    live = matcher(PAIR, sequence="id")
    fine = events((1, "p", 0, "a"))
    at = pa.chunked_array([pa.array([1], pa.timestamp("ns", "UTC"))])
    with pytest.raises(EventError, match="a time in 'at' does not fit microseconds"):
        live.process(fine.set_column(fine.schema.get_field_index("at"), "at", at))
    assert live.process(fine).num_rows == 0


def test_local_times() -> None:
    """Times without a zone are read in `time_zone`, and returned in it."""
    schema = SCHEMA.set(2, pa.field("at", pa.timestamp("us")))
    live = Matcher(PAIR, schema, key="k", time="at", time_zone="Europe/Berlin", outputs=ALL)

    def local(rows: pa.Table) -> list[Any]:
        at = rows.schema.get_field_index("detected_at")
        assert rows.schema.field(at).type == pa.timestamp("us")
        in_utc = pc.assume_timezone(rows.column(at), "Europe/Berlin").cast(pa.timestamp("us", "UTC"))
        return summaries(rows.set_column(at, "detected_at", in_utc))

    live.process(events((1, "p", 3600, "a"), (2, "p", 3601, "b")).cast(schema))
    assert local(live.advance_time("2024-01-01 01:00:00")) == []
    assert local(live.advance_time("2024-01-01 01:00:01")) == [("match", (1, 2), 1)]
    assert local(live.process(events((3, "p", 3601, "b")).cast(schema))) == [("late", (3,), 1)]
    with pytest.raises(SchemaError) as caught:
        live.advance_time("2024-10-27 02:30")
    assert str(caught.value) == (
        "time: the local time 2024-10-27 02:30:00 is ambiguous in Europe/Berlin. "
        "Give it with its offset, as in '2024-10-27 01:30:00+00:00'"
    )
    assert local(live.advance_time(datetime(2024, 10, 27, 1, 30, tzinfo=UTC))) == []


def test_measures() -> None:
    """Measures are columns of matches and timeouts; in a timeout they are NULL or 0 if a stage has no events."""
    live = matcher(measures={"n": "count(b)", "first": "a.id", "both": "concat(a.x, b.x)"})
    rows = live.process(events((1, "p", 0, "a"), (2, "p", 1, "b"), (3, "q", 1, "a"), (4, "r", 20, "x")))
    measured = [(row["kind"], row["n"], row["first"], row["both"], row["event"]) for row in rows.to_pylist()]
    assert measured == [("match", 1, 1, "ab", None), ("timeout", 0, 3, None, None)]
    (late,) = live.process(events((5, "q", 2, "a"))).to_pylist()
    assert (late["kind"], late["n"], late["first"], late["event"]["id"]) == ("late", None, None, 5)


def test_columns_without_outputs() -> None:
    """Without `outputs` the columns are those of detect without `outputs`."""
    live = matcher(outputs=None, columns="id")
    (row,) = live.process(events((1, "p", 0, "a"), (2, "p", 1, "b"))).to_pylist()
    (expected,) = detect(
        events((1, "p", 0, "a"), (2, "p", 1, "b")), PAIR, key="k", time="at", sequence="id", columns="id"
    ).to_pylist()
    assert row == expected


def test_processing_order() -> None:
    """Without event times, events count in the order of their arrival, also after a snapshot; time cannot be
    advanced.
    """
    pattern = Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b'")
    live = Matcher(pattern, SCHEMA, key="k", time=None, outputs=ALL)
    live.process(events((9, "p", 50, "a"), (8, "q", 1, "a")))
    state = live.snapshot()
    live = Matcher(pattern, SCHEMA, key="k", time=None, outputs=ALL)
    live.restore(state)
    rows = live.process(events((7, "p", 3, "b"), (6, "q", 2, "c")))
    assert summaries(rows) == [("match", (9, 7), None)]
    with pytest.raises(SchemaError) as caught:
        live.advance_time(at(1))
    assert str(caught.value) == "time: in processing order (time=None) no time passes; finish() ends the input"
    assert live.counts.late == 0


# What is stored


def test_keys_free_their_state() -> None:
    """Thousands of keys without open partial matches take no memory, in the matcher or in its snapshot."""
    strict = Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b'")
    live = matcher(strict, columns="x")
    live.process(events((0, "stays", 0, "a")))
    before = len(live.snapshot())
    count = 20_000
    table = pa.table({"id": range(count), "k": [f"key {i}" for i in range(count)], "at": [at(1)] * count})
    begun = table.append_column("x", pa.array(["a"] * count)).cast(SCHEMA)
    ended = table.append_column("x", pa.array(["c"] * count)).cast(SCHEMA)
    tracemalloc.start()
    for second in range(3):
        times = pa.array([at(second + 1)] * count, SCHEMA.field("at").type)
        live.process(begun.set_column(2, "at", times))
        assert live.counts.open_partial_matches == count + 1
        live.process(ended.set_column(2, "at", pa.array([at(second + 1.5)] * count, SCHEMA.field("at").type)))
    assert live.counts.open_partial_matches == 1
    live.process(events((0, "other", 9, "c")))
    allocated = sum(
        s.size for s in tracemalloc.take_snapshot().statistics("filename") if "live_matcher" in s.traceback[0].filename
    )
    tracemalloc.stop()
    assert len(live.snapshot()) < before + 200
    assert allocated < 1_000_000
    assert live.process(events((1, "stays", 10, "b"))).num_rows == 1


def test_many_keys_are_open() -> None:
    """Keys come and go, and each continues where it was."""
    live = matcher(columns="id")
    ids = range(3000)
    live.process(events(*((i, f"k{i}", 0, "a") for i in ids)))
    closed = [i for i in ids if i % 7]
    assert live.process(events(*((i + 3000, f"k{i}", 1, "b") for i in closed))).num_rows == len(closed)
    state = live.snapshot()
    live = matcher(columns="id")
    live.restore(state)
    live.process(events(*((i, f"new{i}", 2, "a") for i in ids)))
    open_ = [i for i in ids if i % 7 == 0]
    rows = live.process(events(*((i + 3000, f"k{i}", 3, "b") for i in open_)))
    assert sorted(summaries(rows)) == [("match", (i, i + 3000), 3) for i in open_]
    assert live.finish().num_rows == len(ids)


def is_b(event: Mapping[str, Any]) -> bool:
    return bool(event["x"] == "b")


@pytest.mark.parametrize("of_b", ["x = 'b'", is_b])
def test_a_busy_key_forgets_its_timeouts(of_b: Any) -> None:
    """Emitted timeouts are remembered only while they could occur again, even if the key always has partial matches
    open.
    """
    pattern = Pattern.begin("a").where("x = 'a'").followed_by("b").where(of_b).within_previous("3 seconds")
    live = matcher(pattern, outputs=["matches", "timeouts"])
    timeouts = 0
    for first in range(0, 3000, 500):
        timeouts += live.process(events(*((first + i, "k", first + i, "a") for i in range(500)))).num_rows
    assert timeouts == live.counts.timeouts > 2990
    assert from_bytes(live.snapshot()).batches["told"].num_rows < 1600


def test_explain() -> None:
    """What the pattern looks for, and how it runs with the events' columns."""
    explained = matcher().explain().splitlines()
    assert explained[0] == "Pattern pattern"
    assert "  bit 0  x = 'a'  (bool)" in explained
    assert "Order: at, id" in explained
    assert explained[-1] == "    ignore [not b] → b"
