"""Matchers of the tiers of a pattern without key: see `cepheid.plan.tiers` and `cepheid.plan.stages.tier_plans`.

Between two tiers a host moves rows to where their values are. A row is an event, or a partial match with the events
that it has taken. Events are structs of the columns that the host has shipped, and of their ordinals. So the last tier
has all events of a match, and makes the same rows as a matcher of the whole pattern.

All events pass through the first tier, which numbers equal ones, and so on to the tiers that need them. They are read
once, as every other detection reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.stages.compiled import compile_plan
from cepheid.events.batch import AFTER, MASK, SUB_KEY_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.events.order import Ordered, TierOrdering, ordering_of
from cepheid.kernel.arrays import Flags
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.shipped_events import EVENT, TAKEN_PREFIX, ShippedEvents
from cepheid.matchers.stages.detector import Detector, places
from cepheid.output.stages.rows import row_schema, rows_of
from cepheid.plan.stages.tier_plans import TierPlan

_LAST = "_last"
"""The column of a tier's batches with the event of the row or, for a partial match, the one that it took last."""


def tier_schema(tier: TierPlan, shipped: ShippedEvents) -> pa.Schema:
    """The columns of a tier's rows: those of the pattern's matches for the last tier, else those between tiers."""
    if tier.is_last:
        return row_schema(tier.whole)
    names = [EVENT, *(f"{TAKEN_PREFIX}{stage}" for stage in range(tier.tier.last + 1))]
    return pa.schema([pa.field(name, shipped.type) for name in names])


class TierMatcher(SortedMatcher):
    """The matcher of one tier. Its input has sub-keys, the values by which the host has divided it: the events as for a
    SortedMatcher or, in a later tier, the rows of the tier before, in the order of sub-keys, time and sequence. A first
    tier of one stage needs no sub-keys.

    An event without all sub-keys is in no match of the tier. It may be in one of a later tier.
    """

    def __init__(self, tier: TierPlan, shipped: ShippedEvents, *, until: int | None = None) -> None:
        ordering = ordering_of(tier.whole.schema) if tier.is_first else TierOrdering()
        super().__init__(_TierDetector(tier, shipped), until=until, ordering=ordering)
        self._tier = tier
        self._shipped = shipped

    def process(self, batch: Batch) -> list[pa.Table]:
        return super().process(batch if self._tier.is_first else self._with_partial_matches(batch))

    @property
    def counts(self) -> dict[str, int]:
        """The counts, with the matches of the whole pattern only."""
        counts = super().counts
        return counts if self._tier.is_last else {**counts, "matches": 0}

    def run(self, parts: Sequence[Ordered]) -> list[pa.Table]:
        passed, divided = [], []
        for part in parts:
            events = part.batch
            if self._tier.is_first:
                events = events.with_column(_LAST, self._shipped.structs(events))
            passed.append(self._needed_later(events))
            known = np.ones(len(events), np.bool_)
            for column in events.sub_keys:
                known &= _flags(column.is_valid())
            if known.all():
                divided.append(Ordered(events, part.key_start))
            elif known.any():
                divided.append(Ordered(events.filter(pa.array(known)), part.key_start[known]))
        (found,) = super().run(divided)
        return [found if self._tier.is_last else pa.concat_tables([*passed, found])]

    def _needed_later(self, rows: Batch) -> pa.Table:
        """The events among the rows that a later tier may take."""
        schema = tier_schema(self._tier, self._shipped)
        if self._tier.is_last:
            return schema.empty_table()
        needed = np.ones(len(rows), np.bool_) if self._tier.is_first else ~_flags(rows.column(AFTER))
        if self._tier.needed_later is not None:
            needed &= rows.column(MASK).to_numpy() & self._tier.needed_later != 0
        events = rows.column(_LAST).filter(pa.array(needed))
        nothing = pa.nulls(len(events), self._shipped.type)
        return pa.table([events, *[nothing] * (len(schema) - 1)], schema=schema)

    def _with_partial_matches(self, rows: Batch) -> Batch:
        """The batch for the tier's plan."""
        tier, count = self._tier, len(rows)
        event = self._shipped.given(rows.column(EVENT))
        taken = [self._shipped.given(rows.column(f"{TAKEN_PREFIX}{stage}")) for stage in range(tier.tier.first)]
        is_event = _flags(event.is_valid())
        places = np.arange(count) + np.where(is_event, 0, count)
        last = pa.concat_arrays([event, taken[-1]]).take(pa.array(places))
        events = self._shipped.batch(last).data
        columns = dict(zip(events.schema.names, events.columns, strict=True))
        mask = np.where(is_event, events.column(MASK).to_numpy() | 1 << tier.is_event, 1 << tier.is_partial_match)
        before = [self._shipped.batch(structs) for structs in taken]
        further = [before[stage].column(f"{VALUE_PREFIX}{column}") for stage, column in tier.earlier]
        further += [columns[TIME].cast(pa.int64()), _deadlines(before[0], tier.whole.window)]
        first_further = len(tier.whole.values)
        return Batch(
            pa.record_batch(
                {
                    **columns,
                    MASK: pa.array(mask),
                    AFTER: pa.array(~is_event),
                    **{f"{VALUE_PREFIX}{number}": value for number, value in enumerate(further, first_further)},
                    **{f"{SUB_KEY_PREFIX}{number}": value for number, value in enumerate(rows.sub_keys)},
                    **{f"{TAKEN_PREFIX}{stage}": structs for stage, structs in enumerate(taken)},
                    _LAST: last,
                }
            )
        )


