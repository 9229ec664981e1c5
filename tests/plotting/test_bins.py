"""Aggregation: nothing is lost, pictures stay small, and they say what they do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plotting.marks import marks, texts, values

from cepheid import Pattern, detect, plot
from cepheid.plotting.bins import MOST_MARKS, Steps, cells_of, open_counts, steps_for, too_many
from cepheid.plotting.clock import Clock

CLOCK = Clock(is_time=True, zone=None)
PLACES = st.lists(st.integers(0, 500), max_size=30)


@given(PLACES, st.integers(1, 50), st.integers(1, 4))
def test_each_event_is_in_one_cell(places: list[int], length: int, groups: int) -> None:
    """Cells have all events, each in the step and group of its own, with their least, mean and greatest value."""
    x = np.array(places, np.float64)
    group, y = np.arange(len(x)) % groups, x * 2
    cells = cells_of(x, y, group, Steps(length, ""))
    expected: dict[tuple[int, int], list[float]] = {}
    for place, value, number in zip(places, y.tolist(), group.tolist(), strict=True):
        expected.setdefault((number, place // length), []).append(value)
    found = zip(group[cells.first].tolist(), ((cells.x - length / 2) // length).tolist(), strict=True)
    assert [(key, int(step)) for key, step in found] == sorted(expected)
    assert cells.count.tolist() == [len(values) for _, values in sorted(expected.items())]
    if cells.low is not None and cells.high is not None and cells.y is not None:
        spread = zip(cells.low.tolist(), cells.y.tolist(), cells.high.tolist(), strict=True)
        assert [(low, pytest.approx(mean), high) for low, mean, high in spread] == [
            (min(values), np.mean(values), max(values)) for _, values in sorted(expected.items())
        ]


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 30), st.integers(0, 2)), max_size=20), st.integers(1, 9))
def test_open_counts(windows: list[tuple[int, int, int]], length: int) -> None:
    """At each step as many windows are open as touch it."""
    begin, long, group = (np.array([window[part] for window in windows], np.int64) for part in range(3))
    found = open_counts(begin.astype(float), (begin + long).astype(float), group, Steps(length, ""))
    for number in range(3):
        for step in range(130 // length):
            touching = sum(b // length <= step <= (b + size) // length for b, size, g in windows if g == number)
            counts = found.count[(found.group == number) & (found.begin <= step * length) & (step * length < found.end)]
            assert counts.tolist() == ([touching] if touching else [])


@given(st.floats(0, 1e12), st.integers(1, 1000), st.booleans())
def test_steps_are_few(width: float, most: int, is_time: bool) -> None:  # noqa: FBT001
    """Steps of a usual length cover the places with no more steps than asked for."""
    steps = steps_for(np.array([0, width]), most, Clock(is_time=is_time, zone=None))
    assert width / steps.length <= most * (1 + 1e-9)


def test_what_is_aggregated() -> None:
    """The most frequent kinds are aggregated until what remains is few enough."""
    assert too_many({"events": 4_000, "taken": 900, "windows": 100}) == set()
    assert too_many({"events": 400_000, "taken": 900, "windows": 100}) == {"events"}
    assert too_many({"events": 400_000, "taken": 90_000, "windows": 3_100}) == {"events", "taken", "windows"}


@pytest.fixture
def readings() -> pd.DataFrame:
    """A reading every second from each of three machines, high once in a hundred."""
    seconds, rng = 20_000, np.random.default_rng(1)
    at = pd.Timestamp("2026-03-02") + pd.to_timedelta(np.arange(seconds), unit="s")
    frames = [pd.DataFrame({"machine": m, "at": at, "value": rng.normal(size=seconds)}) for m in "abc"]
    return pd.concat(frames)


@pytest.mark.parametrize("y", ["value", None])
def test_pictures_stay_small(readings: pd.DataFrame, y: str | None) -> None:
    """A picture of 60,000 events and many matches has few marks, counts all events, and says so."""
    found = detect(
        readings, Pattern.begin("high").where("value > 1").next("low").where("value < 0"), key="machine", time="at"
    )
    picture = plot(readings, found, time="at", y=y, key="machine")
    assert len(values(picture)) <= MOST_MARKS
    taken = marks(picture, "taken")
    assert sum(row["count"] for row in taken) == 2 * len(found)
    counts = [texts(picture, "events", row)["events"] for row in marks(picture, "events")]
    shown = len(readings) if y else len(readings) - 2 * len(found)
    assert sum(int(count.replace(",", "")) for count in counts) == shown
    note = picture.spec["title"]["subtitle"][-1]
    grey = "lines are means of 2 min, bands" if y else "grey is darker where more events are, in steps of 2 min"
    assert note.startswith(f"More than 5,000 marks: {grey}")
    assert "dots stand for the events of a stage in 5 min; shading is darker where more matches are open" in note


def test_extremes_survive(readings: pd.DataFrame) -> None:
    """The band of an aggregated line reaches to the least and the greatest value of all."""
    events = marks(plot(readings, time="at", y="value", key="machine"), "events")
    for machine, own in readings.groupby("machine"):
        rows = [row for row in events if row["row"] == machine]
        assert (min(row["low"] for row in rows), max(row["high"] for row in rows)) == (own.value.min(), own.value.max())
