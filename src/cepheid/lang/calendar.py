"""Windows by the calendar: a number of months ("1 month", "2 years"), or what is left of the first event's day, week,
month, quarter or year ("same day").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cepheid.errors import PatternError

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
PERIODS = ("day", "week", "month", "quarter", "year")
"""What a match may have to stay in; a week begins on Monday."""
_MOST = 999 * 12
"""Months: the first events of matches are before the year 9000, and Python's calendar ends with the year 9999."""
_PART = re.compile(r"(\d+)\s*(\w+)")
_SAME = re.compile(r"\s*same\s+(\w+)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class CalendarWindow:
    """The time from the first event of a match to its deadline, which is exclusive."""

    months: int = 0
    """The deadline has the local time of the first event, so many months later; in a shorter month, on its last
    day.
    """
    period: str | None = None
    """One of PERIODS: the deadline is the local midnight at its end. Then `months` is 0."""

    def __str__(self) -> str:
        if self.period is not None:
            return f"same {self.period}"
        years, months = divmod(self.months, 12)
        parts = [f"{count} {unit}{'s' if count > 1 else ''}" for count, unit in ((years, "year"), (months, "month"))]
        return " ".join(part for part in parts if not part.startswith("0 "))


def parse_calendar(length: object) -> CalendarWindow | None:
    """The window that the text denotes; None if it is something else than months or "same …".

    Raises:
        PatternError: months are mixed with other units, their number is out of range, or the period is unknown.
    """
    if not isinstance(length, str):
        return None
    if same := _SAME.fullmatch(length):
        period = same[1].lower()
        if period not in PERIODS:
            raise PatternError(f"not a window: {length!r}. Write 'same' and one of {', '.join(PERIODS)}")
        return CalendarWindow(period=period)
    parts = _PART.findall(length)
    counts = [(int(count), _MONTHS.get(unit.lower().removesuffix("s"))) for count, unit in parts]
    if not any(unit for _, unit in counts):
        return None
    if not all(unit for _, unit in counts) or _PART.sub("", length).strip():
        hint = "months, quarters and years have no fixed number of days, so they stand without other units"
        raise PatternError(f"not a length of time: {length!r}; {hint}")
    months = sum(count * unit for count, unit in counts if unit)
    if not 0 < months <= _MOST:
        raise PatternError(f"a window by the calendar has 1 to {_MOST:,} months, got {length!r}")
    return CalendarWindow(months)
