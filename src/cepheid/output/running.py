"""The inputs of running measures: values and folds over the events of a stage up to each event of a match."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.errors import ConditionError
from cepheid.events.batch import VALUE_PREFIX, Batch
from cepheid.kernel.arrays import Int32s, ranges
from cepheid.output.folds import FEW, counts_so_far, folded, places_of_extremes
from cepheid.output.measures import half_up, out_of_range
from cepheid.plan.conditions.coerce import SCRIPT_DIGITS
from cepheid.plan.conditions.script import Aggregate, Fold, StageValue
from cepheid.plan.lifted import Slot


class EventsSoFar(NamedTuple):
    """The events of one stage. Those that it has up to event i of all matches are rows[first[i]:end[i]]."""

    rows: Int32s
    first: Ints
    end: Ints


def running_values(slot: Slot, stage: EventsSoFar, events: Batch) -> pa.Array:
    """The slot's value for each event of each match.

    Raises:
        ConditionError: a sum is out of the range of its type.
    """
    if isinstance(slot, StageValue):
        at = stage.first + slot.back if slot.from_first else stage.end - 1 - slot.back
        there = (stage.first <= at) & (at < stage.end)
        rows = _taken(stage.rows, at, there)
        return events.column(f"{VALUE_PREFIX}{slot.column}").take(pa.array(rows, mask=~there))
    if slot.column is None:
        return pa.array(stage.end - stage.first)
    values = events.column(f"{VALUE_PREFIX}{slot.column}").take(pa.array(stage.rows))
    keys = values if slot.key is None else events.column(f"{VALUE_PREFIX}{slot.key}").take(pa.array(stage.rows))
    present = keys.is_valid().to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(present)])
    first, end = before[stage.first], before[stage.end]
    if slot.fold is Fold.COUNT:
        return pa.array(end - first)
    values, keys = values.filter(pa.array(present)), keys.filter(pa.array(present))
    if slot.fold is Fold.LIST:
        offsets = pa.array(np.append(0, np.cumsum(end - first)), pa.int32())
        return pa.ListArray.from_arrays(offsets, values.take(pa.array(ranges(first, end))), slot.type)
    begins = np.unique(first[end > first])
    folds = _folds(slot, values, keys, begins)
    found = folds.take(pa.array(end - 1, mask=end == first))
    return found.fill_null(0) if slot.fold.counts else found


def _taken(values: Int32s, at: Ints, there: npt.NDArray[np.bool_]) -> Int32s:
    found = np.zeros(len(at), np.int32)
    found[there] = values[at[there]]
    return found


def _folds(slot: Aggregate, values: pa.Array, keys: pa.Array, begins: Ints) -> pa.Array:
    """For each value the fold from the first value of its match; those of a match begin at each of `begins`."""
    match slot.fold:
        case Fold.MIN | Fold.MAX:
            return values.take(pa.array(places_of_extremes(values, begins, slot.fold)))
        case fold if fold is Fold.DISTINCT or fold.varies or fold.has_key:
            return folded(fold, values, keys, begins)
        case Fold.SUM if pa.types.is_floating(slot.type):
            return pa.array(_sums(values, begins))
        case Fold.AVG if not pa.types.is_decimal(slot.type):
            return pa.array(_sums(values, begins) / counts_so_far(begins, len(values)))
        case Fold.SUM if pa.types.is_integer(values.type):
            return _whole_sums(values, begins).cast(slot.type)
        case _:
            return _decimals(slot, values, begins)


def _sums(values: pa.Array, begins: Ints) -> npt.NDArray[np.float64]:
    """Sums of doubles, added in the order of the events from zero, as those of whole matches are."""
    sums: npt.NDArray[np.float64] = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    lengths = np.diff(begins, append=len(sums))
    for begin, length in zip(begins[lengths > FEW].tolist(), lengths[lengths > FEW].tolist(), strict=True):
        np.cumsum(sums[begin : begin + length], out=sums[begin : begin + length])
    some = lengths <= FEW
    begins, lengths = begins[some], lengths[some]
    for place in range(1, int(lengths.max(initial=0))):
        at = begins[lengths > place] + place
        sums[at] += sums[at - 1]
    return sums


def _whole_sums(values: pa.Array, begins: Ints) -> pa.Array:
    """Sums of integers, exactly: those of their upper and lower halves fit 64 bits."""
    whole = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    lengths = np.diff(begins, append=len(whole))
    low, high = (_since_begin(half, begins, lengths) for half in (whole & 0xFFFF_FFFF, whole >> 32))
    high += low >> 32
    if len(high) and not -(1 << 31) <= high.min() <= high.max() < 1 << 31:
        raise ConditionError(out_of_range(pa.int64()))
    return pa.array((high << 32) | (low & 0xFFFF_FFFF))


def _since_begin(values: Ints, begins: Ints, lengths: Ints) -> Ints:
    sums = np.cumsum(values)
    found: Ints = sums - np.repeat(sums[begins] - values[begins], lengths)
    return found


def _decimals(slot: Aggregate, values: pa.Array, begins: Ints) -> pa.Array:
    """Sums and averages of decimals, exactly."""
    scale, given = values.type.scale, values.to_pylist()
    ends = np.append(begins, len(given))[1:].tolist()
    sums = [
        total
        for begin, end in zip(begins.tolist(), ends, strict=True)
        for total in accumulate(int(value.scaleb(scale)) for value in given[begin:end])
    ]
    if any(abs(total) >= 10**SCRIPT_DIGITS for total in sums):
        raise ConditionError(out_of_range(pa.decimal128(SCRIPT_DIGITS, scale)))
    digits = slot.type.scale
    counts = counts_so_far(begins, len(given)).tolist() if slot.fold is Fold.AVG else [1] * len(given)
    found = [half_up(total * 10 ** (digits - scale), count, digits) for total, count in zip(sums, counts, strict=True)]
    return pa.array(found, slot.type)
