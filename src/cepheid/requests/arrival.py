"""The time of arrival as the time of events, which is FlinkCEP's processing time.

A live host gives each event the time at which it came, in the column `arrived_at`. So the times are recorded: they are
in what the host stores and in its rows, and conditions may use them.
"""

from __future__ import annotations

from enum import Enum
from time import time_ns
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from cepheid.errors import EventError, SchemaError
from cepheid.events.batch import COMPUTED
from cepheid.events.time import TIME_TYPE


class Arrival(Enum):
    """The type of `ARRIVAL`."""

    ARRIVAL = "arrival"

    def __repr__(self) -> str:
        return "cepheid.ARRIVAL"


ARRIVAL: Final[Literal[Arrival.ARRIVAL]] = Arrival.ARRIVAL
"""As `time` of a live host: the time of an event is that of its arrival."""

ARRIVED = "arrived_at"
"""The column with the times of arrival."""

NUMBER_OF_ARRIVAL = f"{COMPUTED}arrival"
"""The column with the order of arrival, in process."""


def check_names(names: list[str]) -> None:
    """Raises SchemaError if the events have the column of the times of arrival themselves."""
    if ARRIVED in (name.lower() for name in names):
        raise SchemaError(
            f"time: the column {ARRIVED!r} will have the times of arrival, but the events have such a column: rename "
            f"it, or name it as their time, as in time={ARRIVED!r}"
        )


def with_arrival(events: pa.Table, time: int, first: int, *, in_sequence: bool) -> pa.Table:
    """The events with their time of arrival (microseconds) and their order of arrival, numbered from `first`. If they
    have a sequence of their own (`in_sequence`), all get the number `first`, so that it orders them.
    """
    count = events.num_rows
    numbers = np.full(count, first) if in_sequence else np.arange(first, first + count)
    times = pa.array(np.full(count, time, np.int64)).cast(TIME_TYPE)
    return events.append_column(ARRIVED, times).append_column(NUMBER_OF_ARRIVAL, pa.array(numbers, pa.int64()))


def arrival_time(given: int | None, least: int) -> int:
    """The time at which events arrive, in microseconds: the given one or, without one, that of this machine's clock.
    Where the clock goes back, it is the `least` possible time.

    Raises:
        EventError: the given time is before the least one.
    """
    if given is None:
        return max(time_ns() // 1000, least)
    if given < least:
        raise EventError(f"at: events cannot arrive at {_shown(given)}, as time has advanced to {_shown(least)}")
    return given


def advanced_time(given: int | None, least: int) -> int:
    """The time to which time advances, in microseconds, where events have times of arrival: the given one or, without
    one, that of this machine's clock. `least` is the earliest time at which events can arrive.

    Raises:
        EventError: time has passed the given time.
    """
    if given is None:
        return max(time_ns() // 1000, least)
    if given + 1 < least:
        raise EventError(f"time: it cannot go back to {_shown(given)}: events arrive from {_shown(least)} on")
    return given


def _shown(time: int) -> str:
    return str(pa.scalar(time, pa.int64()).cast(TIME_TYPE))


def refuse_arrival(*, arrival: bool) -> None:
    """Raises SchemaError if finite events should have times of arrival."""
    if arrival:
        raise SchemaError(
            "time: ARRIVAL is for events as they come, in a Matcher, a durable host or a stream. Finite events do not "
            "come: name the column of their times, or give time=None for the order of `sequence` or, in process, of "
            "the rows"
        )
