"""The columns of keys are found again from the names of the keys."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import SnapshotError
from cepheid.events.identity import key_names
from cepheid.events.key_columns import key_columns

VALUES = [
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float32(), st.floats(width=32, allow_nan=False).map(lambda value: value + 0.0)),
    (pa.float64(), st.floats(allow_nan=False).map(lambda value: value + 0.0)),
    (pa.decimal128(20, 3), st.integers(-(10**19), 10**19).map(lambda value: Decimal(value).scaleb(-3))),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), st.timedeltas(timedelta(-9), timedelta(9))),
]
TYPES = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)


@given(st.data(), TYPES)
def test_columns_of_names(data: st.DataObject, drawn: list[tuple[pa.DataType, st.SearchStrategy[object]]]) -> None:
    """The columns have the values that the names were made from, NULL among them. NaN is the same key as any NaN, and
    -0.0 the same as 0.0.
    """
    types = [type_ for type_, _ in drawn]
    rows = data.draw(st.lists(st.tuples(*(st.none() | values for _, values in drawn)), max_size=4))
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    assert key_columns(key_names(columns, len(rows)), types) == columns


def test_values_of_every_type() -> None:
    """One row of each type, with what an example may miss."""
    values = [date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), time(23, 59, 59, 999999)]
    columns = [pa.array([value]) for value in [*values, "é", b"\x00", float("-inf"), -(2**63), Decimal("-0.01")]]
    assert key_columns(key_names(columns, 1), [column.type for column in columns]) == columns


def test_nested_keys_are_refused() -> None:
    with pytest.raises(SnapshotError, match=r"^a key has the type struct<a: int64>, and no events of it are stored"):
        key_columns([b""], [pa.struct([("a", pa.int64())])])
