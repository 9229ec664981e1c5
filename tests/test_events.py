"""Batches of events, and their values as Python objects."""

from __future__ import annotations

import gc
import weakref
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from cepheid.events.batch import DEFERRED, Batch, DeferredColumns, python_values

NEAR, FAR = 1_000_000, 1 << 61
SECOND = datetime(1970, 1, 1, 0, 0, 1)  # noqa: DTZ001 a time without a zone is intended
TEXT = "75039-04-04T19:00:13.693952"


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([NEAR, None], pa.timestamp("us"), [SECOND, None]),
        ([1, -10_000_000], pa.date32(), ["1970-01-02", "-25410-12-06"]),
        ([FAR, NEAR, None], pa.timestamp("us"), [TEXT, "1970-01-01T00:00:01.000000", None]),
        ([FAR], pa.timestamp("us", "Europe/Berlin"), [f"{TEXT}+00:00"]),
        ([{"a": 1, "at": FAR}], pa.struct([("a", pa.int64()), ("at", pa.timestamp("us"))]), [{"a": 1, "at": TEXT}]),
        ([[("k", [FAR])], None], pa.map_(pa.string(), pa.list_(pa.timestamp("us"))), [[("k", [TEXT])], None]),
    ],
)
def test_times_beyond_pythons(values: list[Any], type_: pa.DataType, expected: list[Any]) -> None:
    """If a time is outside the range of Python's datetime, all times of its column are given as text."""
    column = pa.array(values, type_)
    assert python_values(column) == expected
    assert python_values(pa.chunked_array([column, column])) == [*expected, *expected]


@pytest.mark.parametrize("is_deferred", [False, True])
def test_a_batch_is_freed_with_its_last_reference(*, is_deferred: bool) -> None:
    """Events do not wait for Python's collector of cycles: there may be gigabytes of them."""
    columns = pa.record_batch({"_event.n": [3, 5]})
    deferred = DeferredColumns(columns, columns.schema) if is_deferred else None
    batch = Batch(pa.record_batch({DEFERRED: [1, 0]}) if is_deferred else columns, deferred)
    assert batch.chosen == [pa.array([5, 3] if is_deferred else [3, 5])]
    gc.disable()
    try:
        freed = weakref.ref(batch)
        del batch
        assert freed() is None
    finally:
        gc.enable()
