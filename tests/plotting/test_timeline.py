"""What a timeline shows: panels and lanes, events of matches, windows, words, and what it refuses."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.plotting.marks import marks, texts

from cepheid import IntervalPattern, OccurrencePattern, Pattern, Picture, detect, plot
from cepheid.errors import SchemaError
from cepheid.plotting.matches import matches_of

OF = {"key": "symbol", "time": "at"}


def prices(picture: Picture) -> list[tuple[str, str, float]]:
    """The panel, the stage and the value of each event of a match."""
    return sorted((row["row"], row["stage"], row["y"]) for row in marks(picture, "taken"))


EXPECTED = [("a", "high", 12.0), ("a", "high", 13.0), ("a", "low", 5.0), ("a", "low", 7.0)]
EXPECTED += [("b", "high", 11.0), ("b", "high", 20.0), ("b", "low", 3.0), ("b", "low", 7.0)]


def test_a_panel_for_each_key(events: pd.DataFrame, rising: Pattern) -> None:
    """With y each key has a line of all its events, its matches are marked by stage, and their windows are shaded."""
    picture = plot(events, detect(events, rising, **OF), y="price", **OF)
    assert prices(picture) == EXPECTED
    assert len(marks(picture, "events")) == len(events)
    windows = marks(picture, "windows")
    assert sorted((w["row"], (w["x2"] - w["x"]) / 60_000) for w in windows) == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]
    assert picture.title == "4 matches"


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
@pytest.mark.parametrize("form", ["stages", "rows of events", "several patterns"])
def test_each_kind_of_table_and_each_form(events: pd.DataFrame, rising: Pattern, kind: str, form: str) -> None:
    """Every kind of table is drawn, and every form in which detect gives matches with their events."""
    table: Any = events
    match kind:
        case "polars":
            table = pl.from_pandas(events)
        case "pyarrow":
            table = pa.Table.from_pandas(events)
        case "duckdb":
            table = duckdb.from_df(events)
    given: dict[str, Any] = {"rows of events": {"rows_per": "event"}}.get(form, {})
    pattern: Any = {"rising": rising} if form == "several patterns" else rising
    assert prices(plot(table, detect(table, pattern, **OF, **given), y="price", **OF)) == EXPECTED


def test_stages_of_several_patterns(events: pd.DataFrame, rising: Pattern) -> None:
    """Stages of several patterns have the name of their pattern, as both may have one of the same name."""
    found = detect(events, {"up": rising, "top": Pattern.begin("high").where("price = 20")}, **OF)
    picture = plot(events, found, y="price", **OF)
    assert {row["stage"] for row in marks(picture, "taken")} == {"up: low", "up: high", "top: high"}
    assert picture.title == "5 matches of top and up"


def test_lanes_are_keys(events: pd.DataFrame, rising: Pattern) -> None:
    """Without y each key is a lane with the events that are in no match, those of matches, and windows."""
    picture = plot(events, detect(events, rising, **OF), **OF)
    assert sorted(row["row"] for row in marks(picture, "events")) == ["a", "b"]
    assert {texts(picture, "events", row)["note"] for row in marks(picture, "events")} == {"a4", "b0"}
    assert len(marks(picture, "taken")) == 8
    assert {row["row"] for row in marks(picture, "windows")} == {"a", "b"}


def test_lanes_are_stages_for_one_key(events: pd.DataFrame, rising: Pattern) -> None:
    """Of one key the stages are lanes, in their order; lines lead from event to event; the last lane has the rest."""
    picture = plot(events, detect(events, rising, **OF), only={"symbol": "a"}, **OF)
    layer = picture.spec["layer"][3]
    assert layer["encoding"]["y"]["sort"] == ["low", "high", "in no match"]
    assert [row["row"] for row in marks(picture, "events")] == ["in no match"]
    assert [row["row"] for row in marks(picture, "threads")] == ["low", "high"] * 2
    assert picture.title == "a: 2 matches"


def test_lanes_of_a_column(events: pd.DataFrame, rising: Pattern) -> None:
    """With lanes each value of a column is a lane, that of the earliest event first."""
    picture = plot(events, detect(events, rising, **OF), lanes="note", only={"symbol": "a"}, **OF)
    assert picture.spec["layer"][0].get("encoding", {}).get("y") is None
    lanes = next(layer["encoding"]["y"]["sort"] for layer in picture.spec["layer"] if "y" in layer["encoding"])
    assert lanes == ["a0", "a1", "a2", "a3", "a4"]


def test_one_match(events: pd.DataFrame, rising: Pattern) -> None:
    """One match is drawn with the events of its key at its time, and a margin around it."""
    found = detect(events, rising, **OF).sort_values("match_start")
    wanted = found[found.symbol == "b"].iloc[0]
    picture = plot(events, found, y="price", only={"match_id": wanted.match_id}, **OF)
    assert prices(picture) == [("b", "high", 11.0), ("b", "low", 7.0)]
    assert [row["y"] for row in marks(picture, "events")] == [7.0, 11.0]


def test_columns_of_several_numbers(events: pd.DataFrame) -> None:
    """Several columns have a panel each."""
    picture = plot(events.assign(twice=events.price * 2), time="at", y=["price", "twice"], key="symbol")
    rows = {row["row"]: row["y"] for row in reversed(marks(picture, "events"))}
    assert rows == {"a · price": 5.0, "a · twice": 10.0, "b · price": 8.0, "b · twice": 16.0}
    assert picture.title == "price and twice by symbol"


def test_many_lanes_of_a_column(events: pd.DataFrame) -> None:
    """Of many values those in matches come first, then the earliest; the lanes are in the order of time."""
    many = pd.concat(
        [events[:1].assign(note=f"n{n:03}", at=events["at"][0] + timedelta(minutes=n)) for n in range(100)]
    )
    found = detect(many, Pattern.begin("late").where("note = 'n099'"), **OF)
    picture = plot(many, found, lanes="note", **OF)
    lanes = next(layer["encoding"]["y"]["sort"] for layer in picture.spec["layer"] if "y" in layer["encoding"])
    assert lanes == [*(f"n{n:03}" for n in range(29)), "n099"]
    assert "30 of 100 values of note, those in matches first" in str(picture.spec["title"]["subtitle"])


def test_intervals_are_bars() -> None:
    """Events with a start and an end are bars; a plan is drawn beside them, and words."""
    at = pd.Timestamp("2026-03-02 08:00")
    rows = [("fog", 0, 9), ("held", 2, 5), ("held", 20, 22)]
    events = pd.DataFrame(
        {
            "kind": [kind for kind, _, _ in rows],
            "begin": [at + timedelta(hours=begin) for _, begin, _ in rows],
            "end": [at + timedelta(hours=end) for _, _, end in rows],
            "words": ["thick", None, "long"],
        }
    ).assign(plan=at, until=at + timedelta(hours=1))
    pattern = IntervalPattern.pal(w="fog", h="held").relate("w", "contain", "h").taxonomy("kind")
    found = detect(events, pattern, time=("begin", "end"))
    picture = plot(events, found, time=("begin", "end"), lanes="kind", planned=("plan", "until"), label="words")
    taken = {row["stage"]: row for row in marks(picture, "taken")}
    hours = {stage: ((row["x"] - row["p"]) / 3.6e6, (row["x2"] - row["p"]) / 3.6e6) for stage, row in taken.items()}
    assert hours == {"w": (0, 9), "h": (2, 5)}
    assert [row["words"] for row in taken.values()] == ["thick", ""]
    assert [row["x2"] - row["x"] for row in marks(picture, "events")] == [2 * 3.6e6]


def test_occurrences(events: pd.DataFrame) -> None:
    """Events of an occurrence are drawn with their types as stages."""
    typed = events.assign(type=["low" if price < 8 else "high" for price in events.price])
    found = detect(typed, OccurrencePattern.of("low ; high").named("rise").taxonomy("type"), **OF)
    picture = plot(typed, found, y="price", only={"symbol": "b"}, **OF)
    assert {stage for _, stage, _ in prices(picture)} == {"low", "high"}


def test_a_stage_may_have_any_name(events: pd.DataFrame) -> None:
    """A stage named events is one like others."""
    pattern = Pattern.begin("low").where("price < 6").next("events").where("price > 6")
    picture = plot(events, detect(events, pattern, **OF), y="price", only={"symbol": "b"}, **OF)
    assert prices(picture) == [("b", "events", 20.0), ("b", "low", 3.0)]


def test_a_loop_with_two_columns(events: pd.DataFrame) -> None:
    """Events with two columns, the second nested, are those of a stage, and no map from stages."""
    table = pa.Table.from_pandas(events)
    rise = Pattern.begin("low").where("price < 6").next("high").where("price > 6").times(2).consecutive()
    for tags in (pa.array([["x"]] * len(events)), pa.array([{"x": 1}] * len(events))):
        found = detect(table.append_column("tags", tags), rise, columns=["note", "tags"], **OF)
        assert matches_of(found, ["symbol"], ["at"]).stage == ["low", "high", "high"]


def test_numbers_in_place_of_times(events: pd.DataFrame, rising: Pattern) -> None:
    """Without times a column of numbers is the axis; windows come from the events of the matches."""
    numbered = events.assign(n=range(len(events)))
    found = detect(numbered, rising, key="symbol", time=None, sequence="n")
    picture = plot(numbered, found, time="n", y="price", key="symbol")
    assert prices(picture) == EXPECTED
    assert {row["x2"] - row["x"] for row in marks(picture, "windows")} == {1}


def test_measures_have_windows_alone(events: pd.DataFrame, rising: Pattern) -> None:
    """Matches with measures in place of their events are shaded, with the measures in the tooltip; measures that are
    lists or maps are left out.
    """
    found = detect(pa.Table.from_pandas(events), rising, measures={"gain": "high.price - low.price"}, **OF)
    found = found.append_column("prices", pa.array([[1.0, 2.0]] * 4))
    found = found.append_column("counts", pa.array([[("low", 1)]] * 4, pa.map_(pa.string(), pa.int64())))
    picture = plot(events, found, y="price", **OF)
    gains = [texts(picture, "windows", row)["gain"] for row in marks(picture, "windows")]
    assert (sorted(gains, key=float), marks(picture, "taken")) == (["4", "6", "7", "17"], [])


def test_the_clock_is_that_of_the_zone(events: pd.DataFrame) -> None:
    """Times are those of the column's zone, or of the one that is asked for; words agree with the axis."""
    aware = events.assign(at=events["at"].dt.tz_localize("UTC"))
    for zone, hour in ((None, "08:00"), ("America/New_York", "03:00")):
        first = marks(picture := plot(aware, time="at", y="price", time_zone=zone), "events")[0]
        assert texts(picture, "events", first)["at"] == f"2026-03-02 {hour}"
        assert f"{pd.Timestamp(first['x'], unit='ms'):%H:%M}" == hour


