"""The events that reasons look at, with the values of the probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import Int32s
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.scripts.columns import Column, column_of
from cepheid.output.stages.conditions import probed_events
from cepheid.output.stages.near.candidates import may_be_forbidden, may_end_loop, may_keep_out
from cepheid.output.stages.near.found import EventOrder, NearMatches, Taken
from cepheid.plan.stages.near.changes import Kind
from cepheid.plan.stages.near.probes import Probe, Probes
from cepheid.plan.stages.plan import Plan


class LookedAt:
    """Events by their numbers in the source."""

    def __init__(self, numbers: Ints, probes: Probes, batch: Batch) -> None:
        """`numbers` ascend; `batch` has the events with these numbers, lifted for the probes."""
        self.probes = probes
        self._row_of = np.zeros(int(numbers.max(initial=-1)) + 1, np.int32)
        self._row_of[numbers] = np.arange(len(numbers))
        self._batch = batch
        self._events: dict[int, Event] = {}
        self._columns: dict[int, Column | None] = {}

    def events(self, numbers: Ints) -> list[Event]:
        """The events with these numbers."""
        wanted = numbers.tolist()
        if new := sorted({*wanted}.difference(self._events)):
            self._events.update(zip(new, self._made(self._rows(np.array(new))), strict=True))
        return [self._events[number] for number in wanted]

    def column(self, number: int, events: Ints) -> Column | None:
        """The values that the events with these numbers have in the lifted column `number`; None if scripts for many
        rows have no such values.
        """
        if number not in self._columns:
            self._columns[number] = column_of(self._batch.values[number])
        found = self._columns[number]
        return None if found is None else found.take(self._rows(events))

    def with_stages(self, matches: Taken) -> TakenEvents:
        """All events of the matches, with their stages."""
        return tuple(zip(matches.stage.tolist(), self.events(matches.event), strict=True))

    def alike(self, probes: Sequence[Probe], numbers: Ints) -> tuple[Ints, list[Event]]:
        """Groups events that are alike to the probes. Returns the group of each event, and an event of each group."""
        rows, values = self._rows(numbers), self._batch.values
        group = np.zeros(len(numbers), np.int64)
        for column in (column for column in range(len(values)) if any(one.reads((column,)) for one in probes)):
            encoded = values[column].take(pa.array(rows)).dictionary_encode()
            codes = encoded.indices.fill_null(-1).to_numpy() + 1
            group = np.unique(group * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1]
        first = np.zeros(int(group.max(initial=-1)) + 1, np.int32)
        first[group[::-1]] = rows[::-1]  # the last value that is given to a group stays
        return group, [*self._made(first)]

    def _rows(self, numbers: Ints) -> Int32s:
        rows: Int32s = self._row_of[numbers]
        return rows

    def _made(self, rows: Int32s) -> Iterable[Event]:
        return probed_events(self.probes, self._batch.take(pa.array(rows)))


def looked_at(plan: Plan, found: Sequence[NearMatches], order: EventOrder) -> Ints:
    """The numbers of the events whose values the reasons need, ascending."""
    numbers = [np.empty(0, np.int64)]
    for near in found:
        if near.change.kind in (Kind.CONDITION, Kind.NOT, Kind.UNTIL):
            numbers.append(near.taken.event)
        if near.change.kind is Kind.NOT:
            numbers.append(may_be_forbidden(plan, near, order).number)
        if near.change.kind is Kind.UNTIL:
            numbers.append(may_end_loop(plan, near, order).number)
        if near.change.kind is Kind.BEGIN_WITHOUT:
            numbers += [near.taken.starts, may_keep_out(plan, near, order).number]
    every = np.concatenate(numbers)
    is_looked_at = np.zeros(int(every.max(initial=-1)) + 1, np.bool_)  # twice as fast as to sort the numbers
    is_looked_at[every] = True
    return np.flatnonzero(is_looked_at)
