"""Summaries of the example's matches: the longest chains, and the number of chains of each carrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import csv

from cepheid.demo.flights import FLIGHT_COLUMNS, data_folder
from cepheid.demo.timeline import Chain, Flight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class CarrierCount:
    """Counts for one carrier: the chains that begin with one of its flights, and its departures."""

    carrier: str
    name: str
    chains: int
    longest: int
    """The number of flights in its longest chain."""
    departures: int


def longest_chains(matches: DataFrame, count: int) -> list[Chain]:
    """The `count` longest chains: most flights first, then the greatest sum of departure delays."""
    delay = "late.dep_delay + aggregate(legs, 0, (total, leg) -> total + leg.dep_delay)"
    rows = (
        matches.selectExpr("tailnum", "match_start", "late", "legs", "size(legs) AS count", f"{delay} AS delay")
        .orderBy("count", "delay", "match_start", "tailnum", ascending=[False, False, True, True])
        .limit(count)
        .toArrow()
    )
    return [_chain(row) for row in rows.to_pylist()]


def count_by_carrier(matches: DataFrame, departures: DataFrame) -> list[CarrierCount]:
    """The counts of every carrier with a departure, most chains first."""
    chains = matches.selectExpr("late.carrier AS carrier", "size(legs) + 1 AS length")
    lengths = chains.groupBy("carrier", "length").count().collect()
    left = departures.groupBy("carrier").count().collect()
    names = _carrier_names()
    counts = []
    for carrier, departed in left:
        of_carrier = [(length, count) for other, length, count in lengths if other == carrier]
        counts.append(
            CarrierCount(
                carrier=carrier,
                name=names[carrier],
                chains=sum(count for _, count in of_carrier),
                longest=max((length for length, _ in of_carrier), default=0),
                departures=departed,
            )
        )
    return sorted(counts, key=lambda count: (-count.chains, count.carrier))


def _chain(match: dict[str, Any]) -> Chain:
    return Chain(match["tailnum"], tuple(_flight(event) for event in (match["late"], *match["legs"])))


def _flight(event: dict[str, Any]) -> Flight:
    return Flight(**{column: event[column] for column in FLIGHT_COLUMNS})


def _carrier_names() -> dict[str, str]:
    airlines = csv.read_csv(data_folder() / "airlines.csv")
    return dict(zip(airlines["carrier"].to_pylist(), airlines["name"].to_pylist(), strict=True))
