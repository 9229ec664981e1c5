"""What a host is asked for: the arguments of `detect`, checked and in one value; and what it reports back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from cepheid.lang.pattern import Pattern

Nulls: TypeAlias = Literal["error", "drop"]
"""What happens to events without a key or a time: an error, or they are dropped and counted."""


@dataclass(frozen=True)
class EventCounts:
    """How many events were read and what became of those that a matcher cannot use."""

    events: int = 0
    """Events read, up to `as_of`."""
    null_keys: int = 0
    """Events with a NULL in the key, dropped."""
    null_times: int = 0
    """Events with a key but without a time, dropped."""
    ties: int = 0
    """Events that agree with another of their key in time and sequence, so that their content orders them."""
    matches: int = 0


class Report:
    """Filled by `detect`: counts of what it read, dropped and found.

    In process the counts are there when `detect` returns. On Spark work starts with an action on the result: `counts`
    waits for it.
    """

    def __init__(self) -> None:
        self._read: Callable[[], EventCounts] | None = None

    def set(self, read: Callable[[], EventCounts]) -> None:
        """For hosts: how to read the counts."""
        self._read = read

    @property
    def counts(self) -> EventCounts:
        if self._read is None:
            raise RuntimeError("this report was not given to detect(…, report=…) yet")
        return self._read()


@dataclass(frozen=True)
class Request:
    """One detection."""

    pattern: Pattern
    key: tuple[str, ...]
    time: str
    sequence: str | None = None
    columns: tuple[str, ...] | None = None
    measures: Mapping[str, str] | None = None
    as_of: datetime | None = None
    """An instant: time zone aware."""
    time_zone: str | None = None
    """How times without a zone are read; None: the host's default."""
    nulls: Nulls = "error"
    report: Report = field(default_factory=Report)
