"""The events and times that reach the automaton of a case, in order: the list itself, or the output of FlinkCEP's
event-time operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.case import Case, Event, Value, Watermark

END = 7_000 * 365 * 86_400_000
"""Milliseconds: after every deadline of every case."""


@dataclass(frozen=True)
class Step:
    """A key's next event or, without an event, an advance of its time to `ts` (milliseconds)."""

    key: Value
    ts: int
    event: int | None = None
    """The event's number in the order of arrival."""


def listed(case: Case) -> tuple[Step, ...]:
    """The items in order of arrival, without keys; at the end, time advances to where the case ends it."""
    steps = [Step(None, item.ts, item.arrival if isinstance(item, Event) else None) for item in case.items]
    if case.operator and case.final_watermark:
        steps.append(Step(None, END))
    elif case.advance_to is not None:
        steps.append(Step(None, case.advance_to))
    return tuple(steps)


def delivered(case: Case) -> tuple[tuple[Step, ...], frozenset[int]]:
    """The steps, and the ids of late events."""
    if case.operator:
        operator = _Operator(case)
        return tuple(operator.steps()), frozenset(operator.late)
    return listed(case), frozenset()


def in_order(event: Event, comparator: str | None) -> tuple[Any, ...]:
    """The sort key of events: time, then the comparator's field, then arrival."""
    value = None if comparator is None else event.fields.get(comparator)
    return (event.ts, value is not None, 0 if value is None else value, event.arrival)


class _Operator:
    """Events wait until a watermark passes them; each key then gets its own events in order, and time advances to the
    watermark.

    The event-time operator of FlinkCEP skips keys without a due event or deadline; for them nothing changes.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.late: list[int] = []
        self._waiting: dict[Value, list[Event]] = {}
        self._watermark: int | None = None

    def steps(self) -> Iterator[Step]:
        for item in self.case.items:
            if isinstance(item, Watermark):
                yield from self._pass(item.ts)
            elif self._watermark is not None and item.ts <= self._watermark:
                self.late.append(item.id)
            else:
                self._waiting.setdefault(self._key(item), []).append(item)
        if self.case.final_watermark:
            yield from self._pass(END)

    def _pass(self, watermark: int) -> Iterator[Step]:
        if self._watermark is not None and watermark <= self._watermark:
            return
        self._watermark = watermark
        for key, waiting in self._waiting.items():
            due = [event for event in waiting if event.ts <= watermark]
            self._waiting[key] = [event for event in waiting if event.ts > watermark]
            yield from (Step(key, event.ts, event.arrival) for event in self._sorted(due))
            yield Step(key, watermark)

    def _sorted(self, events: Sequence[Event]) -> list[Event]:
        return sorted(events, key=lambda event: in_order(event, self.case.comparator))

    def _key(self, event: Event) -> Value:
        return None if self.case.key is None else event.fields.get(self.case.key)