def test_the_same_event_in_several_matches(events: pd.DataFrame) -> None:
    """An event that several matches have in one stage is one dot, which names them."""
    pairs = Pattern.begin("low").where("price < 7").followed_by_any("high").where("price > 11")
    found = detect(events, pairs, **OF)
    picture = plot(events, found, y="price", only={"symbol": "a"}, **OF)
    (low,) = (row for row in marks(picture, "taken") if row["stage"] == "low")
    assert texts(picture, "taken", low)["match"].count(",") == 1


@pytest.mark.parametrize(
    ("values", "text"), [([1.5, 2.5], "2.5"), ([date(2026, 3, 2), date(2026, 3, 3)], "2026-03-03")]
)
def test_a_key_is_chosen_by_its_text(events: pd.DataFrame, values: list[Any], text: str) -> None:
    """Numbers and dates can be chosen by their text, as on a command line."""
    keyed = events.assign(symbol=[values[symbol == "b"] for symbol in events.symbol])
    picture = plot(keyed, time="at", y="price", key="symbol", only={"symbol": text})
    assert [row["y"] for row in marks(picture, "events")] == list(events.price[events.symbol == "b"])


def test_many_keys(events: pd.DataFrame, rising: Pattern) -> None:
    """Of many keys those with the most matches are shown, and the picture says so."""
    many = pd.concat([events[events.symbol == "a"].assign(symbol=f"k{n}", price=n) for n in range(40)])
    all_ = pd.concat([events, many])
    picture = plot(all_, detect(all_, rising, **OF), y="price", **OF)
    assert {"a", "b"} < {row["row"] for row in marks(picture, "events")}
    assert "12 of 42 keys, those with the most matches" in picture.spec["title"]["subtitle"][1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": "att"}, "no column named 'att'; the events have symbol, at, price, note"),
        ({"time": "at", "y": "note"}, "y: 'note' is string; a column of numbers is expected"),
        ({"time": "note"}, "time: 'note' is string; a column of times or of numbers is expected"),
        ({"y": "price"}, "time: name the column of the event times, or those of start and end"),
        ({"time": "at", "planned": "at"}, "planned: it is the columns of the planned start and end"),
        ({"time": "at", "y": "price", "lanes": "note"}, "lanes: a picture with y has a panel for each key"),
        ({"time": ("at", "at"), "y": "price"}, "y: it draws a line through events of one time"),
        ({"time": "at", "only": {"symbl": "a"}}, "only: no column named 'symbl'; choose by match_id"),
        ({"time": "at", "only": {"symbol": "z"}}, "there is no event to draw with {'symbol': ['z']}"),
        ({"time": "at", "only": {"price": "high"}}, "only: ['high'] are no values of column 'price', which is double"),
        ({"time": "at", "only": "a"}, "only: a mapping is expected, as in {'symbol': 'AMZN'}, got 'a'"),
        ({"time": "at", "columns": 3}, "columns: the name of a column, or several, is expected, got 3"),
    ],
)
def test_what_is_refused(events: pd.DataFrame, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as error:
        plot(events, **arguments)
    assert message in str(error.value)


def test_matches_without_what_is_drawn(events: pd.DataFrame, rising: Pattern) -> None:
    """Events of matches that lack a column are refused with what to do; so is a table that has no matches."""
    found = detect(events, rising, columns=["price"], **OF)
    with pytest.raises(SchemaError, match="their events have no column 'at', which the picture needs: let detect"):
        plot(events, found, y="price", **OF)
    with pytest.raises(SchemaError, match="matches: they have no column 'match_id'"):
        plot(events, events, y="price", **OF)
    with pytest.raises(SchemaError, match="only: there is no match 12ab"):
        plot(events, detect(events, rising, **OF), only={"match_id": "12ab"}, **OF)
    with pytest.raises(SchemaError, match="plot draws events, matches or both"):
        plot()


def test_matches_lie_at_their_events_whatever_the_zones(events: pd.DataFrame, rising: Pattern) -> None:
    """Where one table has times with a zone and the other has none, `time_zone` says how to read these; without it the
    picture is refused.
    """
    found = detect(events, rising, **OF)
    zoned = events.assign(at=events["at"].dt.tz_localize("America/New_York").dt.tz_convert("UTC"))
    with pytest.raises(SchemaError, match=r"'at' of the events is timestamp\[.*, tz=UTC\], .*Say with time_zone=…"):
        plot(zoned, found, y="price", **OF)
    expected = plot(events, found, y="price", **OF)
    for one, other in ((zoned, found), (events, detect(zoned, rising, **OF))):
        picture = plot(one, other, y="price", time_zone="America/New_York", **OF)
        for what in ("events", "taken", "windows"):
            assert [row["x"] for row in marks(picture, what)] == [row["x"] for row in marks(expected, what)], what


@pytest.mark.parametrize("values", [(None, "NULL"), ("x" * 300, "x" * 299 + "y")])
def test_keys_that_read_alike_are_told_apart(events: pd.DataFrame, rising: Pattern, values: tuple[Any, Any]) -> None:
    """Different keys have panels, and different values lanes, of their own, also if their labels would agree."""
    keyed = events.assign(symbol=[values[symbol == "b"] for symbol in events.symbol])
    found = detect(keyed.dropna(), rising, **OF)
    for picture in (plot(keyed, found, y="price", **OF), plot(keyed, found, time="at", lanes="symbol")):
        rows = {row["row"] for what in ("events", "taken") for row in marks(picture, what)}
        assert len(rows) == 2
        assert any(row.endswith(" (2)") for row in rows)


def test_keys_of_two_types_are_one_key(events: pd.DataFrame, rising: Pattern) -> None:
    """Keys of matches that have another type are read in that of the events; if they cannot be, the message says so."""
    numbered = events.assign(symbol=[1 if symbol == "b" else 2 for symbol in events.symbol])
    found = detect(numbered, rising, **OF)
    as_text = found.assign(symbol=found.symbol.astype(str))
    same = [marks(plot(numbered, one, y="price", **OF), "taken") for one in (found, as_text)]
    assert same[0] == same[1] != []
    with pytest.raises(SchemaError, match=r"'symbol' is of type int64 and .* in the events and in the matches"):
        plot(numbered, found.assign(symbol="a"), y="price", **OF)


@pytest.mark.parametrize("name", ["a\nb", "a\\", 'a\\"b', "a\u2028b", "a.b[0]"])
def test_any_name_of_a_column_can_be_drawn(events: pd.DataFrame, rising: Pattern, name: str) -> None:
    """Vega-Lite puts names of columns into expressions, where line breaks and backslashes would be errors."""
    found = detect(events.rename(columns={"symbol": name}), rising, time="at", key=name)
    named = events.rename(columns={"price": name, "at": f"{name}t"})
    for picture in (plot(named, time=f"{name}t", y=name, key="symbol"), plot(matches=found, key=name)):
        assert picture.svg().startswith("<svg")


@pytest.mark.parametrize(
    ("argument", "given", "message"),
    [
        ("time_zone", "Mars", "time_zone: 'Mars' is not known; use a name such as"),
        ("time_zone", 5, "time_zone: 5 is not known"),
        ("title", 5, "title: text is expected, got 5"),
        ("subtitle", ["a"], r"subtitle: text is expected, got \['a'\]"),
        ("label", 1, "label: text is expected, got 1"),
        ("lanes", ("symbol",), r"lanes: text is expected, got \('symbol',\)"),
    ],
)
def test_arguments_of_another_kind_are_named(events: pd.DataFrame, argument: str, given: Any, message: str) -> None:
    """A wrong argument is named, with what is expected."""
    with pytest.raises(SchemaError, match=message):
        plot(events, time="at", **{argument: given})
