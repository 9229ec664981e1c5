"""Near misses: starts that match with one change of the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from cepheid.lang.pictures.shown import Shown
from cepheid.output.html_table import html_table
from cepheid.output.values import plain_text, plain_value
from cepheid.plan.reserved import ROW_NUMBER

_SHOWN = 10
"""The near misses that the text has."""
_ABOUT_IT = ("rank", "reached", "change", "reason", "at", "off_by", "lost")
OWN_COLUMNS = (ROW_NUMBER, "match_start", *_ABOUT_IT)
"""The columns of the table that are not those of the key."""


@dataclass(frozen=True)
class TriedChange:
    """One change of the pattern, and what it would do."""

    change: str
    """What is changed, for example "legs: without dep_delay > 30"."""
    starts: int
    """Unmatched starts that match with it, if nothing is skipped."""
    lost: int
    """How many of them the skip strategy then drops."""
    dropped: int
    """Partial matches that were dropped while the change was tried, because too many were open. Starts may then be
    missing.
    """


@dataclass(frozen=True)
class NearMisses(Shown):
    """The starts that do not match, and would match with one change. Printed, this is a readable text."""

    table: pa.Table = field(repr=False, compare=False)
    """A row for each start and change with which it would match, the nearest first."""
    starts: int
    """How many starts the table has. A start may have several rows."""
    changes: tuple[TriedChange, ...]
    """All changes that were tried, in the order of the pattern."""
    failed: Mapping[str, str]
    """The changes that could not be tried, each with the reason."""

    def to_dict(self) -> dict[str, Any]:
        """All near misses in values of JSON."""
        rows = [{name: plain_value(value) for name, value in row.items()} for row in self.table.to_pylist()]
        return {
            "starts": self.starts,
            "changes": [asdict(one) for one in self.changes],
            "failed": dict(self.failed),
            "near_misses": rows,
        }

    def _repr_html_(self) -> str:
        changes = [[one.change, f"{one.starts:,}", f"{one.lost:,}"] for one in self._by_starts]
        nearest = [[start, change, f"{reason}{lost}"] for start, change, reason, lost in self._nearest()]
        shown = [html_table(("change", "starts that would match", "then skipped"), changes)]
        shown += [html_table(("nearest", "change", "reason"), nearest)] * bool(nearest)
        return "".join(shown)

    def __str__(self) -> str:
        return "\n".join([*self._summary(), *self._nearest_lines()])

    @property
    def _by_starts(self) -> list[TriedChange]:
        return sorted(self.changes, key=lambda one: -one.starts)

    def _summary(self) -> Iterable[str]:
        yield f"{'starts that would match with one change':<56}{self.starts:>12,}"
        for one in self._by_starts if self.starts else ():
            lost = f"  ({one.lost:,} then skipped)" if one.lost else ""
            yield f"  {one.change:<54}{one.starts:>12,}{lost}"
            if one.dropped:
                yield f"    {one.dropped:,} partial matches were dropped, as too many were open: starts may be missing"
        for change, why in self.failed.items():
            yield f"  {change}: could not be tried, {why}"

    def _nearest_lines(self) -> Iterable[str]:
        if self.table.num_rows:
            yield "nearest"
        for start, change, reason, lost in self._nearest():
            yield f"  {start}  {change}: {reason}{lost}"

    def _nearest(self) -> Iterable[tuple[str, str, str, str]]:
        """The first rows: the start, the change, the reason, and whether it is then skipped, in words."""
        for row in self.table.slice(0, _SHOWN).to_pylist():
            start = [plain_text(value) for name, value in row.items() if name not in (*_ABOUT_IT, ROW_NUMBER)]
            yield " ".join(start), row["change"], row["reason"], ", but is then skipped" if row["lost"] else ""
