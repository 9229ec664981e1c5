"""What is counted of the events of interval patterns, beside what is of those of any pattern."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.requests.request import ReadCounts


@dataclass(frozen=True)
class IntervalCounts(ReadCounts):
    """How many events were read and what became of those that are no intervals."""

    reversed: int = 0
    """Events with key and times that end before they start, dropped."""

    @property
    def unusable(self) -> str:
        if not self.reversed:
            return super().unusable
        others = f"{self.null_keys:,} events without key and {self.null_times:,} without time"
        return f"{others} and {self.reversed:,} that end before they start"


@dataclass(frozen=True)
class IntervalMatcherCounts(IntervalCounts):
    """What an interval matcher has seen so far, and what is open. `matches` are those told and not taken back."""

    late: int = 0
    """Events that came later than the delay allows; they are not matched."""
    open_matches: int = 0
    """Matches that are not final."""
    held: int = 0
    """Events in memory."""
