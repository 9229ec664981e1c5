"""The counts of a detection, for the caller."""

from __future__ import annotations

from collections.abc import Callable

from cepheid.matchers.counts import ReadCounts


class Report:
    """Filled by `detect`: the counts of events read and dropped, and of what was found.

    In process the counts are available when `detect` returns. On Spark, work starts with an action on the result, and
    `counts` waits for it.
    """

    def __init__(self) -> None:
        self._read: Callable[[], ReadCounts] | None = None

    def set(self, read: Callable[[], ReadCounts]) -> None:
        """For hosts: sets the function that reads the counts."""
        self._read = read

    @property
    def counts(self) -> ReadCounts:
        """An EventCounts; for interval patterns an IntervalCounts."""
        if self._read is None:
            raise RuntimeError("this report has not been given to detect(…, report=…) yet")
        return self._read()
