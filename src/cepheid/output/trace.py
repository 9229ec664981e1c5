"""One key, step by step: what each event did to each partial match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from cepheid.lang.pictures.shown import Shown
from cepheid.output.conditions import StageCondition
from cepheid.output.html_table import html_table
from cepheid.output.values import plain_text, plain_value, time_text


@dataclass(frozen=True)
class TraceStep:
    """What happened to one partial match, by an event, a deadline or the end of the events."""

    time: datetime | None
    """When it happened, in the zone of the time column or, if that has none, in `time_zone`. None: at the end of the
    events, or in processing order.
    """
    event: Mapping[str, Any] | None
    """The event, with the columns that the pattern reads; None: no event did it."""
    partial_match: tuple[str, ...]
    """Its events before the step, each as the name of its stage and its time (none in processing order); empty: the
    event was offered to the first stage.
    """
    outcome: str
    """What happened, such as "taken by legs", "ignored" or "ends: broken"."""
    conditions: tuple[StageCondition, ...]
    """The conditions that were evaluated, with their results and the values that they compared."""
    at_end: bool = False
    """Whether it happened at the end of the events."""

    def to_dict(self) -> dict[str, Any]:
        """The step in values of JSON."""
        return {
            "time": plain_value(self.time),
            "event": None if self.event is None else {name: plain_value(v) for name, v in self.event.items()},
            "partial_match": list(self.partial_match),
            "outcome": self.outcome,
            "conditions": [one.to_dict() for one in self.conditions],
            "at_end": self.at_end,
        }


@dataclass(frozen=True)
class Trace(Shown):
    """All steps of one key, in order. Printed, it is a readable text; a notebook shows a table."""

    steps: tuple[TraceStep, ...]

    def to_dict(self) -> dict[str, Any]:
        """The steps in values of JSON."""
        return {"steps": [step.to_dict() for step in self.steps]}

    def _repr_html_(self) -> str:
        rows = [
            [_at(step), _shown(step.event), _before(step), step.outcome, "\n".join(_conditions(step))]
            for step in self.steps
        ]
        return html_table(("time", "event", "partial match", "outcome", "conditions"), rows)

    def __str__(self) -> str:
        groups = groupby(self.steps, key=lambda step: (_at(step), id(step.event)))
        return "\n".join(line for _, steps in groups for line in _lines([*steps]))


def _lines(steps: Sequence[TraceStep]) -> Iterable[str]:
    """The steps of one event, or of one time without an event."""
    if head := [part for part in (_at(steps[0]), _shown(steps[0].event)) if part]:
        yield "  ".join(head)
    for step in steps:
        because = "; ".join(_conditions(step))
        yield f"    {_before(step)} → {step.outcome}{f'  ({because})' if because else ''}"


def _at(step: TraceStep) -> str:
    """When it happened in words; nothing in processing order."""
    if step.at_end:
        return "end of the events"
    return "" if step.time is None else time_text(step.time)


def _shown(event: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} = {plain_text(value)}" for name, value in (event or {}).items())


def _before(step: TraceStep) -> str:
    return ", ".join(step.partial_match) or "-"


def _conditions(step: TraceStep) -> list[str]:
    return [one.said(step.event or ()) for one in step.conditions]
