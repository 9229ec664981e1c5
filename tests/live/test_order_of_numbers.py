"""Events that numbers order are sorted without Arrow, in the same order as all others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cepheid.events.batch import EVENT_PREFIX, KEY_PREFIX, MASK, TIME, Batch
from cepheid.events.direction import SEQUENCE_PREFIX
from cepheid.events.time import TIME_TYPE
from cepheid.matchers.conservative import in_order

EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3), st.integers(-5, 5), st.integers(0, 2)), min_size=1)


def batch(events: list[tuple[int, int, int, int]], sequence: pa.Array) -> Batch:
    times = pa.array([time for _, time, _, _ in events], pa.int64()).cast(TIME_TYPE)
    shown = pa.array([content for *_, content in events], pa.int64())
    mask = pa.array([1] * len(events), pa.uint64())
    key = pa.array([key for key, *_ in events], pa.int64())
    columns = {
        f"{KEY_PREFIX}0": key,
        TIME: times,
        f"{SEQUENCE_PREFIX}0": sequence,
        MASK: mask,
        f"{EVENT_PREFIX}id": shown,
    }
    return Batch(pa.record_batch(columns))


@given(EVENTS, st.sampled_from([pa.int8(), pa.int64(), pa.timestamp("s")]))
def test_numbers_are_ordered_like_other_values(events: list[tuple[int, int, int, int]], type_: pa.DataType) -> None:
    """The order, the ordinals and the number of ties are those of the same sequence within a struct."""
    keys = np.array([key for key, *_ in events], np.int32)
    numbers = pa.array([number for _, _, number, _ in events], pa.int64()).cast(type_)
    nested = pa.StructArray.from_arrays([numbers], ["number"])
    found, found_keys, found_ties = in_order(batch(events, numbers), keys)
    wanted, wanted_keys, wanted_ties = in_order(batch(events, nested), keys)
    assert (found_keys.tolist(), found_ties) == (wanted_keys.tolist(), wanted_ties)
    names = [name for name in wanted.data.schema.names if name != f"{SEQUENCE_PREFIX}0"]
    assert found.data.select(names).equals(wanted.data.select(names))
