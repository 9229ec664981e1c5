"""With rows_per="event" each event of a match has a row: the rows say what the rows per match say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, Row, cases, events
from tests.intervals.strategies import tables as interval_tables
from tests.searching import share

from cepheid import (
    CepheidWarning,
    Matcher,
    OccurrencePattern,
    Pattern,
    PatternError,
    Report,
    SchemaError,
    Skip,
    SnapshotError,
    detect,
)
from cepheid.intervals import interval_pattern

ABOUT_MATCHES = ["pattern", "match_id", "device", "match_start", "match_end", "detected_at"]
DOOR = (
    Pattern.begin("open", name="visit")
    .where("kind = 'open'")
    .followed_by("knocks")
    .where("kind = 'knock'")
    .one_or_more()
    .optional()
    .followed_by("close")
    .where("kind = 'close'")
    .skip(Skip.past_last_event())
)
DOORS = pd.DataFrame(
    {
        "door": pd.array([1, 1, 2, 1, 1], "Int16"),
        "at": pd.to_datetime([f"2026-03-02 08:0{minute}" for minute in (0, 1, 2, 3, 4)], utc=True),
        "kind": pd.Categorical(["open", "knock", "open", "knock", "close"]),
        "weight": [1.5, None, 2.5, 3.5, 4.5],
    },
    index=["a", "b", "c", "d", "e"],
)


def matched(rows: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """The rows of each match, in the order of position."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows.to_pylist(), key=lambda row: (row["match_id"], row["position"])):
        found.setdefault(row["match_id"], []).append(row)
    return found


