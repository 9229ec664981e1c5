"""The counts of a detection, for the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from cepheid.lang.pictures.html import text_html
from cepheid.matchers.counts import ReadCounts


class Report:
    """Filled by `detect`: the counts of events read and dropped, and of what was found.

    In process the counts are available when `detect` returns, and for a lazy frame when the result has been collected;
    they are those of the latest collection. On Spark, work starts with an action on the result, and `counts` waits for
    it.
    """

    def __init__(self) -> None:
        self._read: Callable[[], ReadCounts] | None = None
        self._counts: ReadCounts | None = None
        self._is_lazy = False
        """Whether the counts come when a lazy result is collected."""

    def set(self, read: Callable[[], ReadCounts], *, waits: bool = False) -> None:
        """For hosts: sets the function that reads the counts. `waits`: whether it waits for work to be done."""
        self._read = read
        self._counts = None if waits else read()

    def clear(self) -> None:
        """For hosts: forgets the counts until a lazy result is collected."""
        self._read = self._counts = None
        self._is_lazy = True

    @property
    def counts(self) -> ReadCounts:
        """An EventCounts; for interval patterns an IntervalCounts."""
        if self._read is None and self._is_lazy:
            raise RuntimeError("this report has no counts yet: collect the lazy result first")
        if self._read is None:
            raise RuntimeError("this report has not been given to detect(…, report=…) yet")
        if self._counts is None:
            self._counts = self._read()
        return self._counts

    def __repr__(self) -> str:
        return f"Report({self._counts or self._missing})"

    def _repr_html_(self) -> str:
        """A table. Showing it never waits for Spark."""
        if self._counts is None:
            return text_html(repr(self))
        rows = ((field.name.replace("_", " "), getattr(self._counts, field.name)) for field in fields(self._counts))
        cells = "".join(f'<tr><td>{name}</td><td style="text-align:right">{count:,}</td></tr>' for name, count in rows)
        return f"<table>{cells}</table>"

    @property
    def _missing(self) -> str:
        if self._read is None:
            return "the lazy result is not collected yet" if self._is_lazy else "not given to detect yet"
        return "report.counts waits for Spark's action"
