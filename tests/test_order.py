"""The order and equality of values, as Spark sorts and groups them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid import EventError
from cepheid.events.batch import MASK, TIME, Batch
from cepheid.events.direction import SEQUENCE_PREFIX
from cepheid.events.order import Ordering, descends, differs, leaves
from cepheid.events.time import TIME_TYPE

NAN = math.nan
POINT = pa.struct([("x", pa.float64()), ("name", pa.string())])


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([0.0, -0.0, NAN, -NAN, None, None, 1.0], pa.float64(), [False, True, False, True, False, True]),
        ([0.0, -0.0, NAN, NAN, None], pa.float16(), [False, True, False, True]),
        ([None, {"x": None, "name": None}, {"x": -0.0, "name": None}, {"x": 0.0, "name": None}], POINT, [1, 1, 0]),
        ([time(1), time(1), None], pa.time64("ns"), [False, True]),
        (["a", "a", "b"], pa.dictionary(pa.int8(), pa.string()), [False, True]),
        ([None, None], pa.null(), [False]),
        ([], pa.int64(), []),
    ],
)
def test_differs(values: list[Any], type_: pa.DataType, expected: list[bool]) -> None:
    """NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0, within structs too; a NULL struct differs from a struct of
    NULLs.
    """
    assert differs(pa.array(values, type_)).tolist() == [bool(flag) for flag in expected]


def test_leaves_are_equal_to_the_bit() -> None:
    """Values that are grouped by their bytes, as Arrow does, have one zero and one NaN."""
    other_nan = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    (leaf,) = leaves(pa.array([0.0, -0.0, NAN, -NAN, other_nan]))
    assert pa.table({"key": leaf}).group_by("key").aggregate([]).num_rows == 2


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([-1.5, -0.0, 0.0, 2.0, math.inf, NAN, NAN, None, None], pa.float64()),
        (["", "Z", "a", "é", "\U0001f600", None], pa.string()),
        ([b"", b"\x01", b"\x7f", b"\xff", None], pa.binary()),
        ([False, True, None], pa.bool_()),
    ],
)
def test_descends(values: list[Any], type_: pa.DataType) -> None:
    """A sorted column never descends; of two different values, exactly one order descends."""
    column = pa.array(values, type_)
    assert not descends([column]).any()
    for i in range(len(values)):
        for j in range(i):
            pair = column.take(pa.array([i, j]))
            assert descends([pair]).tolist() == differs(pair).tolist()


def test_descends_by_several_columns() -> None:
    """A later column counts only if the earlier ones are equal."""
    first, second = pa.array([1, 1, 2, 1]), pa.array([2.0, NAN, 0.0, 9.0])
    assert descends([first, second]).tolist() == [False, False, True]
    assert descends([first.slice(0, 3), pa.array([NAN, 2.0, 1.0])]).tolist() == [True, False]


def batch(*events: tuple[int, float | None]) -> Batch:
    """Events of one key at (second, sequence)."""
    times = [datetime.fromtimestamp(second, UTC) for second, _ in events]
    columns = {
        TIME: pa.array(times, TIME_TYPE),
        f"{SEQUENCE_PREFIX}0": pa.array([sequence for _, sequence in events], pa.float64()),
        MASK: pa.array([0] * len(events), pa.uint64()),
    }
    return Batch(pa.RecordBatch.from_pydict(columns))


@pytest.mark.parametrize(
    "batches",
    [
        [batch((1, 5.0), (1, 3.0))],
        [batch((1, 5.0)), batch((1, 3.0))],
        [batch((1, NAN), (1, 3.0))],
        [batch((1, None), (1, 3.0))],
        [batch((2, 1.0), (1, 3.0))],
    ],
)
def test_events_out_of_order(batches: list[Batch]) -> None:
    """Time and sequence may not decrease, within a batch or between batches."""
    ordering = Ordering()
    with pytest.raises(EventError) as caught:
        [list(ordering.process(one)) for one in batches]
    last = " after ".join(
        f"{pa.scalar(e.column(TIME)[i].as_py(), TIME_TYPE)}, {e.sequence[0][i]}" for e, i in _ends(batches)
    )
    assert str(caught.value) == (
        f"1 events come after a later one of the same key, the first at {last}. A matcher takes events in order of "
        "key, time and sequence: sort them, or let detect do it"
    )


def _ends(batches: list[Batch]) -> list[tuple[Batch, int]]:
    first, last = batches[0], batches[-1]
    return [(last, len(last) - 1), (first, 0)]


def test_events_in_order() -> None:
    """NaN sorts after all numbers and NULL last, as hosts sort."""
    ordering = Ordering()
    events = batch((1, 1.0), (1, 2.0), (1, NAN), (1, None), (2, 0.0))
    assert sum(len(part.batch) for part in (*ordering.process(events), *ordering.finish())) == 5
