"""The progress of a running stream: a live view on a terminal, otherwise a line for each micro-batch."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cepheid.cli.stream_load import load_rows
from cepheid.hosts.spark.stream.load.advice import Advice
from cepheid.hosts.spark.stream.progress import PatternProgress, Progress, progress_of
from cepheid.hosts.spark.stream.standing import Standing, Watch, time_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

NEWEST = "cepheid.newest"
"""The metric with the newest row of a micro-batch, as JSON."""

_SHOWN = 5
_SOME_TIME = timedelta(minutes=1)
"""Without a terminal, what comes in bursts should not print a line after each."""


class View:
    """The figures of one query, from the progress of its micro-batches."""

    def __init__(self, name: str, console: Console, checkpoint: Path | None = None) -> None:
        """If the query continues from its `checkpoint`, the number of open partial matches is read from there."""
        self.name = name
        self.console = console
        self.started = monotonic()
        self.newest: deque[str] = deque(maxlen=_SHOWN)
        self.figures = PatternProgress()
        """The figures of all micro-batches and patterns together."""
        self._checkpoint = checkpoint
        self._so_far: Progress | None = None
        self._last: Progress | None = None
        self._advice: Advice | None = None
        self._rate = 0.0
        self._watch = Watch()
        self._reported = ""
        """The timestamp of the last report that the watch has."""
        self._printed_standing: Standing | None = None
        """What the last line about a standing watermark said."""
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within the block the view is drawn on a terminal; text written to standard output appears above it."""
        try:
            yield
        finally:
            if self._live is not None:
                self._live.stop()

    def follow(self, query: StreamingQuery) -> None:
        """Adds the micro-batches that have ended since the last call."""
        seen = -1 if self._so_far is None else self._so_far.batch
        standing = self._watch.standing
        for report in query.recentProgress:
            reported = json.loads(report.json)
            if reported["timestamp"] > self._reported:
                self._reported = reported["timestamp"]
                self._watch.add(reported)
            if report.batchId > seen:
                self._add(reported)
        if self._so_far is None:
            return
        if not self.console.is_terminal:
            self._print_standing()
        elif self._so_far.batch > seen or self._watch.standing != standing:
            self._draw()

    def summary(self) -> str:
        """All figures in one line."""
        malformed = 0 if self._so_far is None else self._so_far.malformed
        return f"{_counts(self.figures, malformed)} ({monotonic() - self.started:.1f} s)"

    def _add(self, reported: dict[str, Any]) -> None:
        progress = progress_of(reported)
        if progress is None:  # a trigger that had nothing to do; it has the number of the next micro-batch
            return
        if self._so_far is None and progress.batch > 0 and self._checkpoint is not None and self.console.is_terminal:
            from cepheid.hosts.spark.stream.listener import with_open

            progress = with_open(progress, str(self._checkpoint))
        if self._checkpoint is not None:
            from cepheid.hosts.spark.stream.listener import with_short

            progress = with_short(progress, str(self._checkpoint))
        found = progress.together
        self.figures = found if self._so_far is None else found.after(self.figures)
        self._so_far = progress if self._so_far is None else progress.after(self._so_far)
        self._last = progress.with_open_of(self._so_far)
        self._advice = progress.advice() or self._advice
        self._rate = found.events / max(progress.total.total_seconds(), 0.001)
        newest = reported["observedMetrics"].get(NEWEST, {}).get("row")
        if newest is not None:
            self.newest.append(newest)
        news = (found.events, found.matches, found.timeouts, found.late, progress.malformed)
        if not self.console.is_terminal and any(news):
            counts = _counts(found, progress.malformed, self._rate)
            line = f"batch {progress.batch}: {counts}, watermark {self._watermark}"
            self.console.print(line, highlight=False, soft_wrap=True)

    def _print_standing(self) -> None:
        """Prints a line about a watermark that has stood for some time."""
        standing = self._watch.standing
        if standing in (None, self._printed_standing) or time_of(self._reported) - standing.since < _SOME_TIME:
            return
        self._printed_standing = standing
        self.console.print(f"watermark {self._watermark} {_stands(standing)}", highlight=False, soft_wrap=True)

    @property
    def _watermark(self) -> str:
        watermark = None if self._so_far is None else self._so_far.watermark
        return (
            "none yet" if watermark is None else f"{watermark.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
        )

    def _draw(self) -> None:
        # The view starts only now, as Spark writes to standard error while it starts.
        if self._live is None:
            self._live = Live(console=self.console, redirect_stdout=sys.stdout.isatty(), auto_refresh=False)
            self._live.start()
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Group:
        open_ = self.figures.open_partial_matches
        rows = Table.grid(padding=(0, 2))
        rows.add_row(Text(self.name, style="bold"), self.summary())
        rows.add_row("throughput", f"{self._rate:,.0f} events a second")
        standing = self._watch.standing
        rows.add_row("watermark", f"{self._watermark}{'' if standing is None else f' {_stands(standing)}'}")
        rows.add_row("open partial matches", "not known" if open_ is None else f"{open_:,}")
        if self._last is not None and self._so_far is not None:
            for name, text in load_rows(self._last, self._so_far, self._advice):
                rows.add_row(Text(name, overflow="ellipsis", no_wrap=True), text)
        newest = [Text(row, no_wrap=True, overflow="ellipsis") for row in reversed(self.newest)]
        return Group(rows, Text("newest of the last micro-batches", style="bold"), *newest)


def _stands(standing: Standing) -> str:
    return f"stands still since {standing.since:%H:%M:%S} UTC: {standing.why}"


def _counts(found: PatternProgress, malformed: int, rate: float | None = None) -> str:
    """The counts as text. Events that were left out are mentioned only if there are any."""
    parts = [f"{found.events:,} events", *([] if rate is None else [f"{rate:,.0f} a second"])]
    parts += [f"{found.matches:,} matches", f"{found.timeouts:,} timeouts", f"{found.late:,} late events"]
    left_out = {"malformed": malformed, "without key": found.null_keys, "without time": found.null_times}
    return ", ".join([*parts, *(f"{count:,} {what}" for what, count in left_out.items() if count)])
