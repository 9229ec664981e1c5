"""Twenty questions about data of others: each is a script as a user would write it, and is answered in another way."""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from tests.tasks.data import BOKEH, RIVER, VEGA, with_data

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = [with_data, pytest.mark.filterwarnings("ignore::cepheid.CepheidWarning")]


def run(name: str) -> dict[str, Any]:
    """The names that the script defines."""
    return runpy.run_path(str(SCRIPTS / f"{name}.py"))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shell(name: str) -> str:
    """What the script prints, with the `cepheid` of this environment."""
    environment = {**os.environ, "BOKEH": str(BOKEH), "VEGA": str(VEGA)}
    function = f'cepheid() {{ {shlex.quote(sys.executable)} -m cepheid "$@"; }}\nset -eu\n'
    script = function + (SCRIPTS / f"{name}.sh").read_text("utf-8")
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stocks() -> pd.DataFrame:
    """In the order of shares and days."""
    return pd.read_csv(BOKEH / "stocks.csv.gz", parse_dates=["Date"]).sort_values(["Ticker", "Date"], ignore_index=True)


def weather() -> pd.DataFrame:
    return pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])


def runs(signs: list[int]) -> Iterator[tuple[int, int, int]]:
    """The stretches of equal values: value, first and last place."""
    first = 0
    for place in range(1, len(signs) + 1):
        if place == len(signs) or signs[place] != signs[first]:
            yield signs[first], first, place - 1
            first = place


def moves(closes: list[float]) -> list[int]:
    """Between each day and the next: -1 the price fell, 1 it rose, 0 neither."""
    return [(after > before) - (after < before) for before, after in pairwise(closes)]


def test_v_shape() -> None:
    """Three falls or more, then three rises or more: matches do not overlap."""
    expected = []
    for ticker, own in stocks().groupby("Ticker"):
        days, free = own["Date"].tolist(), 0
        stretches = [*runs(moves(own["Close"].tolist()))]
        for (down, first, _), (up, rise, last) in pairwise(stretches):
            start = max(first, free)
            if down == -1 and up == 1 and rise - start >= 3 and last - rise >= 2:
                expected.append((ticker, days[start], days[last + 1]))
                free = last + 2
    found = run("v_shape")["matches"]
    assert sorted(zip(found["Ticker"], found["match_start"], found["match_end"], strict=True)) == expected
    assert len(expected) > 100


def test_double_bottom() -> None:
    """Two lows within two percent, and a close above the peak between them: matches do not overlap."""
    expected = []
    for ticker, own in stocks().groupby("Ticker"):
        prices, days, free = own["Close"].tolist(), own["Date"].tolist(), 0
        stretches = [*runs(moves(prices))]
        for (one, _, a), (two, _, b), (three, _, c), (four, _, _) in zip(
            stretches, stretches[1:], stretches[2:], stretches[3:], strict=False
        ):
            low, peak, second, after = prices[a + 1], prices[b + 1], prices[c + 1], prices[c + 2]
            down_and_up = (one, two, three, four) == (-1, 1, -1, 1)
            if down_and_up and a >= free and abs(second / low - 1) < 0.02 and after > peak:
                expected.append((ticker, days[c + 2]))
                free = c + 3
    found = run("double_bottom")["matches"]
    assert sorted(zip(found["Ticker"], found["match_end"], strict=True)) == expected
    assert len(expected) > 100


def test_reopened() -> None:
    """A rainy day, three dry ones, a rainy day."""
    rain = (weather()["precipitation"] > 0).tolist()
    days = weather()["date"].tolist()
    expected = [days[n] for n in range(len(rain) - 4) if rain[n : n + 5] == [True, False, False, False, True]]
    assert run("reopened")["matches"]["match_start"].tolist() == expected
    assert len(expected) == 20


def test_ping_pong() -> None:
    """Rain and no rain for six days: the first of those that overlap."""
    rain, days = (weather()["precipitation"] > 0).tolist(), weather()["date"].tolist()
    expected, free = [], 0
    for n in range(len(rain) - 5):
        if n >= free and rain[n : n + 6] == [True, False] * 3:
            expected.append(days[n])
            free = n + 6
    assert run("ping_pong")["matches"]["match_start"].tolist() == expected
    assert expected


def test_absence() -> None:
    """Readings whose next one comes a quarter of an hour later or more, and the last one."""
    times = pd.read_csv(BOKEH / "CGM.csv.gz", parse_dates=["datetime"])["datetime"].sort_values(ignore_index=True)
    gap = times.shift(-1) - times
    expected = times[(gap >= pd.Timedelta(minutes=15)) | gap.isna()]
    assert sorted(run("absence")["matches"]["match_start"]) == expected.tolist()


