"""detect checks its arguments before anything runs, and reports all problems at once."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from inspect import currentframe
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cepheid import (
    CepheidWarning,
    EventError,
    Matcher,
    OccurrencePattern,
    Pattern,
    PatternError,
    Report,
    SchemaError,
    detect,
)
from cepheid.intervals import interval_pattern

T = datetime(2024, 1, 1, tzinfo=UTC)
EVENTS = pa.table({"k": ["p", "p"], "at": pa.array([T, T], pa.timestamp("us", "UTC")), "x": [1, 2]})
PAIR = Pattern.begin("a").where("x = 1").followed_by("b").where("x = 2")
OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "x"}


def refusal(events: Any = EVENTS, **options: Any) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        detect(events, PAIR, **{**OPTIONS, **options})
    return str(caught.value).splitlines()


ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"key": 3}, "key: names of columns are expected, got 3"),
    ({"key": ["k", None]}, "key: names of columns are expected, got ['k', None]"),
    ({"key": ["k", "x", "k"]}, "key: 'k' is named twice"),
    ({"columns": ["x", "x"]}, "columns: 'x' is named twice"),
    ({"key": pd.Series(["a", "b"])}, "key: names of columns are expected, got a pandas.Series of shape (2,)"),
    ({"columns": 5}, "columns: names of columns are expected, got 5"),
    ({"time": 1}, "time: the name of a column is expected, got 1"),
    ({"sequence": ["x", "x"]}, "sequence: 'x' is named twice"),
    ({"time": None, "as_of": "2024-01-01"}, "as_of needs event times: name the column with time=…"),
    (
        {"measures": ["count(b)"]},
        'measures: names and their SQL are expected, as in {"legs": "count(legs)"}, got [\'count(b)\']',
    ),
    (
        {"measures": {"n": 1}},
        'measures: names and their SQL are expected, as in {"legs": "count(legs)"}, got {\'n\': 1}',
    ),
    ({"as_of": "soon"}, "as_of: 'soon' is not a time; write it as '2026-01-31 12:00:00'"),
    ({"as_of": date(2024, 1, 1)}, "as_of: datetime.date(2024, 1, 1) is not a time; write it as '2026-01-31 12:00:00'"),
    ({"as_of": pd.Timestamp(1)}, "as_of: 1970-01-01T00:00:00.000000001 has nanoseconds: round it to microseconds"),
    (
        {"as_of": "2024-01-01 00:00:00.0000001"},
        "as_of: 2024-01-01 00:00:00.0000001 has nanoseconds: round it to microseconds",
    ),
    ({"as_of": pd.NaT}, "as_of: NaT is not a time"),
    (
        {"as_of": "9999-12-31T23:59:59", "time_zone": "America/Lima"},
        "as_of: 9999-12-31 23:59:59-05:00 is before the year 1 or after 9999 in UTC",
    ),
    ({"time_zone": "Mars"}, "time_zone: 'Mars' is not known; use a name such as 'Europe/Berlin' or 'UTC'"),
    ({"time_zone": "Europe"}, "time_zone: 'Europe' is not known; use a name such as 'Europe/Berlin' or 'UTC'"),
    ({"nulls": "keep"}, "nulls: 'keep' is not one of 'error', 'drop'"),
    ({"report": {}}, "report: a Report() is expected, got {}"),
]


@pytest.mark.parametrize(("options", "message"), ARGUMENTS)
def test_arguments(options: dict[str, Any], message: str) -> None:
    """The message for a wrong argument names it, the value given and the values expected."""
    assert refusal(**options) == [message]


@pytest.mark.parametrize("frame", [EVENTS, EVENTS.to_pandas(), pl.DataFrame(EVENTS)])
def test_tables_in_messages(frame: Any) -> None:
    """A table in a wrong place is shown by its kind and shape, because it may have many values."""
    kind = f"{type(frame).__module__.split('.')[0]}.{type(frame).__name__} of shape (2, 3)"
    made = "a pattern is made with Pattern.begin(…), OccurrencePattern.of(…) or IntervalPattern.of(…)"
    text = "an expression such as event('a') >> event('b'), or its text, is expected, got "
    calls: list[tuple[Any, str]] = [
        (lambda: detect(PAIR, frame, **OPTIONS), "the events come first, then the pattern: write detect(events, pat"),
        (lambda: detect(EVENTS, frame, **OPTIONS), f"{made}, or read with read_pattern(path), got a {kind}"),
        (
            lambda: detect(EVENTS, {"a": PAIR, "b": frame}, **OPTIONS),
            f"{made}, or read with read_pattern(path), got a {kind} (pattern 'b')",
        ),
        (lambda: Matcher(frame, PAIR, **OPTIONS), f"{made}, or read with read_pattern(path), got a {kind}"),
        (lambda: OccurrencePattern.of(frame), f"{text}{type(frame).__name__}: a {kind}"),
        (lambda: detect(EVENTS, PAIR, time=frame), f"time: the name of a column is expected, got a {kind}"),
    ]
    for call, message in calls:
        with pytest.raises((PatternError, SchemaError)) as caught:
            call()
        assert str(caught.value).startswith(message)
    with pytest.raises(PatternError) as caught:
        OccurrencePattern.of(PAIR)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{text}Pattern: Pattern.begin(")
    assert len(str(caught.value)) < 400


def test_all_at_once() -> None:
    """One message reports all problems of the arguments."""
    assert len(refusal(key=["k", "k"], columns=["x", "x"], time=1, nulls="keep", as_of="soon")) == 5


@pytest.mark.parametrize("name", ["match_id", "Match_Start", "match_end", "detected_at", "_error", "_counts", "_slot0"])
def test_keys_with_names_of_the_output(name: str) -> None:
    """A key column is part of the output, so it cannot have one of these names; any other event column may."""
    events = EVENTS.rename_columns([name, "at", "x"])
    assert refusal(events, key=name) == [
        f"key: {name!r} is the name of a column that the output has itself; rename the key's"
    ]
    found = detect(events, PAIR, time="at", sequence="x")
    assert found.column("a").to_pylist() == [{name: "p", "at": T, "x": 1}]


def test_one_column_may_be_a_string() -> None:
    """A string names one column, as `key` and as `columns`; no key is None or an empty list."""
    expected = detect(EVENTS, PAIR, **{**OPTIONS, "key": ["k"]}, columns=["x"])
    assert detect(EVENTS, PAIR, **OPTIONS, columns="x") == expected
    assert expected.column("a").to_pylist() == [{"x": 1}]
    assert len(detect(EVENTS, PAIR, **{**OPTIONS, "key": None})) == 1
    assert len(detect(EVENTS, PAIR, **{**OPTIONS, "key": ()})) == 1


def test_columns_of_one_name() -> None:
    """Two columns with the same name are ambiguous, in every kind of table."""
    message = ["two columns of the events are named 'x': rename one"]
    assert refusal(EVENTS.append_column("x", EVENTS.column("x"))) == message
    frame = EVENTS.to_pandas()
    assert refusal(pd.concat([frame, frame[["x"]]], axis=1)) == message


def test_mixed_columns_of_pandas() -> None:
    """All columns that hold values of several types are named."""
    frame = pd.DataFrame({"at": [T, T], "x": [1, "b"], "y": [b"a", 2], "z": [1, 2]})
    first, second = refusal(frame, key=None, sequence=None)
    assert first.startswith("column 'x' of the events is no column of one type (it holds int, str): ")
    assert second.startswith("column 'y' of the events is no column of one type (it holds bytes, int): ")
    assert second.endswith(". Convert it, for example with astype, or leave it out")


def test_times_of_pandas_with_and_without_zones() -> None:
    """A column that mixes times with and without zones is refused; times in several zones are instants and are
    accepted.
    """
    instant = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    local = instant.replace(tzinfo=None)
    two = [pd.Series([local, instant], dtype=object), pd.Series([instant, local, pd.NaT], dtype=object)[:2]]
    nested = [{"then": [local]}, {"then": [instant]}]
    frame = pd.DataFrame({"at": two[0], "x": two[1], "y": nested, "z": [1, "b"]})
    first, second = "row 0, counted from 0", "row 1, counted from 0"
    rows = {"at": (second, first), "x": (first, second), "y": (second, first)}
    messages = [
        f"column {name!r} of the events holds times with a zone and times without one, as 2024-05-01 12:00:00+02:00 "
        f"({with_zone}) and 2024-05-01 12:00:00 ({without}): which instants these are is not known. "
        "Give all of them a zone, or none"
        for name, (with_zone, without) in rows.items()
    ]
    assert refusal(frame.drop(columns="z"), key=None, sequence=None) == messages
    assert refusal(frame, key=None, sequence=None)[:3] == messages
    pattern = interval_pattern("EVENT PAL(A a)").taxonomy("z")
    with pytest.raises(SchemaError, match="column 'at' of the events holds times with a zone and times without"):
        detect(frame[["at", "z"]].astype({"z": str}), pattern, time=("at", "at"))
    with pytest.raises(SchemaError, match="column 'at' of the events holds times with a zone and times without"):
        Matcher(Pattern.begin("a"), pa.schema({"at": pa.timestamp("us", "UTC")}), time="at").process(frame[["at"]])
    zones = [instant, pd.NaT, (instant + timedelta(hours=1)).astimezone(UTC)]
    events = pd.DataFrame({"at": pd.Series(zones, dtype=object)})
    found = detect(events, Pattern.begin("a"), time="at", nulls="drop", report=Report())
    assert found["match_start"].tolist() == [instant, instant + timedelta(hours=1)]


def test_dates_and_times_of_pandas_in_one_column() -> None:
    """Arrow would turn the dates into times, also within lists and dicts. A dict may have both, each in its
    own field.
    """
    day, noon = date(2024, 5, 1), datetime(2024, 5, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    values = {"at": [day, noon], "x": [[day], [pd.Timestamp(noon)]], "y": [{"then": noon}, {"then": day}]}
    frame = pd.DataFrame({name: pd.Series(given, dtype=object) for name, given in values.items()})
    what = "holds dates and times: the dates have no time of day, and the times would lose theirs. "
    how = "Make all times, or all dates, for example with pandas.to_datetime"
    messages = [f"column {name!r} of the events {what}{how}" for name in values]
    assert refusal(frame, key=None, sequence=None) == messages
    with pytest.raises(SchemaError) as caught:
        detect(frame[["at"]].assign(z="A"), interval_pattern("EVENT PAL(A a)").taxonomy("z"), time=("at", "at"))
    assert str(caught.value) == messages[0]
    with pytest.raises(SchemaError) as caught:
        detect(frame[["at"]].assign(z="A"), OccurrencePattern.of("A").taxonomy("z"), time="at")
    assert str(caught.value) == messages[0]
    both = [{"day": day, "noon": noon, "instant": noon.replace(tzinfo=UTC)}, {"day": day, "noon": pd.NaT}]
    days = pd.Series([day, pd.NaT], dtype=object)
    events = pd.DataFrame({"at": [T, T + timedelta(hours=1)], "both": both, "day": days})
    found = detect(events, Pattern.begin("a"), time="at")["a"].tolist()
    assert (found[0]["both"]["noon"], found[0]["day"]) == (noon, day)


# Warnings


def line() -> int:
    """The line of the caller."""
    frame = currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("options", [{"sequence": None}, {"nulls": "drop", "key": "s"}])
def test_warnings_show_the_caller_s_line(options: dict[str, Any]) -> None:
    """A warning points to the line that calls detect, so that Python shows it once for each such line."""
    events = EVENTS.append_column("s", pa.array(["p", None]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        here = line() + 1
        detect(events, PAIR, **{**OPTIONS, **options})
    assert {(one.category, one.filename, one.lineno) for one in caught} == {(CepheidWarning, __file__, here)}


def test_dropped_events_are_not_silent() -> None:
    """Without a report, a warning states how many events were dropped; with one, the report does."""
    events = pa.table({"k": ["p", None, "p", None], "at": pa.array([T, T, None, None]), "x": [1, 2, 3, 4]})
    with pytest.warns(CepheidWarning) as caught:
        detect(events, PAIR, **OPTIONS, nulls="drop")
    dropped = (
        "dropped: 2 events without key and 1 event without time. Give a Report, as in detect(…, report=report), "
        "to have the counts in it instead"
    )
    assert [str(one.message) for one in caught].count(dropped) == 1
    report = Report()
    detect(events, PAIR, **OPTIONS, nulls="drop", report=report)
    assert (report.counts.null_keys, report.counts.null_times) == (2, 1)


LOGINS = EVENTS.append_column("kind", pa.array(["login", "logout"])).append_column("to", EVENTS.column("at"))


@pytest.mark.parametrize(
    ("pattern", "time"),
    [
        (Pattern.begin("a").subtype("logni"), "at"),
        (OccurrencePattern.of("Logni; buy"), "at"),
        (OccurrencePattern.of("early; buy").restrict("early", "logni", "x = 1"), "at"),
        (interval_pattern("EVENT SEQ(logout a, !logni b, buy c)"), ("at", "to")),
    ],
)
def test_types_that_may_be_misspelled(pattern: Any, time: Any) -> None:
    """A type that no event has is reported if it resembles a type of the events and the taxonomy does not list it."""
    events = LOGINS if isinstance(time, tuple) else LOGINS.drop_columns("to")
    typed = pattern.taxonomy("kind")
    with pytest.warns(CepheidWarning) as caught:
        detect(events, typed, time=time, sequence=None if isinstance(time, tuple) else "x")
    (message,) = [str(one.message) for one in caught]
    assert message.lower() == (
        "no event is of the type 'logni'. did you mean 'login'? "
        'if not, list all types in the taxonomy, as in {"transfer": []}'
    )
    with pytest.warns(CepheidWarning, match=r"pattern 'p': no event is of the type"):
        detect(events, {"p": typed}, time=time, sequence=None if isinstance(time, tuple) else "x")


def test_types_that_no_event_has() -> None:
    """There is no warning about a type that resembles none of the events' types, that the taxonomy lists, or that
    stands in the pattern beside the type it resembles. Nor is there one for a table without events or with too many
    types.
    """
    types = {kind: [] for kind in ("logni", "login", "logout")}
    many = pa.table({"at": [T] * 2000, "kind": [f"login{number}" for number in range(2000)]})
    for pattern, events in (
        (OccurrencePattern.of("buy; logout").taxonomy("kind"), LOGINS),
        (OccurrencePattern.of("logni; logout").taxonomy("kind", types), LOGINS),
        (OccurrencePattern.of("logni; login").taxonomy("kind"), LOGINS.slice(0, 1)),
        (OccurrencePattern.of("logni; logout").taxonomy("kind"), LOGINS[:0]),
        (OccurrencePattern.of("logni; logout").taxonomy("kind"), many),
    ):
        detect(events, pattern, time="at")


# as_of


@pytest.mark.parametrize(
    ("as_of", "zone", "message"),
    [
        (
            "2024-10-27 02:30",
            "Europe/Berlin",
            (
                "as_of: the local time 2024-10-27 02:30:00 is ambiguous in Europe/Berlin. "
                "Give it with its offset, as in '2024-10-27 01:30:00+00:00'"
            ),
        ),
        (
            datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001 - a local time is the point
            "Europe/Berlin",
            (
                "as_of: the local time 2024-03-31 02:30:00 does not exist in Europe/Berlin. "
                "Give it with its offset, as in '2024-03-31 00:30:00+00:00'"
            ),
        ),
    ],
)
def test_uncertain_as_of(as_of: Any, zone: str, message: str) -> None:
    """A local time that is ambiguous or does not exist is refused."""
    assert refusal(as_of=as_of, time_zone=zone) == [message]


@pytest.mark.parametrize(
    "as_of",
    ["2024-01-01 01:00", "2024-01-01 00:00+00:00", datetime(2024, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))],
)
def test_as_of_is_read_in_the_zone(as_of: Any) -> None:
    """A local as_of is read in `time_zone`, here an hour ahead of UTC; one with a zone is an instant."""
    assert len(detect(EVENTS, PAIR, **OPTIONS, as_of=as_of, time_zone="Europe/Berlin")) == 1


def test_as_of_in_utc() -> None:
    """In process the default zone is UTC."""
    assert len(detect(EVENTS, PAIR, **OPTIONS, as_of="2024-01-01")) == 1
    assert len(detect(EVENTS, PAIR, **OPTIONS, as_of="2023-12-31 23:59:59")) == 0


# Columns that do not fit


def test_unused_columns_may_be_anything() -> None:
    """A column that no condition uses is not checked; a used column of an unsupported type is reported."""
    odd = pa.array([1, 2], pa.timestamp("ns"))
    events = EVENTS.append_column("odd", odd).append_column("in", pa.StructArray.from_arrays([odd], ["odd"]))
    assert len(detect(events, PAIR, **OPTIONS, columns=["x"])) == 1
    assert len(detect(events, PAIR, **OPTIONS, columns=["odd"])) == 1
    late = PAIR.next("c").where("odd > TIMESTAMP_NTZ '1970-01-01 00:00:00'")
    for pattern, columns, name in ((PAIR, ["in"], "in"), (late, ["x"], "odd")):
        with pytest.raises(EventError) as caught:
            detect(events, pattern, **OPTIONS, columns=columns)
        assert str(caught.value).startswith(f"a value in column {name!r} does not fit ")
        assert str(caught.value).endswith(". Round the column first")


def test_unused_columns_of_types_that_arrow_lacks() -> None:
    """Unused columns of types that Arrow does not have are ignored; used ones are reported."""
    of_pandas = EVENTS.to_pandas().assign(o=[1, b"a"])
    mixed = "column 'o' of the events is no column of one type (it holds bytes, int): "
    of_polars = pl.DataFrame(EVENTS).with_columns(o=pl.lit(1).cast(pl.Int128))
    for events, message in ((of_pandas, mixed), (of_polars, "column 'o' of the events is of polars's type Int128")):
        known = events[["k", "at", "x"]]
        expected = pa.table(detect(known, PAIR, **OPTIONS, columns=["x"]))
        assert pa.table(detect(events, PAIR, **OPTIONS, columns=["x"])) == expected
        for schema in (events, known):
            live = Matcher(PAIR, schema, **OPTIONS, columns=["x"])
            assert len(pa.concat_tables([live.process(events), live.finish()])) == 1
        uses: list[tuple[Any, dict[str, Any]]] = [
            (PAIR, {}),
            (PAIR, {"columns": ["o"]}),
            (PAIR, {"columns": ["x"], "key": "o"}),
            (PAIR, {"columns": ["x"], "sequence": "o"}),
            (PAIR, {"columns": ["x"], "measures": {"o": "b.o"}}),
            (PAIR.where("o = 1"), {"columns": ["x"]}),
            (PAIR.where(lambda _: True, name="f"), {"columns": ["x"]}),
            (OccurrencePattern.of("a; b").taxonomy("o"), {"columns": ["x"]}),
        ]
        for pattern, options in uses:
            for find in (
                lambda one, more: detect(events, one, **{**OPTIONS, **more}),  # noqa: B023 - called at once
                lambda one, more: Matcher(one, events, **{**OPTIONS, **more}),  # noqa: B023
            ):
                with pytest.raises(SchemaError) as caught:
                    find(pattern, options)
                assert str(caught.value).startswith(message)
        live = Matcher(
            Pattern.begin("a").where("o = 1"),
            pa.schema({"at": EVENTS.schema.field("at").type, "o": pa.int64()}),
            time="at",
        )
        with pytest.raises(SchemaError) as caught:
            live.process(events)
        assert str(caught.value).startswith(message)
