"""The steps of one key of a pattern of stages, in the names of the pattern and with the events' columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cepheid.events.batch import EVENT_PREFIX, TIME, Batch
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.observed.fates import End
from cepheid.kernel.stages.observed.trace import Ended, Moved, Step, Taken
from cepheid.lang.stages.pattern import Pattern
from cepheid.output.conditions import StageCondition
from cepheid.output.stages.conditions import probed_events, whole_condition
from cepheid.output.trace import Trace, TraceStep
from cepheid.plan.stages.near.probes import Probes
from cepheid.plan.stages.plan import Plan
from cepheid.plan.used_columns import lifted_columns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Shown(NamedTuple):
    """An event as it is shown."""

    time: datetime
    values: Mapping[str, Any]


def trace_of(plan: Plan, steps: Sequence[Step], batches: Sequence[Batch], probes: Probes, probed: Batch) -> Trace:
    """The steps in words; events are shown with the columns that the plan's conditions read. Positions count through
    the batches. `probed` has the same events, lifted for the probes.
    """
    columns = lifted_columns(plan)
    shown = [event for batch in batches for event in _shown(batch, columns)]
    words = _Words(plan.pattern, shown, probes, probed_events(probes, probed))
    return Trace(tuple(words.step(step) for step in steps))


def _shown(batch: Batch, columns: Collection[str]) -> Iterator[_Shown]:
    names = [name for name in columns if EVENT_PREFIX + name in batch.data.schema.names]
    times = batch.column(TIME).cast("int64").to_pylist()
    values = batch.data.select([EVENT_PREFIX + name for name in names]).rename_columns(names).to_pylist()
    return (_Shown(_instant(time), event) for time, event in zip(times, values, strict=True))


def _instant(time: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time)


class _Words:
    """Says steps in the names of a pattern."""

    def __init__(self, pattern: Pattern, events: Sequence[_Shown], probes: Probes, probed: Sequence[Event]) -> None:
        self._events = events
        self._probes = probes
        self._probed = probed
        loops = pattern.loops_until
        self._names = [*(leaf.name for leaf in pattern.leaves), *(loop.name or loop.label for loop in loops)]
        self._conditions = [
            *(leaf.name for leaf in pattern.leaves),
            *(f"until of {loop.name or loop.label}" for loop in loops),
            "begin_without",
        ]

    def step(self, step: Step) -> TraceStep:
        if isinstance(step, Moved):
            event = self._events[step.event]
            return TraceStep(
                event.time, event.values, self._taken(step.before), self._outcome(step), (*self._evaluated(step),)
            )
        if isinstance(step, Ended):
            time = None if step.end.time == FOREVER else _instant(step.end.time)
            return TraceStep(time, None, self._taken(step.before), self._end(step.end), ())
        time = None if step.time is None else _instant(step.time)
        return TraceStep(time, None, self._taken(step.taken), "match", ())

    def _evaluated(self, step: Moved) -> Iterator[StageCondition]:
        """The conditions of the step; `begin_without` is about events before, and has no parts."""
        taken = tuple((stage, self._probed[position]) for stage, position in step.before)
        for number, holds in step.truths:
            of = self._conditions[number]
            probes = () if of == "begin_without" else self._probes.each[number]
            yield whole_condition(of, probes, taken, self._probed[step.event], holds=holds)

    def _taken(self, taken: Taken) -> tuple[str, ...]:
        return tuple(f"{self._names[stage]} {self._events[event].time:%H:%M:%S}" for stage, event in taken)

    def _outcome(self, step: Moved) -> str:
        parts = [f"taken by {', '.join(self._names[stage] for stage in step.takes)}"] if step.takes else []
        parts += ["ignored"] * step.ignores + ["complete"] * step.completes
        parts += [self._end(step.end)] if step.end else []
        return ", ".join(parts) or ("goes on" if step.before else "starts nothing")

    def _end(self, end: End) -> str:
        return f"ends: {end.fate.value}{'' if end.by is None else f' by {self._names[end.by]}'}"
