"""The layout of the picture of one chain of late flights; `timeline_html` and `timeline_png` draw it.

Both pictures have one row per flight, and time runs from left to right on New York's clock. A pale bar shows the plan,
and the bar below it what really happened. A line from the planned to the real departure shows the delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")


@dataclass(frozen=True)
class Flight:
    """One departure. Times are aware datetimes, and delays are in minutes. None means not recorded."""

    carrier: str
    flight: int
    origin: str
    dest: str
    scheduled_at: datetime
    departed_at: datetime
    due_at: datetime
    arrived_at: datetime | None
    dep_delay: int
    arr_delay: int | None


@dataclass(frozen=True)
class Chain:
    """One match: the flight that arrived late, then the aircraft's flights that left late."""

    tailnum: str
    flights: tuple[Flight, ...]


@dataclass(frozen=True)
class Axis:
    """The time axis from `start` to `end`, both full hours in New York, with a tick every `step` hours."""

    start: datetime
    end: datetime
    step: int

    def fraction(self, time: datetime) -> float:
        """The position of `time`, from 0 at the left edge to 1 at the right edge."""
        return (time - self.start) / (self.end - self.start)

    def ticks(self) -> list[datetime]:
        # Steps are in absolute time, so the axis is even also on the days on which the clocks change.
        hours = int((self.end - self.start) / timedelta(hours=1))
        every_hour = [(self.start + timedelta(hours=h)).astimezone(NEW_YORK) for h in range(hours + 1)]
        return [tick for tick in every_hour if tick.hour % self.step == 0]


def axis_of(chain: Chain) -> Axis:
    times = [time for flight in chain.flights for time in (*plan(flight), *reality(flight))]
    start, end = min(times) - timedelta(minutes=20), max(times) + timedelta(minutes=20)
    first = start.replace(minute=0, second=0, microsecond=0)
    last = (end + timedelta(minutes=59)).replace(minute=0, second=0, microsecond=0)
    hours = (last - first) / timedelta(hours=1)
    return Axis(first, last, 1 if hours <= 12 else 2 if hours <= 24 else 4)


def plan(flight: Flight) -> tuple[datetime, datetime]:
    """Scheduled departure and arrival."""
    return flight.scheduled_at, flight.due_at


def reality(flight: Flight) -> tuple[datetime, datetime]:
    """Real departure and arrival. If the arrival was not recorded, the flight gets its scheduled duration."""
    return flight.departed_at, flight.arrived_at or flight.departed_at + (flight.due_at - flight.scheduled_at)


def turn(before: Flight, after: Flight) -> tuple[datetime, datetime]:
    """The time between two flights, in which the aircraft came back to New York. It is empty if the next flight leaves
    before this one lands, as in some rows of the source.
    """
    landed = reality(before)[1]
    return landed, max(landed, after.departed_at)


def title(chain: Chain) -> str:
    more = len(chain.flights) - 1
    return f"{chain.tailnum}: one late arrival, then {more} more late departure{'s' if more > 1 else ''}"


def subtitle(chain: Chain) -> str:
    first, last = chain.flights[0], chain.flights[-1]
    begins, ends = day(first.departed_at), day(last.departed_at)
    days = begins if begins == ends else f"{begins} to {ends}"
    year = local(first.departed_at).year
    return f"{days} {year}, New York's clock. Only departures from EWR, JFK and LGA are in the data."


def label(flight: Flight) -> str:
    return f"{flight.carrier} {flight.flight}"


def route(flight: Flight) -> str:
    return f"{flight.origin} → {flight.dest}"


def lateness(minutes: int | None) -> str:
    """A delay in words: "4 h 17 min late", "12 min early", "on time"."""
    if minutes is None:
        return "not recorded"
    if minutes == 0:
        return "on time"
    hours, rest = divmod(abs(minutes), 60)
    length = " ".join([f"{hours} h"] * (hours > 0) + [f"{rest} min"] * (rest > 0))
    return f"{length} {'late' if minutes > 0 else 'early'}"


def departure_words(flight: Flight) -> str:
    return f"leaves {lateness(flight.dep_delay)}"


def arrival_words(flight: Flight) -> str:
    return "arrival not recorded" if flight.arr_delay is None else f"lands {lateness(flight.arr_delay)}"


def local(time: datetime) -> datetime:
    return time.astimezone(NEW_YORK)


def clock(time: datetime) -> str:
    return f"{local(time):%H:%M}"


def day(time: datetime) -> str:
    return f"{local(time).day} {local(time):%B}"


def details(flight: Flight) -> str:
    """Everything known about a flight, one fact per line."""
    left, landed = clock(flight.departed_at), clock(flight.arrived_at) if flight.arrived_at else "unknown"
    return "\n".join(
        [
            f"{label(flight)}, {route(flight)}, {day(flight.departed_at)}",
            f"departure: planned {clock(flight.scheduled_at)}, real {left} ({lateness(flight.dep_delay)})",
            f"arrival: planned {clock(flight.due_at)}, real {landed} ({lateness(flight.arr_delay)})",
            "all times on New York's clock",
        ]
    )
