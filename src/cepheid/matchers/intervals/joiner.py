"""What the two matchers of interval patterns share: the events in memory, the kernel that joins them, and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from secrets import token_bytes
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.intervals.compiled import CompiledIntervals
from cepheid.events.batch import END, ORDINAL, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.kernel import siphash
from cepheid.kernel.arrays import Int32s, distinct
from cepheid.kernel.intervals.kernel import IntervalKernel
from cepheid.kernel.intervals.layout import LATE, EmittedIntervals, IntervalEvents
from cepheid.kernel.key_table import KeyTable
from cepheid.kernel.row_hashes import row_hashes
from cepheid.kernel.siphash import KEY_SIZE
from cepheid.matchers.intervals.rates import Rates
from cepheid.matchers.shared.events import LEAST_HELD, Share, SharedWorkingSet
from cepheid.matchers.snapshot import Snapshot, with_columns
from cepheid.matchers.working_set import WorkingSet, mask_of
from cepheid.output.ids import Ids
from cepheid.output.intervals.rows import identity, row_schema, rows_of


class RowMaker(NamedTuple):
    """Makes rows of what is emitted."""

    schema: pa.Schema
    of: Callable[[EmittedIntervals, Batch, Int32s, Ids], pa.Table]
    """The arguments are those of `rows_of` after the plan."""
    sorts: bool = False
    """Whether it puts what one arrival emits in an order of its own."""


class IntervalJoiner(ABC):
    """Holds the events of one interval pattern and joins them. Batches have events in the order of arrival, with starts
    as `_time` and ends as `_end`.
    """

    def __init__(self, pattern: CompiledIntervals, rows: RowMaker | None = None, *, share: Share | None = None) -> None:
        """Without `rows`, its rows are those of `rows_of`. With a `share`, it holds events together with others."""
        siphash.warm_up()  # now, as later events would have to wait for it
        tables = pattern.tables
        constants = tables.constants.copy()  # the codes of strings change with every working set
        self.pattern = replace(pattern, tables=tables._replace(constants=constants, settings=tables.settings.copy()))
        plan = pattern.plan
        self._maker = rows or RowMaker(row_schema(plan), partial(rows_of, plan))
        self.kernel = IntervalKernel(self.pattern, plan.pattern.consistency, in_order=not self._maker.sorts)
        self.working_set: WorkingSet | SharedWorkingSet = (
            WorkingSet(self.pattern) if share is None else SharedWorkingSet(self.pattern, share, self.forget)
        )
        self._is_shared = share is not None
        """Whether SharedEvents decide, after each call, if something is forgotten."""
        self._keys, self._secret = KeyTable(), token_bytes(KEY_SIZE)
        self.ids = Ids.SIPHASH
        """How ids are made; a restored matcher continues as the writer of its snapshot did."""
        self._end = np.zeros(0, np.int64)
        self._key = np.zeros(0, np.int64)
        self._ordinal = np.zeros(0, np.int32)
        """For each event, the number of earlier held events with the same identity; for a late event, its ordinal among
        the late events with the same identity.
        """
        self._duplicate = np.zeros(0, np.bool_)
        self._late = LateOrdinals()
        self._rates = Rates(self.pattern)
        self._most_held = LEAST_HELD

    @property
    @abstractmethod
    def clock(self) -> int:
        """The time that the matcher has reached, in microseconds."""

    @property
    @abstractmethod
    def open_matches(self) -> int:
        """Matches that a later event may still forbid: emitted ones, and those withheld until no event can."""

    @abstractmethod
    def forget(self) -> None:
        """Forgets the events that are in no open match and can be in no later one."""

    @property
    def held(self) -> int:
        """The number of the matcher's events in memory."""
        return len(self.working_set)

    def _keep(self, positions: Int32s) -> None:
        """Forgets all events but those at these positions, which ascend."""
        self.working_set.keep(positions)
        self._end, self._key = self._end[positions], self._key[positions]
        self._ordinal, self._duplicate = self._ordinal[positions], self._duplicate[positions]
        self._free_keys()
        self.kernel.keep(positions, self._events)
        self._most_held = max(LEAST_HELD, 2 * len(positions))

    def _free_keys(self) -> None:
        """Frees the numbers of keys without events, before the kernel sorts the events by key number."""
        if count := len(self._keys):
            used = distinct(self._key, count)
            number = np.zeros(count, np.int64)
            number[used] = np.arange(len(used))
            self._key = number[self._key]
            self._keys.keep(used)

    @property
    def key_names(self) -> list[bytes]:
        """The name (canonical bytes) of each key that has events in memory, by its number; none without a key."""
        if not len(self._keys):
            return []
        _, first = np.unique(self._key, return_index=True)
        places = np.argsort(first)
        events = self.working_set.take(first[places].astype(np.int32))
        names = np.empty(len(first), object)
        names[places] = canonical_bytes([*events.keys, *events.sub_keys], len(first)).to_pylist()
        named: list[bytes] = names.tolist()
        return named

    def _stored_events(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, pa.RecordBatch]]:
        """The held events as arrays and batches of a snapshot. Of shared ones it has the numbers."""
        if isinstance(self.working_set, SharedWorkingSet):
            return {"held": self.working_set.numbers}, {}
        held = self.working_set.all
        return {}, {} if held is None else {"held": held.data}

    def _restored_events(self, snapshot: Snapshot, columns: pa.Schema) -> Batch | None:
        """The held events of a snapshot, to be added; None if it has none."""
        held = snapshot.batches.get("held")
        if isinstance(self.working_set, SharedWorkingSet):
            return self.working_set.restored(held, columns, snapshot.arrays)
        return None if held is None else Batch(with_columns(held, columns, "the snapshot's events"))

    def _add(self, batch: Batch) -> None:
        keys = [*batch.keys, *batch.sub_keys]
        numbers = np.zeros(len(batch), np.int64)
        if keys:
            numbers = self._keys.numbers(row_hashes(keys, len(batch), self._secret)).astype(np.int64)
        self.working_set.add(batch)
        self._rates.add(mask_of(batch))
        self._end = np.concatenate([self._end, batch.column(END).cast(pa.int64()).to_numpy()])
        self._key = np.concatenate([self._key, numbers])
        self._ordinal = np.concatenate([self._ordinal, np.zeros(len(batch), np.int32)])
        self._duplicate = np.concatenate([self._duplicate, np.zeros(len(batch), np.bool_)])

    def _identities(self, positions: Int32s) -> pa.Array:
        found = self.working_set.take(positions)
        return canonical_bytes(identity(self.pattern.plan, found), len(found))

    @property
    def _events(self) -> IntervalEvents:
        time, mask, values, missing = self.working_set.events
        return IntervalEvents(time, self._end, self._key, mask, self._duplicate, values, missing)

    def _placed_rows(self, emitted: EmittedIntervals) -> pa.Table:
        late, members = emitted.sign == LATE, emitted.match
        if late.any():  # its own event is in place of those of a match
            members = np.where(late[:, None], emitted.event[:, None].astype(np.int32), members)
        positions, places = _side_by_side(members) or _one_by_one(members, len(self.working_set))
        events = self.working_set.take(positions).with_column(ORDINAL, pa.array(self._ordinal[positions]))
        return self._maker.of(emitted, events, places, self.ids)


def _side_by_side(members: Int32s) -> tuple[Int32s, Int32s] | None:
    """All positions from the first to the last of these, and the place of each of these among them; None if there are
    more positions than members. Events that lie side by side need not be taken one by one.
    """
    first, end = int(members.min()), int(members.max()) + 1
    return (np.arange(first, end, dtype=np.int32), members - np.int32(first)) if end - first <= members.size else None


def _one_by_one(members: Int32s, length: int) -> tuple[Int32s, Int32s]:
    """The distinct positions, all less than `length`, ascending, and the place of each member among them."""
    positions = distinct(members.ravel(), length)
    place = np.empty(length, np.int32)
    place[positions] = np.arange(len(positions), dtype=np.int32)
    return positions, place[members]
