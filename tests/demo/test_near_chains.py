"""What stopped the late flights that nearly began a chain: counted by plain loops, without an engine."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby, pairwise
from typing import Any

from cepheid.demo.flights import read_flights_arrow
from cepheid.demo.near import near_chains

WITHOUT_LATE_LEG, LONGER = "legs: without dep_delay > 30", "within longer than 12 hours"


def by_aircraft() -> list[list[dict[str, Any]]]:
    """The departures of each aircraft, in order."""
    flights = read_flights_arrow().select(["tailnum", "departed_at", "dep_delay", "arr_delay"])
    rows = flights.filter(flights["departed_at"].is_valid()).sort_by(
        [("tailnum", "ascending"), ("departed_at", "ascending")]
    )
    return [[*own] for _, own in groupby(rows.to_pylist(), key=lambda row: row["tailnum"])]


def test_near_chains() -> None:
    """The next departure of a late flight was within 12 hours and not late, or late and within 120 hours."""
    not_late = late = 0
    for flights in by_aircraft():
        for first, second in pairwise(flights):
            if (first["arr_delay"] or 0) > 45:
                after = second["departed_at"] - first["departed_at"]
                not_late += after < timedelta(hours=12) and second["dep_delay"] <= 30
                late += timedelta(hours=12) <= after < timedelta(hours=120) and second["dep_delay"] > 30
    found = near_chains()
    counts = {one.change: one.flights for one in found.stopped}
    assert (counts[WITHOUT_LATE_LEG], counts[LONGER]) == (not_late, late)
    assert {one.change: one.nearly for one in found.stopped if one.nearly}.keys() == {WITHOUT_LATE_LEG, LONGER}
    assert max(counts.values()) < found.flights <= sum(counts.values())
