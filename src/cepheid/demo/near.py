"""What stopped the late flights that nearly began a chain: the example's near misses."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from cepheid.demo.flights import read_flights_arrow
from cepheid.demo.pattern import LATE_CHAIN
from cepheid.hosts.in_process.near import near_misses_in_process
from cepheid.requests.request_of import request_of

_COLUMNS = ("tailnum", "departed_at", "dep_delay", "arr_delay")
_SHORT = 15
"""Minutes."""


@dataclass(frozen=True)
class Stopped:
    """The late flights that began no chain and would have begun one with the same change of the pattern."""

    change: str
    flights: int
    nearly: int
    """Those among them that are off by at most 15 minutes; 0 if the change is not about minutes."""
    nearest: str
    """The reason of the nearest one."""


@dataclass(frozen=True)
class NearChains:
    """The late flights that would have begun a chain with one change of the pattern."""

    flights: int
    stopped: tuple[Stopped, ...]
    """By change, most flights first."""


def near_chains() -> NearChains:
    """The near misses among all departures, found in this process."""
    flights = read_flights_arrow().select(_COLUMNS)
    departures = flights.filter(flights["departed_at"].is_valid())
    found = near_misses_in_process(departures, request_of(LATE_CHAIN, key="tailnum", time="departed_at"))
    rows = found.table
    each = []
    for change in sorted(found.changes, key=lambda one: -one.starts):
        own = rows.filter(pc.equal(rows["change"], change.change))
        minutes = "followed_by" not in change.change
        nearly = pc.sum(pc.less_equal(own["off_by"], _SHORT)).as_py() or 0 if minutes else 0
        nearest = own["reason"][0].as_py() if change.starts else ""
        each.append(Stopped(change.change, change.starts, nearly, nearest))
    return NearChains(found.starts, tuple(each))
