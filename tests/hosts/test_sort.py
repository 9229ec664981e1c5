"""The order in which tables in process are brought: that of Arrow for every type, NaN after numbers and NULL last."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import Pattern, detect
from cepheid.hosts.in_process.sort import Ranked, order_of

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, -5, 2**63 - 1, -(2**63), 7],
    pa.uint64(): [0, 2**64 - 1, 2**63],
    pa.int8(): [-128, 127, 0],
    pa.float64(): [0.0, -1.5, math.inf, -math.inf, math.nan, 3.2, 1e-300, -1e-300],
    pa.string(): ["", "a", "ä", "b", "bb"],
    pa.binary(): [b"", b"\xff", b"a"],
    pa.bool_(): [True, False],
    pa.timestamp("ns"): [0, -1, 10**18],
    pa.duration("us"): [-3, 3],
    pa.date32(): [0, -5, 7],
    pa.time32("ms"): [0, 5],
    pa.decimal128(20, 2): [Decimal("1.00"), Decimal("-1.00"), Decimal("5.25")],
}


@given(st.sampled_from([*VALUES]), st.sampled_from([*VALUES]), st.data())
def test_any_types(first: pa.DataType, second: pa.DataType, data: st.DataObject) -> None:
    """Rows are ordered by the key, then by rank; those that agree in both stay as they come."""
    count = data.draw(st.integers(0, 20))
    key, rank = (
        pa.array(data.draw(st.lists(st.none() | st.sampled_from(VALUES[type_]), min_size=count, max_size=count)), type_)
        for type_ in (first, second)
    )
    table = pa.table({"key": key, "rank": rank, "row": pa.array(range(count), pa.int64())})
    expected = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    assert order_of(Ranked([key], [rank])).tolist() == expected.to_pylist()


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_that_only_rows_need(type_: pa.DataType) -> None:
    """Events that are put in order have the same matches, ids and types as events in order, whatever type the column
    has that only the rows of matches need.
    """
    names = pa.array([f"event {number}" for number in range(60)]).cast(type_)
    at = pa.array(range(60), pa.timestamp("s", "UTC"))
    keys, numbers = [number % 7 for number in range(60)], [number % 3 for number in range(60)]
    mixed = pa.table({"key": keys, "at": at, "x": numbers, "what": names})
    pattern = Pattern.begin("a").where("x = 0").next("b").where("x > a.x")
    ordered = mixed.take(pc.sort_indices(mixed, sort_keys=[("key", "ascending"), ("at", "ascending")]))
    found = detect(mixed, pattern, key="key", time="at")
    assert found.equals(detect(ordered, pattern, key="key", time="at"))
    taken = [row["a"] for row in found.to_pylist()]
    assert len(taken) > 0
    assert [event["what"] for event in taken] == [f"event {event['at'].timestamp():.0f}" for event in taken]
