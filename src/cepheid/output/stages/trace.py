"""The steps of one key of a pattern of stages, in the names of the pattern and with the events' columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.events.batch import EVENT_PREFIX, TIME, Batch, Schema
from cepheid.events.time import arrow_zone, python_zone
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.observed.fates import End
from cepheid.kernel.stages.observed.trace import Ended, Moved, Step, Taken
from cepheid.lang.stages.pattern import Pattern
from cepheid.output.conditions import StageCondition
from cepheid.output.funnel import BEGIN_WITHOUT
from cepheid.output.stages.conditions import probed_events, whole_condition
from cepheid.output.trace import Trace, TraceStep
from cepheid.output.values import time_text
from cepheid.plan.stages.near.probes import Probes
from cepheid.plan.stages.plan import Plan
from cepheid.plan.used_columns import lifted_columns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Shown(NamedTuple):
    """An event as it is shown."""

    time: datetime | None
    """None in processing order."""
    values: Mapping[str, Any]


class _Clock(NamedTuple):
    """How times are shown."""

    zone: tzinfo | None
    """None: in processing order there are no times."""

    def shown(self, time: int) -> datetime | None:
        """Microseconds since 1970 UTC as a time."""
        return None if self.zone is None else (_EPOCH + timedelta(microseconds=time)).astimezone(self.zone)


def trace_of(
    plan: Plan, steps: Sequence[Step], batches: Sequence[Batch], probes: Probes, probed: Batch, *, zone: str
) -> Trace:
    """The steps in words; events are shown with the columns that the plan's conditions read. Positions count through
    the batches. `probed` has the same events, lifted for the probes. Times have the zone of the time column; for a
    column without one, it is `zone`.
    """
    columns, clock = lifted_columns(plan), _clock(plan.schema, zone)
    shown = [event for batch in batches for event in _shown(batch, columns, clock)]
    words = _Words(plan.pattern, shown, probes, probed_events(probes, probed), clock)
    return Trace(tuple(words.step(step) for step in steps))


def _clock(schema: Schema, zone: str) -> _Clock:
    if schema.time is None:
        return _Clock(None)
    given = schema.columns.field(schema.time).type
    return _Clock(python_zone(arrow_zone(given.tz if pa.types.is_timestamp(given) and given.tz else zone)))


def _shown(batch: Batch, columns: Collection[str], clock: _Clock) -> Iterator[_Shown]:
    batch = batch.whole
    names = [name for name in columns if EVENT_PREFIX + name in batch.data.schema.names]
    times = batch.column(TIME).cast("int64").to_pylist()
    values = batch.data.select([EVENT_PREFIX + name for name in names]).rename_columns(names).to_pylist()
    return (_Shown(clock.shown(time), event) for time, event in zip(times, values, strict=True))


class _Words:
    """Says steps in the names of a pattern."""

    def __init__(
        self, pattern: Pattern, events: Sequence[_Shown], probes: Probes, probed: Sequence[Event], clock: _Clock
    ) -> None:
        self._events = events
        self._clock = clock
        self._probes = probes
        self._probed = probed
        loops = pattern.loops_until
        self._without = pattern.without
        self._names = [*(leaf.name for leaf in pattern.leaves), *(loop.name or loop.label for loop in loops)]
        self._conditions = [
            *(leaf.name for leaf in pattern.leaves),
            *(f"until of {loop.name or loop.label}" for loop in loops),
            BEGIN_WITHOUT,
        ]

    def step(self, step: Step) -> TraceStep:
        if isinstance(step, Moved):
            event = self._events[step.event]
            return TraceStep(
                event.time, event.values, self._taken(step.before), self._outcome(step), (*self._evaluated(step),)
            )
        if isinstance(step, Ended):
            at = None if step.end.time == FOREVER else step.end.time
            return self._without_event(at, step.before, self._end(step.end))
        return self._without_event(step.time, step.taken, "match")

    def _without_event(self, at: int | None, before: Taken, outcome: str) -> TraceStep:
        time = None if at is None else self._clock.shown(at)
        return TraceStep(time, None, self._taken(before), outcome, (), at_end=at is None)

    def _evaluated(self, step: Moved) -> Iterator[StageCondition]:
        """The conditions of the step; `begin_without` is about events before, and has no parts."""
        taken = tuple((stage, self._probed[position]) for stage, position in step.before)
        for number, holds in step.truths:
            of = self._conditions[number]
            probes = () if of == BEGIN_WITHOUT else self._probes.each[number]
            yield whole_condition(of, probes, taken, self._probed[step.event], holds=holds)

    def _taken(self, taken: Taken) -> tuple[str, ...]:
        return tuple(self._event_taken(stage, event) for stage, event in taken)

    def _event_taken(self, stage: int, event: int) -> str:
        time = self._events[event].time
        return self._names[stage] if time is None else f"{self._names[stage]} {time_text(time)}"

    def _outcome(self, step: Moved) -> str:
        parts = [f"taken by {', '.join(self._names[stage] for stage in step.takes)}"] if step.takes else []
        parts += ["ignored"] * step.ignores + ["complete"] * step.completes
        parts += [self._end(step.end)] if step.end else []
        return ", ".join(parts) or ("goes on" if step.before else self._no_start(step))

    def _no_start(self, step: Moved) -> str:
        """What is said of an event that starts nothing."""
        without = self._without
        kept_out = without is not None and (len(self._conditions) - 1, True) in step.truths
        return f"starts nothing: {BEGIN_WITHOUT} by {without.name}" if without and kept_out else "starts nothing"

    def _end(self, end: End) -> str:
        return f"ends: {end.fate.value}{'' if end.by is None else f' by {self._names[end.by]}'}"
