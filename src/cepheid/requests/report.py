"""The counts of a detection, for the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from cepheid.errors import with_noun
from cepheid.lang.known_arguments import known_calls, known_fields
from cepheid.lang.pictures.html import text_html
from cepheid.lang.pictures.shown import Shown
from cepheid.matchers.counts import ReadCounts


def certain_by_end_text(late: int, found: int) -> str:
    """How many of the matches found are certain only because the input ended; there is at least one."""
    number = f"{late:,} of {with_noun(found, 'match', plural='matches')}"
    return f"{number} {'is' if late == 1 else 'are'} certain only because the input ended"


@known_calls
@known_fields
class Report(Shown):
    """Filled by `detect`: the counts of events read and dropped, and of what was found.

    In process the counts are available when `detect` returns, and for a lazy frame when the result has been collected;
    they are those of the latest collection. On Spark, work starts with an action on the result, and `counts` waits for
    it.
    """

    def __init__(self) -> None:
        self._read: Callable[[], ReadCounts] | None = None
        self._counts: ReadCounts | None = None
        self._by_end: int | None = None
        self._unheld: tuple[str, ...] = ()
        self._is_lazy = False
        """Whether the counts come when a lazy result is collected."""

    def set(
        self,
        read: Callable[[], ReadCounts],
        *,
        waits: bool = False,
        certain_by_end: int | None = None,
        unheld: Sequence[str] = (),
    ) -> None:
        """For hosts: sets the function that reads the counts. `waits`: whether it waits for work to be done."""
        self._read = read
        self._counts = None if waits else read()
        self._by_end, self._unheld = certain_by_end, tuple(unheld)

    def clear(self) -> None:
        """For hosts: forgets the counts until a lazy result is collected."""
        self._read = self._counts = self._by_end = None
        self._unheld = ()
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

    @property
    def certain_by_end(self) -> int | None:
        """How many matches are certain only because the input ended: their deadline is after the last event, so an
        event that forbids or continues them may not have come yet. `as_of` leaves them out. None on Spark and in
        processing order, where they are not counted.
        """
        return self._by_end

    @property
    def unheld(self) -> tuple[str, ...]:
        """The parts of conditions that held for no event, and the types that no event has, as sentences. Empty on
        Spark, where that is not known.
        """
        return self._unheld

    def __repr__(self) -> str:
        more = f", certain_by_end={self._by_end}" if self._by_end else ""
        more += f", unheld={self._unheld}" if self._unheld else ""
        return f"Report({self._counts or self._missing}{more})"

    def _repr_html_(self) -> str:
        """A table. Showing it never waits for Spark."""
        if self._counts is None:
            return text_html(repr(self))
        rows = [(field.name.replace("_", " "), getattr(self._counts, field.name)) for field in fields(self._counts)]
        rows += [] if self._by_end is None else [("certain by end", self._by_end)]
        cells = "".join(f'<tr><td>{name}</td><td style="text-align:right">{count:,}</td></tr>' for name, count in rows)
        return f"<table>{cells}</table>{''.join(map(text_html, self._unheld))}"

    @property
    def _missing(self) -> str:
        if self._read is None:
            return "the lazy result is not collected yet" if self._is_lazy else "not given to detect yet"
        return "report.counts waits for Spark's action"
