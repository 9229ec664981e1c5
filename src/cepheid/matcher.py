"""The matcher: a pattern compiles to a small program; a matcher runs that program over events in time order, moving
partial matches from state to state, and emits a match when one reaches the end; a host only feeds the matcher and
keeps its state.

No I/O, no clock, no threads: time is what the events say, and what `until` says of the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.compile.compiled import CompiledPattern
from cepheid.errors import ConditionError, SkipError
from cepheid.events import Batch
from cepheid.kernel.compiled import CompiledMatcher, ConditionFailed
from cepheid.kernel.layout import FOREVER
from cepheid.lang.pattern import Pattern
from cepheid.order import Ordered, Ordering
from cepheid.output import match_rows, match_schema
from cepheid.working_set import WorkingSet


@dataclass(frozen=True)
class Counts:
    """What a matcher has seen."""

    events: int
    matches: int
    ties: int
    """Events that agree with another in key, time and sequence: their content orders them."""


class Matcher:
    """Finds one pattern in events that come key by key, each key's in order of time and sequence.

    A key is over when the next one begins: then time passes to `until` (microseconds since 1970 UTC; None: every
    deadline passes and the input is complete).
    """

    def __init__(self, pattern: CompiledPattern, *, until: int | None = None) -> None:
        constants = pattern.tables.constants.copy()  # those that are strings change with every working set
        self.pattern = replace(pattern, tables=pattern.tables._replace(constants=constants))
        self._kernel = CompiledMatcher(self.pattern.tables, FOREVER if until is None else until)
        self._ordering = Ordering()
        self._held: Batch | None = None
        self._events = 0
        self._matches = 0

    def process(self, batch: Batch) -> pa.Table:
        """The matches that these events make certain, as rows of `match_schema`, in the order of their emission.

        Raises:
            EventError: the events are not in order.
            ConditionError: a condition fails on an event.
            SkipError: a match has no event to skip to, and that is an error.
        """
        self._events += len(batch)
        return self._run(self._ordering.process(batch))

    def finish(self) -> pa.Table:
        """No more events come: the last key is over too."""
        rows = [self._run(self._ordering.finish())]
        if self._held is not None:
            empty = WorkingSet(self._held, self._held.slice(0, 0), np.zeros(0, np.bool_))
            rows.append(self._step(empty, finish=True))
        return pa.concat_tables(rows)

    @property
    def counts(self) -> Counts:
        return Counts(events=self._events, matches=self._matches, ties=self._ordering.ties)

    def _run(self, parts: Iterable[Ordered]) -> pa.Table:
        rows = [self._step(WorkingSet(self._held, part.batch, part.key_start), finish=False) for part in parts]
        return pa.concat_tables([match_schema(self.pattern.plan).empty_table(), *rows])

    def _step(self, working_set: WorkingSet, *, finish: bool) -> pa.Table:
        plan = self.pattern.plan
        try:
            emitted = self._kernel.run(working_set.events(self.pattern), finish=finish)
        except ConditionFailed as failure:
            raise self._explained(failure, working_set) from failure
        except SkipError as error:
            skip = plan.pattern.skip_strategy
            raise SkipError(f"{error}: the strategy is {skip.to.value} {skip.stage!r} with error_on_miss") from error
        rows = match_schema(plan).empty_table()
        if len(emitted.end):
            self._matches += len(emitted.end)
            used, position = np.unique(emitted.event, return_inverse=True)
            found = match_rows(plan, emitted, working_set.take(used), position.astype(np.int32))
            rows = pa.Table.from_batches([found])
        self._held = working_set.take(self._kernel.hold())
        return rows

    def _explained(self, failure: ConditionFailed, working_set: WorkingSet) -> ConditionError:
        """Which condition failed on which event."""
        event = working_set.take(np.array([failure.event], np.int32)).data.to_pylist()[0]
        shown = {name.split(".", 1)[-1]: value for name, value in event.items() if name.startswith("_event.")}
        scripted = [i for i, condition in enumerate(self.pattern.plan.conditions) if condition.script is not None]
        where = _condition(self.pattern.plan.pattern, scripted[failure.script])
        return ConditionError(f"{failure.reason} in {where}, at the event {shown}")


def _condition(pattern: Pattern, number: int) -> str:
    """Which of the plan's conditions it is, and how it was written."""
    leaves = pattern.leaves
    if number >= len(leaves):
        loop = pattern.loops_until[number - len(leaves)]
        return f"the until of {loop.label} ({loop.until})"
    text = " / ".join(condition.text for condition in leaves[number].conditions)
    return f"the condition of {leaves[number].label} ({text})"
