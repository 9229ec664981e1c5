"""Replays the departures faster than real time: a thread writes each departure into a folder when it is due."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from cepheid.demo.flights import read_flights_arrow

Times: TypeAlias = npt.NDArray[np.int64]

TICK = 1.0
"""Seconds between two files."""


def departures_in_order(days: int) -> pa.Table:
    """The departures of the first `days` days of 2013, in order of event time."""
    flights = read_flights_arrow()
    left = flights.filter(flights.column("departed_at").is_valid()).sort_by("departed_at")
    times = _microseconds(left)
    return left.slice(0, int(np.searchsorted(times, times[0] + days * 86_400_000_000)))


class Replay:
    """Writes the departures as Parquet files. Each second it writes the departures of the next `speed` seconds of event
    time.
    """

    def __init__(self, departures: pa.Table, folder: Path, speed: float) -> None:
        self._departures, self._folder, self._speed = departures, folder, speed
        self._times = _microseconds(departures)
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.written = 0

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @property
    def lasts(self) -> timedelta:
        """The duration of the whole replay."""
        return timedelta(microseconds=int(self._times[-1] - self._times[0])) / self._speed

    def _run(self) -> None:
        started, number = monotonic(), 0
        while self.written < len(self._departures) and not self._stop.wait(TICK if number else 0):
            number += 1
            now = self._times[0] + (monotonic() - started) * self._speed * 1e6
            end = int(np.searchsorted(self._times, now, side="right"))
            if end > self.written:
                self._write(self._departures.slice(self.written, end - self.written), number)
                self.written = end

    def _write(self, rows: pa.Table, number: int) -> None:
        """Writes one file. Its name begins with _ until it is complete, so that a stream ignores it until then."""
        file = self._folder / f"{number:06}.parquet"
        unfinished = file.with_name(f"_{file.name}")
        pq.write_table(rows, unfinished)
        unfinished.rename(file)


def _microseconds(departures: pa.Table) -> Times:
    times: Times = departures.column("departed_at").cast(pa.int64()).to_numpy()
    return times
