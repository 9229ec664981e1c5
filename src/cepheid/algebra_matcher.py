"""The matcher of occurrences for finite inputs: events come sorted by key, so that one key is open at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.algebra_output import occurrence_rows, occurrence_schema
from cepheid.compile.script import columns_of
from cepheid.errors import LimitExceeded
from cepheid.events import Batch, join
from cepheid.kernel.algebra_occurrence import Derivation
from cepheid.kernel.algebra_occurrence import events_of as events_of_derivation
from cepheid.kernel.algebra_tree import UNBOUNDED, Tree
from cepheid.kernel.python_events import events_of
from cepheid.order import Ordered, Ordering
from cepheid.plan.algebra import OccurrencePlan

_LESS = "Bound the pattern with within(…), take the policy 'recent', or raise the limit"
_CHECKED_EVERY = 64
"""Events after which it is looked how much a key keeps open, as it is when the key is over."""
_FEW = 4096
"""Events that nothing needs may be kept in any case."""


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
        self._tree = Tree(
            plan.operators, (plan.root,), plan.policy, by_operator=plan.by_operator, time_value=plan.time_value
        )
        self._begun = False
        """Whether a key is open."""
        self._held: list[Batch] = []
        """The events that are still needed, and perhaps others."""
        self._positions = np.empty(0, np.int64)
        """Theirs, counted over all keys."""
        self._seen = 0
        self._kept = 0
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
        return [self._run([*self._ordering.finish()], ends=True)]

    @property
    def counts(self) -> dict[str, int]:
        """What was found; and "ties": events that agree with another in key, time and sequence."""
        return {"ties": self._ordering.ties, "matches": self._matches}

    def _run(self, parts: list[Ordered], *, ends: bool = False) -> pa.Table:
        found: list[Derivation] = []
        for part in parts:
            events = events_of(self._columns, part.batch, self._seen)
            self._hold(part.batch)
            for event, starts_key in zip(events, part.key_start.tolist(), strict=True):
                if starts_key:
                    found += self._end_key()
                self._begun = True
                for (instant,) in self._tree.process(event):
                    found += self._checked(instant)
                if not event.position % _CHECKED_EVERY:
                    self._check_open()
        if ends:
            found += self._end_key()
        rows = self._rows(found)
        self._forget()
        return rows

    def _end_key(self) -> list[Derivation]:
        """What is certain as the key is over."""
        if not self._begun:
            return []
        self._check_open()
        found = [one for (instant,) in self._tree.advance_time(self._until) for one in self._checked(instant)]
        self._tree.reset()
        self._begun = False
        return found

    def _hold(self, batch: Batch) -> None:
        self._held.append(batch)
        self._positions = np.concatenate([self._positions, np.arange(self._seen, self._seen + len(batch))])
        self._seen += len(batch)

    def _forget(self) -> None:
        """Keeps the events that are still needed, once there are twice as many as when this was last looked at."""
        if len(self._positions) < max(_FEW, 2 * self._kept):
            return
        needed = np.array(sorted(self._tree.positions()), np.int64)
        rows = np.searchsorted(self._positions, needed)
        self._held, self._positions = [join(self._held).take(pa.array(rows))], needed
        self._kept = len(needed)

    def _check_open(self) -> None:
        most = self._plan.limits.most_partial_matches
        if self._tree.remembered > most:
            raise LimitExceeded(f"a key keeps more than {most:,} occurrences open (max_partial_matches). {_LESS}")

    def _checked(self, found: list[Derivation]) -> list[Derivation]:
        most = self._plan.limits.max_matches_per_event
        if len(found) > most:
            raise LimitExceeded(f"one instant completes more than {most:,} matches (max_matches_per_event). {_LESS}")
        return found

    def _rows(self, found: list[Derivation]) -> pa.Table:
        if not found:
            return occurrence_schema(self._plan).empty_table()
        self._matches += len(found)
        positions = np.unique([position for derivation in found for position in events_of_derivation(derivation)])
        rows = pa.array(np.searchsorted(self._positions, positions))
        return occurrence_rows(self._plan, found, join(self._held).take(rows), positions)