class _TierDetector(Detector):
    """The detector of a tier's plan, whose rows are those between tiers or those of the whole pattern."""

    def __init__(self, tier: TierPlan, shipped: ShippedEvents) -> None:
        super().__init__(compile_plan(tier.plan))
        self._tier = tier
        self._shipped = shipped

    @property
    def schemas(self) -> list[pa.Schema]:
        return [tier_schema(self._tier, self._shipped)]

    def _rows(self, emitted: Emitted) -> pa.RecordBatch:
        used, position = places(emitted.event, len(self.working_set))
        taken = self._taken(self.working_set.take(used), position.reshape(len(emitted.end), -1))
        if self._tier.is_last:
            self._matches += len(emitted.end)
            return self._matches_of(taken, emitted)
        schema = self.schemas[0]
        return pa.RecordBatch.from_arrays([pa.nulls(len(emitted.end), self._shipped.type), *taken], schema=schema)

    def _taken(self, rows: Batch, position: np.ndarray) -> list[pa.Array]:
        """For each stage so far, the event that each match has taken. position[i, j] is the row of its j-th event."""
        before = range(self._tier.tier.first)
        own = position if self._tier.is_first else position[:, 1:]
        first = pa.array(position[:, 0])
        return [
            *(rows.column(f"{TAKEN_PREFIX}{stage}").take(first) for stage in before),
            *(rows.column(_LAST).take(pa.array(at)) for at in own.T),
        ]

    def _matches_of(self, taken: Sequence[pa.Array], emitted: Emitted) -> pa.RecordBatch:
        """The rows of the whole pattern."""
        count, stages = len(emitted.end), len(taken)
        whole = Emitted(
            end=np.arange(1, count + 1) * stages,
            detected_at=emitted.detected_at,
            outcome=np.full(count, MATCHED, np.int32),
            event=np.arange(count * stages, dtype=np.int32),
            stage=np.tile(np.arange(stages, dtype=np.int32), count),
        )
        position = np.arange(count * stages, dtype=np.int32).reshape(stages, count).T.ravel()
        events = self._shipped.batch(pa.concat_arrays(taken))
        return rows_of(self._tier.whole, whole, events, position, self.ids)


def _deadlines(events: Batch, window: int | None) -> pa.Array:
    """The end of the window of each event, in microseconds; NULL where there is no event, or no window."""
    if window is None:
        return pa.nulls(len(events), pa.int64())
    times = events.column(TIME)
    ends = times.cast(pa.int64()).fill_null(0).to_numpy() + window
    return pa.array(ends, mask=~_flags(times.is_valid()))


def _flags(values: pa.Array) -> Flags:
    flags: Flags = values.to_numpy(zero_copy_only=False)
    return flags
