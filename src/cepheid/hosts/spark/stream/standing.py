"""Since when the watermark of a streaming query stands still, and why, from Spark's reports of its triggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class Standing:
    """A watermark that has not moved. Matches, timeouts and absences that wait for it are delayed, or never emitted."""

    since: datetime
    """The start of the first micro-batch that had this watermark."""
    why: str
    """The reason, as a sentence without a full stop."""


class Watch:
    """Follows the watermark of one query through Spark's reports, which are given in their order, also those of
    triggers that had nothing to do.
    """

    def __init__(self) -> None:
        self.standing: Standing | None = None
        """None while the watermark moves."""
        self._watermark: str | None = None
        self._since: datetime | None = None
        self._rows = Counter[str]()
        """The rows that each source has given since then."""
        self._newest: str | None = None
        """The latest event time of all reports; Spark's texts sort as their times do."""
        self._newest_before: str | None = None
        """The same, before the watermark stood."""

    def add(self, reported: Mapping[str, Any]) -> None:
        """Takes the next report, given as JSON values."""
        watermark = reported.get("eventTime", {}).get("watermark")
        stands = self._since is not None and watermark == self._watermark
        if not stands:
            self._watermark, self._since = watermark, time_of(reported["timestamp"])
            self._rows.clear()
            self._newest_before = self._newest
        for source in reported.get("sources", []):
            self._rows[source["description"]] += source["numInputRows"]
        newest = reported.get("eventTime", {}).get("max")
        if newest is not None and (self._newest is None or newest > self._newest):
            self._newest = newest
        self.standing = None
        if stands and watermark is not None and self._since is not None:
            self.standing = Standing(self._since, self._why())

    def idle(self, timestamp: str) -> None:
        """Takes Spark's word that a trigger at this time had nothing to do."""
        self.add({"timestamp": timestamp, "eventTime": {"watermark": self._watermark}})

    def _why(self) -> str:
        if not self._rows.total():
            return "no event has come since then"
        silent = [source for source, rows in self._rows.items() if not rows]
        if silent and self._newest != self._newest_before:
            return f"no event has come from {', '.join(silent)}, and the slowest source decides"
        if self._newest is None or self._newest == self._newest_before:
            latest = "" if self._newest is None else f", which is of {self._newest}"
            return f"events have come, but none later than the latest one before{latest}"
        return "later events have come, and the watermark moves with the next micro-batch"


def time_of(text: str) -> datetime:
    """A time in Spark's reports."""
    return datetime.fromisoformat(text).astimezone(UTC)
