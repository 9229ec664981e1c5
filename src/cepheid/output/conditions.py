"""A condition that was evaluated for one event."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from cepheid.output.values import plain_value, shown_value

_DAY = timedelta(days=1)
EQUALITIES = ("=", "<=>", "!=")
"""Comparisons whose sides are equal or not: how far they are from each other does not matter."""


@dataclass(frozen=True)
class Operand:
    """A value that a condition looked at."""

    text: str
    """As it stands in the condition."""
    value: Any
    """None: NULL. Times are in UTC."""
    is_constant: bool = False
    """Whether the text is the value."""

    def __str__(self) -> str:
        return value_text(self.text, self.value)


def value_text(text: str, value: Any) -> str:
    """The value of what is written as `text`, in words."""
    return f"{text} is NULL" if value is None else f"{text} = {shown_value(value)}"


@dataclass(frozen=True)
class Evaluated:
    """A condition, or a part of one that is AND-ed, for one event."""

    text: str
    """As the user wrote it."""
    result: bool | None
    """None: unknown, because a value is NULL."""
    operands: tuple[Operand, ...] = ()
    """The two sides of a comparison, the three of BETWEEN; otherwise the values of events that are in it."""
    operator: str | None = None
    """The comparison, or "between"; None: the condition is neither."""
    zone: tzinfo = UTC
    """Where dates begin, and times without a zone are read, if they are compared with instants."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The values by their text, without constants."""
        return {one.text: one.value for one in self.operands if not one.is_constant}

    @property
    def values_text(self) -> str:
        """The values in words."""
        return ", ".join(str(one) for one in self.operands if not one.is_constant)

    @property
    def distance(self) -> float | None:
        """How far the sides of a comparison are from each other, or a value from the bounds of BETWEEN: for numbers in
        their unit, for times and lengths of time in minutes. None: there is no such distance.
        """
        gap = self._gap
        return gap / timedelta(minutes=1) if isinstance(gap, timedelta) else gap

    @property
    def relative_distance(self) -> float:
        """The distance as a part of the larger side, for times as a part of that and a day. One half without a
        distance, and where values have to be equal: those of names, for example, are neither near nor far.
        """
        gap, sides = self._gap, [one.value for one in self.operands]
        if gap is None or self.operator in EQUALITIES:
            return 0.5
        if isinstance(gap, timedelta):
            return gap / (gap + _DAY)
        largest = max(abs(float(side)) for side in sides)
        return min(1.0, gap / largest) if largest else 0.0

    @property
    def _gap(self) -> float | timedelta | None:
        values = [one.value for one in self.operands]
        if self.operator is None or any(value is None for value in values):
            return None
        if all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in values):
            numbers = [float(value) for value in values]
            return max(numbers[1] - numbers[0], numbers[0] - numbers[-1], 0.0)
        if all(isinstance(value, date) for value in values):
            values = _as_times(values, self.zone)
        if all(isinstance(value, timedelta) for value in values) or all(
            isinstance(value, datetime) for value in values
        ):
            length: timedelta = max(values[1] - values[0], values[0] - values[-1], timedelta(0))
            return length
        return None


def _as_times(values: Sequence[date], zone: tzinfo) -> list[datetime | None]:
    """The dates (as their beginning) and times as times that can be subtracted: instants if any of them is one. None
    for an instant that Python cannot have.
    """
    times = [one if isinstance(one, datetime) else datetime.combine(one, time()) for one in values]
    if all(one.tzinfo is None for one in times):
        return [*times]
    return [_instant(one, zone) for one in times]


def _instant(at: datetime, zone: tzinfo) -> datetime | None:
    try:
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return None


@dataclass(frozen=True)
class StageCondition:
    """The whole condition of a stage, or one that ends a loop, for one event."""

    of: str
    """What has the condition, such as "legs" or "until of legs"."""
    result: bool | None
    """None: unknown, because a value is NULL."""
    parts: tuple[Evaluated, ...] = ()
    """Its AND-ed parts, as far as they can be evaluated on their own."""

    def to_dict(self) -> dict[str, Any]:
        """The condition in values of JSON."""
        parts = [
            {"text": one.text, "result": one.result, "values": {t: plain_value(v) for t, v in one.values.items()}}
            for one in self.parts
        ]
        return {"of": self.of, "result": self.result, "parts": parts}

    def said(self, known: Collection[str] = ()) -> str:
        """The condition and its result in words, with the values that are not among the `known` texts."""
        if not self.parts:
            return f"{self.of}: {result_text(self.result)}"
        return f"{self.of}: {', '.join(_said(one, known) for one in self.parts)}"


def result_text(result: bool | None) -> str:  # noqa: FBT001
    """The result in words."""
    return "unknown" if result is None else str(result).lower()


def _said(part: Evaluated, known: Collection[str]) -> str:
    shown = [one for one in part.operands if not one.is_constant and (one.value is None or one.text not in known)]
    values = f" ({', '.join(str(one) for one in shown)})" if shown else ""
    return f"{part.text}: {result_text(part.result)}{values}"