def test_group_loop() -> None:
    """Three efforts with a rest after each, in half an hour; those of the only match are the first three."""
    ride = pd.read_csv(BOKEH / "cycling.csv.gz")
    at = pd.to_timedelta(ride["time"])
    efforts, rested = [], True
    for time, power in zip(at, ride["power"], strict=True):
        if rested and power > 230:
            efforts.append((time, power))
            rested = False
        elif power < 105:
            rested = True
    found = run("group_loop")["matches"]
    assert (found["match_start"] - pd.Timestamp("2014-01-01")).tolist() == [efforts[0][0]]
    assert found["power"].tolist() == [pytest.approx(sum(power for _, power in efforts[:3]) / 3)]
    assert found["reps"].tolist() == [3]


def test_running_average() -> None:
    """Hours with a flow a tenth above the mean of the six readings before."""
    flow = pd.read_csv(RIVER / "datasets/water-flow.csv").set_axis(["at", "flow"], axis="columns")
    flow["at"] = pd.to_datetime(flow["at"], utc=True)
    flow = flow.sort_values("at", ignore_index=True)
    before = flow["flow"].shift(1).rolling(6).mean()
    assert run("running_average")["matches"]["match_end"].tolist() == flow["at"][flow["flow"] > 1.1 * before].tolist()


def test_intervals() -> None:
    """Rain begins before the frost, and ends during it."""
    spells = run("intervals")["spells"]
    rain, frost = (spells[spells["kind"] == kind] for kind in ("rain", "frost"))
    expected = [
        (one.start, other.end)
        for one in rain.itertuples()
        for other in frost.itertuples()
        if one.start < other.start < one.end < other.end
    ]
    found = run("intervals")["matches"]
    assert sorted(zip(found["match_start"], found["match_end"], strict=True)) == expected
    assert expected


def test_algebra() -> None:
    """The later of the two days is at most two days after the earlier, and none between them has snow."""
    events = run("algebra")["weather"]
    days = {kind: events["date"][events["kind"] == kind].tolist() for kind in ("wind", "flood", "snow")}
    expected = {
        (min(one, other), max(one, other))
        for one in days["wind"]
        for other in days["flood"]
        if abs(one - other) <= pd.Timedelta(days=2)
        and not any(min(one, other) <= snow <= max(one, other) for snow in days["snow"])
    }
    found = run("algebra")["matches"]
    assert {*zip(found["match_start"], found["match_end"], strict=True)} == expected
    assert expected


def test_a_condition_in_python() -> None:
    """The change of the day after eleven others exceeds three times the median of their ten changes."""
    expected = []
    for ticker, own in stocks().groupby("Ticker"):
        closes, days, free = own["Close"].tolist(), own["Date"].tolist(), 0
        for n in range(len(closes) - 11):
            changes = sorted(abs(b - a) for a, b in pairwise(closes[n : n + 11]))
            if n >= free and abs(closes[n + 11] - closes[n + 10]) > 3 * changes[5]:
                expected.append((ticker, days[n], days[n + 11]))
                free = n + 12
    found = run("in_python")["matches"]
    assert sorted(zip(found["Ticker"], found["match_start"], found["match_end"], strict=True)) == expected


def test_a_pattern_file_and_the_command_line() -> None:
    """Six rises, and the hour after them is eight degrees above the start."""
    temperatures = pd.read_csv(VEGA / "sf-temps.csv")["temp"].tolist()
    expected, free = [], 0
    for n in range(len(temperatures) - 7):
        rises = all(b > a for a, b in pairwise(temperatures[n : n + 7]))
        if n >= free and rises and temperatures[n + 7] > temperatures[n] + 8:
            expected.append((temperatures[n], temperatures[n + 7]))
            free = n + 8
    shell("yaml_and_cli")
    found = pd.read_csv("matches.csv")
    assert [*zip(found["low"], found["high"], strict=True)] == expected
    assert expected


def test_late_events() -> None:
    """No reading is lost, though they come in any order within six hours."""
    flow = pd.read_csv(RIVER / "datasets/water-flow.csv").set_axis(["at", "flow"], axis="columns")
    flow["at"] = pd.to_datetime(flow["at"], utc=True)
    flow = flow.sort_values("at", ignore_index=True)
    high = (flow["flow"] > 103.5).tolist()
    expected = [flow["at"][n] for n in range(len(high) - 3) if all(high[n : n + 4])]
    rows = run("late_events")["rows"]
    assert [row["match_start"] for row in rows if row["kind"] == "match"] == expected
    assert not [row for row in rows if row["kind"] == "late"]


