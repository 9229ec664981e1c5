"""One key, step by step: what each event did to each partial match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any


@dataclass(frozen=True)
class TraceStep:
    """What happened to one partial match, by an event, a deadline or the end of the events."""

    time: datetime | None
    """When it happened; None: at the end of the events."""
    event: Mapping[str, Any] | None
    """The event, with the columns that the pattern reads; None: no event did it."""
    partial_match: tuple[str, ...]
    """Its events before the step, each as the name of its stage and its time; empty: the event was offered to the first
    stage.
    """
    outcome: str
    """What happened, such as "taken by legs", "ignored" or "ends: broken"."""
    conditions: Mapping[str, bool]
    """The conditions that were evaluated, and whether each was true. False: it was false or unknown."""

    def to_dict(self) -> dict[str, Any]:
        """The step in values of JSON."""
        return {
            "time": _plain(self.time),
            "event": None if self.event is None else {name: _plain(value) for name, value in self.event.items()},
            "partial_match": list(self.partial_match),
            "outcome": self.outcome,
            "conditions": dict(self.conditions),
        }


@dataclass(frozen=True)
class Trace:
    """All steps of one key, in order. Printed, it is a readable text."""

    steps: tuple[TraceStep, ...]

    def to_dict(self) -> dict[str, Any]:
        """The steps in values of JSON."""
        return {"steps": [step.to_dict() for step in self.steps]}

    def __str__(self) -> str:
        groups = groupby(self.steps, key=lambda step: (step.time, step.event))
        return "\n".join(line for (time, event), steps in groups for line in _lines(time, event, steps))


def _lines(time: datetime | None, event: Mapping[str, Any] | None, steps: Iterable[TraceStep]) -> Iterable[str]:
    at = "end of the events" if time is None else f"{time:%Y-%m-%d %H:%M:%S.%f}".rstrip("0").rstrip(".")
    yield at if event is None else f"{at}  {', '.join(f'{name} = {value}' for name, value in event.items())}"
    for step in steps:
        before = ", ".join(step.partial_match) or "-"
        because = "; ".join(f"{text}: {'true' if holds else 'not true'}" for text, holds in step.conditions.items())
        yield f"    {before} → {step.outcome}{f'  ({because})' if because else ''}"


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
