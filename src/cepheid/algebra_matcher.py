"""The matcher of occurrences for finite inputs: events come sorted by key, so that one key is open at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.algebra_output import occurrence_rows, occurrence_schema, positions_of
from cepheid.compile.script import columns_of
from cepheid.errors import LimitExceeded
from cepheid.events import Batch, join
from cepheid.kernel.algebra_occurrence import Derivation
from cepheid.kernel.algebra_tree import UNBOUNDED, Tree
from cepheid.kernel.python_events import events_of
from cepheid.order import Ordered, Ordering
from cepheid.plan.algebra import OccurrencePlan


class OccurrenceMatcher:
    """Finds one pattern in events that come key by key, each key's in order of time and sequence.

    A key is over when the next one begins: then time passes to `until` (microseconds since 1970 UTC; None: for ever).
    """

    def __init__(self, plan: OccurrencePlan, *, until: int | None = None) -> None:
        self._plan = plan
        self._until = UNBOUNDED if until is None else until
        self._ordering = Ordering()
        self._columns = frozenset(
            column for op in plan.operators if op.script is not None for column in columns_of(op.script)
        )
        self._tree = self._planted()
        self._held: list[Batch] = []
        """The events of the key so far."""
        self._matches = 0

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that these events make certain, in the order of keys and emission; one table.

        Raises:
            EventError: the events are not in order.
            ConditionError: a condition fails on an event.
            LimitExceeded: a key has more open, or an instant completes more, than the plan's limits allow.
        """
        return [self._run([*self._ordering.process(batch)])]

    def finish(self) -> list[pa.Table]:
        """No more events come: the last key is over too."""
        rows = [self._run([*self._ordering.finish()])]
        if self._held:
            rows.append(self._end_key())
        return [pa.concat_tables(rows)]

    @property
    def counts(self) -> dict[str, int]:
        """What was found; and "ties": events that agree with another in key, time and sequence."""
        return {"ties": self._ordering.ties, "matches": self._matches}

    def _run(self, parts: list[Ordered]) -> pa.Table:
        rows = [occurrence_schema(self._plan).empty_table()]
        for part in parts:
            starts = np.flatnonzero(part.key_start).tolist()
            for start, stop in zip([0, *starts], [*starts, len(part.batch)], strict=True):
                if start in starts and self._held:
                    rows.append(self._end_key())
                if start < stop:
                    rows.append(self._take(part.batch.slice(start, stop)))
        return pa.concat_tables(rows)

    def _take(self, events: Batch) -> pa.Table:
        """More events of the key."""
        first = sum(map(len, self._held))
        self._held.append(events)
        found = []
        for event in events_of(self._columns, events, first):
            for instant in self._tree.process(event):
                found += self._checked(instant[0])
        return self._rows(found)

    def _end_key(self) -> pa.Table:
        found = [one for instant in self._tree.advance_time(self._until) for one in self._checked(instant[0])]
        rows = self._rows(found)
        self._tree, self._held = self._planted(), []
        return rows

    def _planted(self) -> Tree:
        plan = self._plan
        roots = (plan.root,)
        return Tree(plan.operators, roots, plan.policy, by_operator=plan.by_operator, time_value=plan.time_value)

    def _checked(self, found: list[Derivation]) -> list[Derivation]:
        limits = self._plan.limits
        if self._tree.remembered > limits.most_partial_matches:
            message = f"a key keeps more than {limits.most_partial_matches:,} occurrences open (max_partial_matches)"
            raise LimitExceeded(
                f"{message}. Bound the pattern with within(…), take the policy 'recent', or raise the limit"
            )
        if len(found) > limits.max_matches_per_event:
            message = (
                f"one instant completes more than {limits.max_matches_per_event:,} matches (max_matches_per_event)"
            )
            raise LimitExceeded(
                f"{message}. Bound the pattern with within(…), take the policy 'recent', or raise the limit"
            )
        return found

    def _rows(self, found: list[Derivation]) -> pa.Table:
        if not found:
            return occurrence_schema(self._plan).empty_table()
        self._matches += len(found)
        positions = positions_of(found)
        return occurrence_rows(self._plan, found, join(self._held).take(pa.array(positions)), positions)
