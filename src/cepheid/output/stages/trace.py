"""The steps of one key of a pattern of stages, in the names of the pattern and with the events' columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cepheid.events.batch import EVENT_PREFIX, TIME, Batch
from cepheid.kernel.arrays import FOREVER
from cepheid.kernel.stages.observed.fates import End
from cepheid.kernel.stages.observed.trace import Ended, Moved, Step, Taken
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.pattern import Pattern
from cepheid.output.trace import Trace, TraceStep

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Shown(NamedTuple):
    """An event as it is shown."""

    time: datetime
    values: Mapping[str, Any]


def trace_of(pattern: Pattern, steps: Sequence[Step], batches: Sequence[Batch], columns: Collection[str]) -> Trace:
    """The steps in words; events are shown with those of these columns that they have. Positions count through the
    batches.
    """
    words = _Words(pattern, [event for batch in batches for event in _shown(batch, columns)])
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

    def __init__(self, pattern: Pattern, events: Sequence[_Shown]) -> None:
        self._events = events
        loops = pattern.loops_until
        self._names = [*(leaf.name for leaf in pattern.leaves), *(loop.name or loop.label for loop in loops)]
        self._conditions = [
            *(_text(leaf.name, leaf.conditions) for leaf in pattern.leaves),
            *(_text(f"until of {loop.name or loop.label}", [loop.until]) for loop in loops if loop.until),
            "begin_without",
        ]

    def step(self, step: Step) -> TraceStep:
        if isinstance(step, Moved):
            event = self._events[step.event]
            conditions = {self._conditions[number]: holds for number, holds in step.truths}
            return TraceStep(event.time, event.values, self._taken(step.before), self._outcome(step), conditions)
        if isinstance(step, Ended):
            time = None if step.end.time == FOREVER else _instant(step.end.time)
            return TraceStep(time, None, self._taken(step.before), self._end(step.end), {})
        time = None if step.time is None else _instant(step.time)
        return TraceStep(time, None, self._taken(step.taken), "match", {})

    def _taken(self, taken: Taken) -> tuple[str, ...]:
        return tuple(f"{self._names[stage]} {self._events[event].time:%H:%M:%S}" for stage, event in taken)

    def _outcome(self, step: Moved) -> str:
        parts = [f"taken by {', '.join(self._names[stage] for stage in step.takes)}"] if step.takes else []
        parts += ["ignored"] * step.ignores + ["complete"] * step.completes
        parts += [self._end(step.end)] if step.end else []
        return ", ".join(parts) or ("goes on" if step.before else "starts nothing")

    def _end(self, end: End) -> str:
        return f"ends: {end.fate.value}{'' if end.by is None else f' by {self._names[end.by]}'}"


def _text(name: str, conditions: Sequence[Condition | Subtype]) -> str:
    """The conditions as the user wrote them, after the name of what has them."""
    written = ""
    for condition in conditions:
        joint = " or " if isinstance(condition, Condition) and condition.alternative else " and "
        written += (joint if written else "") + condition.text
    return f"{name}: {written}" if written else name
