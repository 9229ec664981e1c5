"""Variances, extremes and numbers of different values, for each value from the first one of its match."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.plan.conditions.script import Fold

Doubles = npt.NDArray[np.float64]

FEW = 64
"""Up to this many values the folds of all matches are computed together, place by place; of more, match by match."""


def counts_so_far(begins: Ints, length: int) -> Ints:
    """For each value the number of values of its match up to it; the values of a match begin at each of `begins`."""
    counts: Ints = np.arange(1, length + 1) - np.repeat(begins, np.diff(begins, append=length))
    return counts


def folded(fold: Fold, values: pa.Array, keys: pa.Array, begins: Ints) -> pa.Array:
    """For each value the fold of the values so far: DISTINCT, MAX_BY, MIN_BY, a variance or its root. No key is NULL;
    without keys of their own, values are their own keys.
    """
    if fold.has_key:
        return values.take(pa.array(places_of_extremes(keys, begins, fold)))
    if fold is Fold.DISTINCT:
        return pa.array(_numbers_of_values(values, begins))
    return _variances(values.cast(pa.float64()).to_numpy(zero_copy_only=False), begins, fold)


def places_of_extremes(values: pa.Array, begins: Ints, fold: Fold) -> Ints:
    """For each value the place of the least or greatest value so far; of equal ones the last, or for MIN the first. NaN
    is the greatest value, as Arrow sorts.
    """
    count = len(values)
    if fold is Fold.MIN_BY:  # the last of equal values comes first, as it does in a reversed array
        backwards = values.take(pa.array(np.arange(count)[::-1]))
        order = count - 1 - pc.array_sort_indices(backwards).to_numpy().astype(np.int64)
    else:
        order = pc.array_sort_indices(values).to_numpy().astype(np.int64)
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    # Each match has ranks beyond those of all earlier ones, so that the extremes start anew with it.
    apart = np.repeat(np.arange(len(begins)) * count, np.diff(begins, append=count))
    least = fold in (Fold.MIN, Fold.MIN_BY)
    found = np.minimum.accumulate(ranks - apart) + apart if least else np.maximum.accumulate(ranks + apart) - apart
    places: Ints = order[found]
    return places


def _variances(values: Doubles, begins: Ints, fold: Fold) -> pa.Array:
    """The variance, or its root, of the values so far; NULL for that of a sample of one."""
    divisors = counts_so_far(begins, len(values)) - fold.of_sample
    found = _deviations(values, begins) / np.maximum(divisors, 1)
    return pa.array(np.sqrt(found) if fold.is_root else found, mask=divisors == 0)


def _deviations(values: Doubles, begins: Ints) -> Doubles:
    """The sums of the squared deviations from the mean, in the order of the events, as the kernel computes them."""
    lengths = np.diff(begins, append=len(values))
    sums, means = np.zeros(len(values)), np.zeros(len(values))
    for begin, length in zip(begins[lengths > FEW].tolist(), lengths[lengths > FEW].tolist(), strict=True):
        one = accumulate(enumerate(values[begin : begin + length].tolist(), 1), _next, initial=(0.0, 0.0))
        sums[begin : begin + length] = [deviations for _, deviations in one][1:]
    some = lengths <= FEW
    begins, lengths = begins[some], lengths[some]
    with np.errstate(invalid="ignore", over="ignore"):  # infinite values
        for place in range(int(lengths.max(initial=0))):
            at = begins[lengths > place] + place
            nothing = np.zeros(len(at))
            mean, before = (means[at - 1], sums[at - 1]) if place else (nothing, nothing)
            means[at], sums[at] = _after(mean, before, values[at], place + 1)
    return sums


def _next(state: tuple[float, float], counted: tuple[int, float]) -> tuple[float, float]:
    count, value = counted
    return _after(*state, value, count)


N = TypeVar("N", float, Doubles)


def _after(mean: N, deviations: N, value: N, count: int) -> tuple[N, N]:
    """Welford's step, of numbers or of arrays: the mean and the deviations with a further value."""
    delta = value - mean
    part = delta / count
    return mean + part, deviations + delta * (delta - part)


def _numbers_of_values(values: pa.Array, begins: Ints) -> Ints:
    """The number of different values so far. As in grouping, NaN equals itself and -0.0 equals 0.0."""
    if pa.types.is_floating(values.type):
        doubles = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
        values = pa.array(np.where(np.isnan(doubles), np.nan, doubles))
    match = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(values)))
    codes = pc.dictionary_encode(values).indices.to_numpy().astype(np.int64)
    _, first = np.unique(match * (codes.max(initial=0) + 1) + codes, return_index=True)
    is_new = np.zeros(len(values), np.int64)
    is_new[first] = 1
    so_far = np.cumsum(is_new)
    found: Ints = so_far - np.repeat(so_far[begins] - 1, np.diff(begins, append=len(values)))
    return found
