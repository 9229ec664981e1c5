"""The orders in which interval matchers process events that come together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.events.batch import END, EVENT_PREFIX, FINER, HELD, MASK, NUMBER, TIME, VALUE_PREFIX, Batch
from cepheid.events.identity import canonical_bytes

_NUMBERS = {NUMBER, HELD}
"""Columns that a host gives events, which are not part of their content."""
_AFTER_TIMES = ((MASK,), (VALUE_PREFIX,), (EVENT_PREFIX, FINER, *_NUMBERS))
"""The prefixes of the columns that come after keys, times and sequence, in their order."""


def in_order_of_content(events: Batch) -> Batch:
    """The events sorted by end, start, then all other columns, so that the order in which they came matters only for
    events that are equal.
    """
    starts, ends = _spans(events)
    order = _order_by_end(starts, ends)
    same = (np.diff(ends[order]) == 0) & (np.diff(starts[order]) == 0)
    if same.any():  # other columns are compared only where times are equal
        tied = np.union1d(order[1:][same], order[:-1][same])
        columns = [events.column(name) for name in events.data.schema.names if name not in _NUMBERS]
        content = canonical_bytes([column.take(pa.array(tied)) for column in columns], len(tied))
        ranks = np.zeros(len(events), np.int64)
        ranks[tied[pc.sort_indices(content).to_numpy()]] = np.arange(len(tied))
        order = np.lexsort((ranks, starts, ends))
    return _taken(events, order)


def columns_as_alone(events: Batch) -> Batch:
    """The events with their columns in the order that they have if the pattern is the only one: conditions and lifted
    columns before the chosen ones. Events of equal times are compared column by column.
    """
    names = sorted(events.data.schema.names, key=_place)
    return events.with_data(events.data.select(names))


def _place(name: str) -> int:
    return next((number for number, prefixes in enumerate(_AFTER_TIMES, 1) if name.startswith(prefixes)), 0)


def in_order_of_ends(events: Batch) -> Batch:
    """The events sorted by end, then start."""
    return _taken(events, _order_by_end(*_spans(events)))


def _spans(events: Batch) -> tuple[Ints, Ints]:
    """The starts and the ends."""
    starts, ends = (events.column(name).cast(pa.int64()).to_numpy() for name in (TIME, END))
    return starts, ends


def _order_by_end(starts: Ints, ends: Ints) -> Ints:
    later = np.diff(ends)
    if ((later > 0) | (later == 0) & (np.diff(starts) >= 0)).all():
        return np.arange(len(ends))
    return np.lexsort((starts, ends))


def _taken(events: Batch, order: Ints) -> Batch:
    return events if (np.diff(order) > 0).all() else events.take(pa.array(order))
