"""The inputs of measures: values and folds over the events of a stage, computed for all matches at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import ConditionError
from cepheid.events.batch import VALUE_PREFIX, Batch
from cepheid.kernel.arrays import Int32s
from cepheid.output.folds import folded
from cepheid.plan.conditions.script import Aggregate, Fold, StageValue
from cepheid.plan.lifted import Slot


@dataclass(frozen=True)
class StageEvents:
    """The events of one stage: those of match i are rows[offsets[i]:offsets[i + 1]], in order."""

    rows: Int32s
    bounds: npt.NDArray[np.int64] | None = None
    """The offsets; None where it is known that each match has one event."""

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        return np.arange(len(self.rows) + 1) if self.bounds is None else self.bounds

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of events of each match."""
        return np.diff(self.offsets)

    @cached_property
    def is_one_each(self) -> bool:
        """Whether each match has one event."""
        if self.bounds is None:
            return True
        return len(self.rows) == len(self.bounds) - 1 and bool((self.counts == 1).all())

    @property
    def match(self) -> npt.NDArray[np.int64]:
        """The match that each row belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def nth(self, place: int, *, from_last: bool = False) -> Int32s:
        """For each match the row `place` after the first or before the last, -1 if there is none."""
        if place == 0 and self.is_one_each:
            return self.rows
        at = self.offsets[1:] - 1 - place if from_last else self.offsets[:-1] + place
        there = self.counts > place
        rows = np.full(len(there), -1, np.int32)
        rows[there] = self.rows[at[there]]
        return rows


def slot_values(slot: Slot, stage: StageEvents, events: Batch) -> pa.Array:
    """The slot's value for each match."""
    if isinstance(slot, StageValue):
        rows = stage.nth(slot.back, from_last=not slot.from_first)
        missing = None if rows is stage.rows else rows < 0
        return events.column(f"{VALUE_PREFIX}{slot.column}").take(pa.array(rows, mask=missing))
    if slot.column is None:
        return pa.array(stage.counts)
    values = events.column(f"{VALUE_PREFIX}{slot.column}").take(pa.array(stage.rows))
    keys = values if slot.key is None else events.column(f"{VALUE_PREFIX}{slot.key}").take(pa.array(stage.rows))
    match, counts = stage.match, stage.counts
    if keys.null_count:
        present = keys.is_valid()
        values, keys, match = (
            values.filter(present),
            keys.filter(present),
            match[present.to_numpy(zero_copy_only=False)],
        )
        counts = np.bincount(match, minlength=len(counts))
    match slot.fold:
        case Fold.COUNT:
            return pa.array(counts)
        case Fold.MIN | Fold.MAX:
            return _extremes(values, match, counts, slot.fold)
        case Fold.SUM:
            return _sums(values, match, counts, slot)
        case Fold.AVG:
            return _averages(values, match, counts, slot)
        case Fold.LIST:
            return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)), pa.int32()), values, slot.type)
    begins = (np.cumsum(counts) - counts)[counts > 0]
    so_far = folded(slot.fold, values, keys, begins)
    ends = np.cumsum(counts) - 1
    found = so_far.take(pa.array(ends, mask=counts == 0))
    return found.fill_null(0) if slot.fold.counts else found


def _extremes(values: pa.Array, match: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], fold: Fold) -> pa.Array:
    """The least or greatest value of each match. NaN is the greatest value, as Arrow sorts."""
    table = pa.table({"match": match, "value": values})
    order = pc.sort_indices(table, sort_keys=[("match", "ascending"), ("value", "ascending")])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    at = offsets[:-1] if fold is Fold.MIN else offsets[1:] - 1
    there = counts > 0
    rows = pa.array(np.where(there, at, 0), mask=~there)
    return values.take(order.take(rows))


def _sums(values: pa.Array, match: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], slot: Aggregate) -> pa.Array:
    """The sum of each match. Doubles are added in the order of the events, integers and decimals exactly.

    Raises:
        ConditionError: a sum is out of the range of its type.
    """
    if pa.types.is_floating(slot.type):
        return pa.array(_totals(values, match, counts), mask=counts == 0)
    wide = pa.decimal128(38, slot.type.scale if pa.types.is_decimal(slot.type) else 0)
    grouped = pa.table({"match": match, "value": values.cast(wide)}).group_by("match", use_threads=False)
    found = grouped.aggregate([("value", "sum")])
    totals_at = np.full(len(counts), -1)
    totals_at[found.column("match").to_numpy()] = np.arange(found.num_rows)
    totals_of = found.column("value_sum").combine_chunks().take(pa.array(totals_at, mask=totals_at < 0))
    try:
        return totals_of.cast(wide).cast(slot.type)
    except pa.ArrowInvalid as error:
        raise ConditionError(out_of_range(slot.type)) from error


def out_of_range(type_: pa.DataType) -> str:
    return f"a sum over a stage is out of the range of {type_}"


def _averages(
    values: pa.Array, match: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], slot: Aggregate
) -> pa.Array:
    if pa.types.is_decimal(slot.type):
        wide = pa.decimal128(18, values.type.scale)
        totals = _sums(values, match, counts, Aggregate(Fold.SUM, slot.stage, slot.column, wide)).to_pylist()
        digits = slot.type.scale
        averages = [
            None if t is None else half_up(int(t.scaleb(digits)), int(n), digits)
            for t, n in zip(totals, counts, strict=True)
        ]
        return pa.array(averages, slot.type)
    return pa.array(_totals(values, match, counts) / np.maximum(counts, 1), mask=counts == 0)


def _totals(values: pa.Array, match: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The sum of each match in doubles, added in the order of the events."""
    doubles: npt.NDArray[np.float64] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    totals = np.zeros(len(counts))
    if len(counts) == len(doubles) and (counts == 1).all():  # of one event each, as the longer way gives it
        return totals + doubles
    np.add.at(totals, match, doubles)
    return totals


def half_up(total: int, count: int, digits: int) -> Decimal:
    """The quotient of scaled integers, with so many digits after the point."""
    quotient, remainder = divmod(abs(total), count)
    rounded = quotient + (2 * remainder >= count)
    return Decimal(rounded if total >= 0 else -rounded).scaleb(-digits)
