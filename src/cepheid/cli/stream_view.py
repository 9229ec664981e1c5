"""What a running stream shows: a live view on a terminal, a line for each micro-batch elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cepheid.hosts.progress import FOUND

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

NEWEST = "cepheid.newest"
"""The metric with the newest row of a micro-batch, as JSON."""

_SHOWN = 5
_BEGINNING = "1970-01-01T00:00:00.000Z"
"""Spark's watermark before it has any."""

_COUNTS = {"matches": "matches", "timeouts": "timeouts", "late": "late events"}


class View:
    """The figures of one query, from the progress of its micro-batches."""

    def __init__(self, name: str, console: Console) -> None:
        self.name = name
        self.console = console
        self.started = monotonic()
        self.events = 0
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.watermark = "none yet"
        self.newest: deque[str] = deque(maxlen=_SHOWN)
        self._seen = -1
        self._rate = 0.0
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """In the block a terminal is drawn on; what is written to standard output there stands above."""
        try:
            yield
        finally:
            if self._live is not None:
                self._live.stop()

    def follow(self, query: StreamingQuery) -> None:
        """Takes in the micro-batches that have ended since."""
        news = [progress for progress in query.recentProgress if progress.batchId > self._seen]
        for progress in news:
            # A trigger without anything to do tells the number of the micro-batch that is next.
            if f"{FOUND}.{self.name}" in progress.observedMetrics:
                self._add(progress)
        if news and self.console.is_terminal:
            self._draw()

    def summary(self) -> str:
        """All of it in a line."""
        return f"{self.events:,} events, {self._told(self.counts)} ({monotonic() - self.started:.1f} s)"

    def _add(self, progress: StreamingQueryProgress) -> None:
        self._seen = progress.batchId
        metrics = progress.observedMetrics
        found = metrics[f"{FOUND}.{self.name}"].asDict()
        self.events += progress.numInputRows
        self._rate = progress.processedRowsPerSecond
        for name in _COUNTS:
            self.counts[name] += found.get(name, 0)
        watermark = progress.eventTime.get("watermark", _BEGINNING)
        self.watermark = self.watermark if watermark == _BEGINNING else watermark
        newest = metrics[NEWEST]["row"] if NEWEST in metrics else None
        if newest is not None:
            self.newest.append(newest)
        if not self.console.is_terminal and (progress.numInputRows or any(found.values())):
            self.console.print(
                f"batch {progress.batchId}: {progress.numInputRows:,} events, {self._rate:,.0f} a second, "
                f"{self._told(found)}, watermark {self.watermark}",
                highlight=False,
                soft_wrap=True,
            )

    def _told(self, counts: dict[str, int]) -> str:
        return ", ".join(f"{counts.get(name, 0):,} {words}" for name, words in _COUNTS.items())

    def _draw(self) -> None:
        # Not before: while it starts, Spark's Python writes to standard error.
        if self._live is None:
            self._live = Live(console=self.console, redirect_stdout=sys.stdout.isatty(), auto_refresh=False)
            self._live.start()
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Group:
        figures = Table.grid(padding=(0, 2))
        figures.add_row(Text(self.name, style="bold"), self.summary())
        figures.add_row("throughput", f"{self._rate:,.0f} events a second")
        figures.add_row("watermark", self.watermark)
        newest = [Text(row, no_wrap=True, overflow="ellipsis") for row in reversed(self.newest)]
        return Group(figures, Text("newest of the last micro-batches", style="bold"), *newest)