def quietly(*arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        return detect(*arguments, **options)


@share(25)
@given(case=cases(), rows=events(ties=True))
def test_the_rows_of_events_say_what_the_rows_of_matches_say(case: Case, rows: list[Row]) -> None:
    """Each event of a stage has one row, with its places, its columns and the number of its row in the table."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    arguments: dict[str, Any] = {"key": "device", "time": "at"}
    per_match = quietly(table, case.pattern, outputs="matches", **arguments).to_pylist()
    per_event = quietly(table, case.pattern, rows_per="event", **arguments)
    assert per_event.schema.names == [
        *ABOUT_MATCHES,
        *("stage", "position", "stage_position", "row_number"),
        *(name for name in SCHEMA.names if name != "device"),
    ]
    assert per_event.select(SCHEMA.names).schema.equals(SCHEMA)
    assert repr(per_event.select(SCHEMA.names).to_pylist()) == repr(table.take(per_event["row_number"]).to_pylist())
    by_match = matched(per_event)
    assert by_match.keys() == {row["match_id"] for row in per_match}
    for match in per_match:
        its_rows = by_match[match["match_id"]]
        assert [row["position"] for row in its_rows] == [*range(1, len(its_rows) + 1)]
        assert [row["at"] for row in its_rows] == sorted(row["at"] for row in its_rows)
        for stage, taken in match["stages"]:
            mine = [row for row in its_rows if row["stage"] == stage]
            assert [row["stage_position"] for row in mine] == [*range(1, len(taken) + 1)]
            assert [row["id"] for row in mine] == [event["id"] for event in taken]
        assert len(its_rows) == sum(len(taken) for _, taken in match["stages"])
        assert all(row[name] == match[name] for row in its_rows for name in ABOUT_MATCHES)


FOLDS = {
    "count(s0)": len,
    "count(s0.n)": lambda taken: len(known(taken, "n")),
    "sum(s0.n)": lambda taken: sum(known(taken, "n")) if known(taken, "n") else None,
    "min(s0.n)": lambda taken: min(known(taken, "n"), default=None),
    "max(s0.price)": lambda taken: max(known(taken, "price"), default=None),
    "sum(s0.price)": lambda taken: sum(known(taken, "price")) if known(taken, "price") else None,
    "avg(s0.n)": lambda taken: sum(known(taken, "n")) / len(known(taken, "n")) if known(taken, "n") else None,
    "count(DISTINCT s0.kind)": lambda taken: len({*known(taken, "kind")}),
    "s0.id": lambda taken: taken[-1]["id"] if taken else None,
    "first(s0.id)": lambda taken: taken[0]["id"] if taken else None,
    "last(s0.id, 1)": lambda taken: taken[-2]["id"] if len(taken) > 1 else None,
}
OF_MATCHES = [*FOLDS, "sum(s0.x)", "avg(s0.x)", "stddev(s0.x)", "var_pop(s0.n)", "count(DISTINCT s0.x)"]
OF_MATCHES += ["min(s0.x)", "max(s0.x)", "avg(s0.price)", "min(s0.kind)"]


def known(taken: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in taken if row[name] is not None]


@share(25)
@given(case=cases(), rows=events())
def test_measures_are_running_or_final(case: Case, rows: list[Row]) -> None:
    """A measure is over the events up to the row's; at the last row it is that of the match, as FINAL is everywhere."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    arguments: dict[str, Any] = {"key": "device", "time": "at"}
    wanted = {str(place): text for place, text in enumerate(OF_MATCHES)}
    per_match = {row["match_id"]: row for row in quietly(table, case.pattern, measures=wanted, **arguments).to_pylist()}
    both = {**wanted, **{f"f{name}": f"final {text}" for name, text in wanted.items()}}
    per_event = matched(quietly(table, case.pattern, measures=both, rows_per="event", **arguments))
    assert per_event.keys() == per_match.keys()
    for match_id, its_rows in per_event.items():
        for name, text in wanted.items():
            whole = repr(per_match[match_id][name])
            assert repr(its_rows[-1][name]) == whole, text
            assert {repr(row[f"f{name}"]) for row in its_rows} == {whole}, text
            if text in FOLDS:
                taken = [[one for one in its_rows[: i + 1] if one["stage"] == "s0"] for i in range(len(its_rows))]
                assert [row[name] for row in its_rows] == [FOLDS[text](some) for some in taken], text


def test_long_sums_are_those_of_the_match() -> None:
    """Doubles are added in the order of the events, in short and in long matches alike."""
    values = [0.1 * place for place in range(200)]
    table = pa.table({"k": [0] * 200 + [1] * 3, "n": [*range(200), *range(3)], "v": [*values, *values[:3]]})
    pattern = Pattern.begin("all").one_or_more().greedy().consecutive().longest().skip(Skip.past_last_event())
    rows = detect(
        table,
        pattern,
        key="k",
        time=None,
        sequence="n",
        rows_per="event",
        measures={"s": "sum(all.v)", "a": "avg(all.v)"},
    )
    total, sums = 0.0, {}
    for place, value in enumerate(values):
        total += value
        sums[place] = total
    assert [row["s"] for row in rows.to_pylist()] == [sums[row["n"]] for row in rows.to_pylist()]
    assert [row["a"] for row in rows.to_pylist()] == [sums[row["n"]] / (row["n"] + 1) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("type_", "values", "measure", "named"),
    [
        (pa.int64(), [2**62, 2**62, -(2**62)], "sum(all.v)", "int64"),
        (
            pa.decimal128(18, 2),
            [Decimal("9E15"), Decimal("9E15"), Decimal("-9E15")],
            "sum(all.v)",
            r"decimal128\(18, 2\)",
        ),
    ],
)
def test_a_running_sum_out_of_range_is_an_error(
    type_: pa.DataType, values: list[Any], measure: str, named: str
) -> None:
    """A sum may be out of range at a row, even where that of the match is not; the message names the measure."""
    table = pa.table({"n": [1, 2, 3], "v": pa.array(values, type_)})
    pattern = Pattern.begin("all").times(3).consecutive()
    assert len(detect(table, pattern, time=None, sequence="n", measures={"s": measure})) == 1
    with pytest.raises(Exception, match=f"measure 's': a sum over a stage is out of the range of {named}"):
        detect(table, pattern, time=None, sequence="n", measures={"s": measure}, rows_per="event")


def test_final_and_running_may_be_names() -> None:
    """FINAL and RUNNING are words of SQL only before what they are about."""
    table = pa.table({"n": [1, 2], "final": [None, 3]})
    measures = {
        "a": "s.final IS NULL",
        "b": "FINAL s.final",
        "c": "running count( s )",
        "d": "final.final",
        "e": "Final 1 + 1",
    }
    pattern = Pattern.begin("s").next("t")
    (row, _) = detect(
        table, pattern, time=None, sequence="n", rows_per="event", measures=measures | {"d": "FINAL t.final"}
    ).to_pylist()
    assert {name: row[name] for name in measures} == {"a": True, "b": None, "c": 1, "d": 3, "e": 2}
    (row,) = detect(
        table, pattern, time=None, sequence="n", measures={"a": "FINAL t.n", "b": "RUNNING t.n"}
    ).to_pylist()
    assert (row["a"], row["b"]) == (2, 2)


def test_final_within_an_expression() -> None:
    """FINAL and RUNNING before a part of a measure are about that part, whatever comes before the whole; other words of
    these names are columns.
    """
    table = pa.table({"n": [1, 2, 3], "v": [10, 20, 30], "final": [7, 8, 9]})
    measures = {
        "share": "sum(a.v) * 100 / FINAL sum(a.v)",
        "left": "FINAL sum(a.v) - running sum(a.v)",
        "gone": "coalesce(a.v, 0) - final first(`a`.v)",
        "last": "a.v = FINAL a.v",
        "names": "a.final + count(a)",
    }
    pattern = Pattern.begin("a").times(3).consecutive()
    rows = detect(table, pattern, time=None, sequence="n", rows_per="event", columns="n", measures=measures)
    found = {name: rows.column(name).to_pylist() for name in measures}
    assert [round(share, 6) for share in found.pop("share")] == [16.666667, 50.0, 100.0]
    assert found == {"left": [50, 30, 0], "gone": [0, 10, 20], "last": [False, False, True], "names": [8, 10, 12]}
    per_match = detect(table, pattern, time=None, sequence="n", measures={"none": measures["left"]})
    assert per_match.column("none").to_pylist() == [0]
    with pytest.raises(PatternError, match="FINAL"):
        detect(table, pattern, time=None, sequence="n", rows_per="event", measures={"x": "1 + FINAL abs(a.v)"})


INTERVALS = ["EVENT PAL(A a)", "EVENT PAL(A a overlap B b)", "EVENT PAL((B b during A a) before A c)"]


@share(25)
@given(text=st.sampled_from(INTERVALS), table=interval_tables())
def test_rows_of_intervals(text: str, table: pa.Table) -> None:
    """The events of a match are in the order of their starts; a stage is a variable, with one event."""
    pattern = interval_pattern(text).taxonomy("type")
    per_match = quietly(table, pattern, time=("start", "end"))
    per_event = matched(quietly(table, pattern, time=("start", "end"), rows_per="event"))
    assert per_event.keys() == {*per_match["match_id"].to_pylist()}
    for match in per_match.to_pylist():
        its_rows = per_event[match["match_id"]]
        assert {row["stage"]: row["id"] for row in its_rows} == {
            one.variable: match[one.variable]["id"] for one in pattern.positives
        }
        assert [row["stage_position"] for row in its_rows] == [1] * len(pattern.positives)
        times = [(row["start"], row["end"]) for row in its_rows]
        assert times == sorted(times)
        assert [table["id"][row["row_number"]].as_py() for row in its_rows] == [row["id"] for row in its_rows]


OCCURRENCES = ["a ; b", "?p:a ; ?q:(b & c)", "(?p:a | ?q:b) ; c", "?p:(a ; b) ; (c + 1s)", "(?p:a ; (?q:b + 1s)) - c"]


@share(25)
@given(text=st.sampled_from(OCCURRENCES), types=st.lists(st.sampled_from("abc"), min_size=2, max_size=7))
def test_rows_of_occurrences(text: str, types: list[str]) -> None:
    """The events of an occurrence without temporal events; a stage is the variable that an event is the value of."""
    seconds = [FIRST.replace(second=place) for place in range(len(types))]
    table = pa.table({"id": [*range(len(types))], "type": types, "at": pa.array(seconds, pa.timestamp("us", "UTC"))})
    pattern = OccurrencePattern.of(text).taxonomy("type")
    per_match = quietly(table, pattern, time="at")
    per_event = matched(quietly(table, pattern, time="at", rows_per="event"))
    assert per_event.keys() == {*per_match["match_id"].to_pylist()}
    for match in per_match.to_pylist():
        its_rows = per_event[match["match_id"]]
        taken = [event["id"] for event in match["events"] if event.get("delay") is None]
        assert [row["id"] for row in its_rows] == taken
        assert [row["position"] for row in its_rows] == [*range(1, len(taken) + 1)]
        values = {name: match[name]["id"] for name in ("p", "q") if (match.get(name) or {}).get("id") is not None}
        assert {row["stage"]: row["id"] for row in its_rows if row["stage"]} == values


def test_pandas_has_the_index_of_the_events() -> None:
    """The rows of a pandas frame have the labels and the types of the given rows, so they join and plot."""
    rows = detect(DOORS, DOOR, key="door", time="at", rows_per="event")
    assert rows.index.tolist() == ["a", "b", "d", "e"]
    assert "row_number" not in rows
    assert rows[DOORS.columns].equals(DOORS.loc[rows.index])
    assert rows["stage"].tolist() == ["open", "knocks", "knocks", "close"]


def test_other_tables_have_the_number_of_the_row() -> None:
    """Rows of other tables have numbers, and columns in the types of the given table, nanoseconds included."""
    frame = pl.from_pandas(DOORS).with_columns(pl.col("kind").cast(pl.Enum(["open", "knock", "close"])))
    rows = detect(frame, DOOR, key="door", time="at", rows_per="event", columns=["kind", "weight"])
    assert rows["row_number"].to_list() == [0, 1, 3, 4]
    assert rows.schema["kind"] == frame.schema["kind"]
    assert rows.select("door", "kind", "weight").equals(frame.select("door", "kind", "weight")[[0, 1, 3, 4]])
    lazy = detect(frame.lazy(), DOOR, key="door", time="at", rows_per="event", columns=["kind", "weight"])
    assert lazy.collect().equals(rows)


def test_several_patterns_and_outputs() -> None:
    """Several patterns have rows in one table, with the measures of each; timeouts have rows of their events, too."""
    table = pa.Table.from_pandas(DOORS, preserve_index=False)
    waiting = (
        Pattern.begin("open").where("kind = 'open'").followed_by("close").where("kind = 'close'").within("1 minute")
    )
    rows = detect(
        table,
        {"visit": DOOR, "waiting": waiting},
        key="door",
        time="at",
        rows_per="event",
        outputs=("matches", "timeouts"),
        measures={"visit": {"knocks": "count(knocks)"}, "waiting": {"doors": "FINAL count(open)"}},
        columns=["weight"],
    )
    found = sorted(
        (row["kind"], row["pattern"], row["stage"], row["row_number"], row["weight"], row["knocks"], row["doors"])
        for row in rows.to_pylist()
    )
    assert found == [
        ("match", "visit", "close", 4, 4.5, 2, None),
        ("match", "visit", "knocks", 1, None, 1, None),
        ("match", "visit", "knocks", 3, 3.5, 2, None),
        ("match", "visit", "open", 0, 1.5, 0, None),
        ("timeout", "waiting", "open", 0, 1.5, None, 1),
        ("timeout", "waiting", "open", 2, 2.5, None, 1),
    ]


def test_workers_give_the_same_rows() -> None:
    """Row numbers are those of the whole table, whatever the number of workers."""
    table = pa.Table.from_pandas(pd.concat([DOORS.assign(door=door) for door in range(20)]), preserve_index=False)
    pattern = Pattern.begin("open").where("kind = 'open'").next("other").where("kind <> open.kind")
    arguments: dict[str, Any] = {"key": "door", "time": "at", "rows_per": "event", "measures": {"n": "count(open)"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        assert detect(table, pattern, workers=2, **arguments).equals(detect(table, pattern, **arguments))


def test_a_matcher_gives_rows_of_events() -> None:
    """A Matcher emits and retracts all rows of a match; a late event has a row without a stage."""
    given = DOORS.rename(columns={"kind": "what"})
    table = pa.Table.from_pandas(given, preserve_index=False).cast(
        pa.schema(
            [("door", pa.int16()), ("at", pa.timestamp("us", "UTC")), ("what", pa.string()), ("weight", pa.float64())]
        )
    )
    pattern = Pattern.begin("open").where("what = 'open'").next("other").where("what <> 'open'")
    options: dict[str, Any] = {"time": "at", "key": "door", "columns": "weight", "lateness": "2 minutes"}
    matcher = Matcher(pattern, table, rows_per="event", consistency="realtime", **options)
    steps = [matcher.process(table.take(rows)) for rows in ([0, 3], [1], [4], [0])]
    shown = [
        [(row["kind"], row["stage"], row["position"], row["weight"]) for row in step.to_pylist()] for step in steps
    ]
    assert shown == [
        [("insertion", "open", 1, 1.5), ("insertion", "other", 2, 3.5)],
        [
            *(("retraction", "open", 1, 1.5), ("retraction", "other", 2, 3.5)),
            *(("insertion", "open", 1, 1.5), ("insertion", "other", 2, None)),
        ],
        [],
        [("late", None, None, 1.5)],
    ]
    first, second, _, _ = (step["match_id"].to_pylist() for step in steps)
    assert first == second[:2]
    restored = Matcher(pattern, table, rows_per="event", consistency="realtime", **options)
    restored.restore(matcher.snapshot())
    per_match = Matcher(pattern, table, consistency="realtime", **options)
    with pytest.raises(SnapshotError, match="rows_per"):
        per_match.restore(matcher.snapshot())


def test_unmatched_events_have_rows() -> None:
    """With unmatched=True each event has a row at least; those in no match come last, without anything about one."""
    rows = detect(DOORS, DOOR, key="door", time="at", rows_per="event", measures={"n": "count(open)"}, unmatched=True)
    assert rows.index.tolist() == ["a", "b", "d", "e", "c"]
    assert rows[DOORS.columns].equals(DOORS.loc[rows.index])
    last = rows.drop(columns=DOORS.columns).iloc[-1]
    assert last.isna().all()
    without = detect(DOORS, DOOR, key="door", time="at", rows_per="event", measures={"n": "count(open)"})
    assert rows.iloc[:4].astype(without.dtypes).equals(without)
    late = pa.Table.from_pandas(DOORS.assign(at=None).astype({"at": DOORS["at"].dtype}), preserve_index=False)
    nothing = detect(late, DOOR, key="door", time="at", rows_per="event", nulls="drop", report=Report(), unmatched=True)
    assert nothing.column("row_number").to_pylist() == [0, 1, 2, 3, 4]
    assert nothing.column("match_id").null_count == 5


REFUSALS: list[tuple[Mapping[str, Any], str]] = [
    ({"rows_per": "match", "unmatched": True}, "unmatched: rows of matches have no events without one; give rows_per"),
    ({"rows_per": "row"}, "rows_per: 'row' is not one of 'match', 'event'"),
    (
        {"rename": {"weight": "stage"}},
        r"columns: 'stage' is the name of a column that rows of events have themselves; ",
    ),
    ({"rename": {"weight": "row_number"}}, "columns: 'row_number' is the name of a column that rows of events have"),
    ({"rename": {"door": "position"}}, "columns: 'position' is the name of a column .* themselves; rename it$"),
    ({"rename": {"weight": "_number"}}, "the column name '_number' is reserved where each event has a row: rename"),
    ({"measures": {"kind": "count(open)"}}, "measure 'kind' has the name of another column of the output"),
    ({"measures": {"Stage": "count(open)"}}, "measure 'Stage' has the name of another column of the output"),
]


@pytest.mark.parametrize(("given", "message"), REFUSALS)
def test_names_that_are_taken(given: Mapping[str, Any], message: str) -> None:
    """Columns of events stand beside those of the output, so none may have the same name."""
    renamed = DOORS.rename(columns=given.get("rename", {}))
    key = "position" if "position" in renamed else "door"
    options = {"rows_per": "event", "key": key, **{name: value for name, value in given.items() if name != "rename"}}
    with pytest.raises((SchemaError, PatternError), match=message):
        detect(renamed, DOOR, time="at", **options)


def test_occurrences_have_no_running_measures() -> None:
    """A measure of an occurrence is about all of its events."""
    pattern = OccurrencePattern.of("?p:open ; knock").taxonomy("kind")
    options: dict[str, Any] = {"key": "door", "time": "at", "rows_per": "event"}
    rows = detect(DOORS, pattern, measures={"first": "p.weight"}, **options)
    assert rows["first"].tolist() == [1.5, 1.5, 1.5, 1.5]
    with pytest.raises(
        PatternError, match="measures of occurrences are those of the whole occurrence, in each of its rows"
    ):
        detect(DOORS, pattern, measures={"first": "RUNNING p.weight"}, **options)


def test_row_number_is_reserved_on_every_host() -> None:
    """The name is taken also where rows of events have no numbers."""
    with pytest.raises(SchemaError, match="columns: 'row_number' is the name of a column that rows of events have"):
        Matcher(DOOR, DOORS.rename(columns={"weight": "row_number"}), key="door", time="at", rows_per="event")