@pytest.mark.spark
def test_two_patterns_on_spark(spark: SparkSession) -> None:  # noqa: ARG001 - the script takes the session
    """Each day and the first later one, within five days, that is a fifth lower, or a quarter higher."""
    expected = {"crash": set(), "recovery": set()}
    for ticker, own in stocks().groupby("Ticker"):
        rows = [*own.itertuples()]
        for n, before in enumerate(rows):
            later = [one for one in rows[n + 1 : n + 6] if one.Date - before.Date < pd.Timedelta(days=5)]
            for name, holds in {
                "crash": lambda one, before=before: one.Low < 0.8 * before.Close,
                "recovery": lambda one, before=before: one.High > 1.25 * before.Close,
            }.items():
                if (first := next(filter(holds, later), None)) is not None:
                    expected[name].add((ticker, str(before.Date.date()), str(first.Date.date())))
    found = run("two_patterns")["matches"]
    for name, matches in expected.items():
        own = found[found["pattern"] == name]
        got = {*zip(own["Ticker"], own["match_start"].astype(str), own["match_end"].astype(str), strict=True)}
        assert got == matches
        assert matches


@pytest.mark.spark
def test_a_stream_that_is_restarted(spark: SparkSession) -> None:  # noqa: ARG001 - the script takes the session
    """Both runs of the query together find what one pass over the table finds."""
    readings = pd.read_csv(BOKEH / "CGM.csv.gz", parse_dates=["datetime"]).sort_values("datetime", ignore_index=True)
    rows, expected, free = [*readings.itertuples()], [], pd.Timestamp.min
    for n, low in enumerate(rows):
        if low.glucose < 120 and low.datetime > free:
            for high in rows[n + 1 :]:
                if high.datetime - low.datetime >= pd.Timedelta(minutes=30):
                    break
                if high.glucose > low.glucose + 50:
                    expected.append((low.datetime, free := high.datetime))
                    break
    found = run("stream")["matches"]
    assert sorted(zip(found["match_start"], found["match_end"], strict=True)) == expected


def test_rows_per_event() -> None:
    """All days of stretches of three hot days or more, numbered."""
    hot = weather()["temp_max"] >= 30
    number = (~hot).cumsum()[hot]
    days = weather()[hot].groupby(number).filter(lambda own: len(own) >= 3)
    found = run("rows_per_event")["matches"]
    assert found["date"].tolist() == days["date"].tolist()
    assert found["days"].tolist() == days.groupby(number)["date"].transform("size").tolist()
    assert found["highest"].tolist() == days.groupby(number)["temp_max"].cummax().tolist()
    assert found["day_number"].tolist() == (days.groupby(number).cumcount() + 1).tolist()


def test_merge_onto_source_rows() -> None:
    """The marked rows are those of stretches of five losing days or more."""
    marked = run("merge_rows")["stocks"].sort_values(["Ticker", "Date"])
    losing = marked["Close"] < marked["Open"]
    stretch = ((~losing).cumsum().astype(str) + marked["Ticker"])[losing]
    expected = marked[losing].groupby(stretch).filter(lambda own: len(own) >= 5).index
    assert {*marked.index[marked["streak"].notna()]} == {*expected}
    assert len(expected) > 500


def test_a_daily_csv_on_the_command_line() -> None:
    """Days that open a tenth below the close before."""
    own = stocks()
    before = own.groupby("Ticker")["Close"].shift(1)
    expected = own["Open"][own["Open"] < 0.9 * before].tolist()
    shell("daily_csv")
    assert sorted(pd.read_csv("gaps.csv")["open"]) == sorted(expected)
    assert expected


def test_a_watchlist() -> None:
    """Five percent above the highest of five days, of two shares."""
    own = stocks()
    watched = own[own["Ticker"].isin(["IBM", "GOOG"])]
    highest = watched.groupby("Ticker")["High"].transform(lambda high: high.shift(1).rolling(5).max())
    expected = watched[watched["High"] > 1.05 * highest]
    found = run("watchlist")["matches"]
    assert sorted(zip(found["Ticker"], found["match_end"], strict=True)) == sorted(
        zip(expected["Ticker"], expected["Date"], strict=True)
    )


def test_a_plot() -> None:
    """The page is complete: it needs no network, and has the days of the heat waves."""
    run("plot")
    page = Path("heat.html").read_text("utf-8")
    assert "<script src=" not in page
    assert "2015-07-0" in page


def test_why() -> None:
    """Of all hot days, those with a second and a third after them."""
    hot = (weather()["temp_max"] >= 30).tolist()
    two = [n for n in range(len(hot) - 1) if hot[n] and hot[n + 1]]
    three = [n for n in two if n + 2 < len(hot) and hot[n + 2]]
    funnel = run("why_not")["found"].funnel
    assert funnel.starts == sum(hot)
    assert dict(funnel.reached) == {"first": sum(hot), "second": len(two), "third": len(three)}
    assert funnel.matched == len(three)
