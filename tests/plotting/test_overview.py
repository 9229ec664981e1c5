"""The overview of many matches: when they begin, which keys they have, how long they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.plotting.marks import values

from cepheid import Pattern, detect, plot
from cepheid.errors import SchemaError

HOUR = 3_600_000


def matches_of(count: int, keys: int) -> pd.DataFrame:
    """Matches, of which the first keys have more than others; match i is i % 4 hours long."""
    number = np.arange(count)
    start = pd.Timestamp("2026-03-02", tz="UTC") + pd.to_timedelta(number, unit="h")
    key = [f"k{n * n // max(count * count // keys, 1)}" for n in number.tolist()]
    ids = [f"{n:032x}" for n in number.tolist()]
    return pd.DataFrame(
        {"match_id": ids, "car": key, "match_start": start, "match_end": start + pd.to_timedelta(number % 4, unit="h")}
    )


@pytest.mark.parametrize("count", [400, 12_000])
def test_each_match_counts_once(count: int) -> None:
    """Every match counts in each panel; above 5,000 those that agree in all that is drawn are one row."""
    found = matches_of(count, 30)
    picture = plot(matches=found, key="car")
    rows = values(picture)
    assert sum(row["n"] for row in rows) == count
    counts = found.car.value_counts()
    shown: dict[str, int] = {}
    for row in rows:
        if "key" in row:
            shown[row["key"]] = shown.get(row["key"], 0) + row["n"]
    assert sorted(shown.values(), reverse=True) == counts.tolist()[:20]
    assert (len(rows) == count) == (count <= 5_000)
    notes = picture.spec["title"]["subtitle"]
    assert f"By key: 20 of {len(counts)} keys, those with the most matches" in notes
    assert any("More than 5,000 marks" in note for note in notes) == (count > 5_000)
    assert picture.title == f"{count:,} matches"


def test_lengths_have_a_unit_and_a_median() -> None:
    """Lengths are in a unit that suits them; the median is marked and written."""
    picture = plot(matches=matches_of(401, 3), key="car")
    spec: Any = picture.spec["vconcat"][-1]
    assert spec["layer"][0]["encoding"]["x"]["title"] == "length in hours"
    words = [row for rows in picture.spec["datasets"].values() for row in rows if "words" in row]
    assert words == [{"m": 1, "words": "median 1 h"}]


def test_lengths_do_not_depend_on_the_clock() -> None:
    """A match in the night in which clocks go forward is as long as at other times."""
    found = matches_of(1, 1)
    found["match_start"] = pd.Timestamp("2026-03-29 00:30", tz="UTC")
    found["match_end"] = pd.Timestamp("2026-03-29 01:30", tz="UTC")
    (row,) = values(plot(matches=found, time_zone="Europe/Berlin"))[:1]
    assert (row["long"], row["w"]) == ("1 h", "2026-03-29 01:30")


def test_without_a_key_there_is_no_panel_of_keys() -> None:
    assert len(plot(matches=matches_of(9, 2)).spec["vconcat"]) == 2


def test_matches_of_several_patterns(events: pd.DataFrame, rising: Pattern) -> None:
    """Several patterns have colours."""
    found = detect(events, {"up": rising, "top": Pattern.begin("high").where("price > 12")}, key="symbol", time="at")
    picture = plot(matches=found, key="symbol")
    assert {row["pattern"] for row in values(picture)} == {"up", "top"}


def test_no_matches_are_refused() -> None:
    with pytest.raises(SchemaError, match="there is none with a time, so there is nothing to draw"):
        plot(matches=matches_of(0, 1), key="car")
