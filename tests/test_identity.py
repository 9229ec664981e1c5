"""The bytes of two rows are equal exactly if the rows are equal, whatever the host and whatever Arrow type
held them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from cepheid.events.identity import canonical_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
NAN = math.nan


def bytes_of(*columns: pa.Array) -> list[bytes]:
    return list(canonical_bytes(columns, len(columns[0])).to_pylist())


def nested(value: pa.DataType) -> list[pa.DataType]:
    return [
        pa.struct([("a", value)]),
        pa.list_(value),
        pa.large_list(value),
        pa.list_(value, 1),
        pa.map_(pa.string(), value),
        pa.list_(pa.struct([("a", pa.list_(value))])),
    ]


def wrapped(value: Any, type_: pa.DataType) -> pa.Array:
    """The value nested somewhere in a value of the type."""
    return pa.array([_inside(value, type_)], type_)


def _inside(value: Any, type_: pa.DataType) -> Any:
    if pa.types.is_struct(type_):
        return {"a": _inside(value, type_.field("a").type)}
    if pa.types.is_map(type_):
        return [("x", value)]
    return [_inside(value, type_.value_type)] if pa.types.is_nested(type_) else value


@pytest.mark.parametrize("place", range(6))
def test_an_instant_is_the_same_in_any_zone(place: int) -> None:
    """Equal instants in different zones have the same bytes, also within structs, lists and maps."""
    here, there = nested(pa.timestamp("us", "UTC"))[place], nested(pa.timestamp("us", "Europe/Berlin"))[place]
    local = NOON.astimezone(ZoneInfo("Europe/Berlin"))
    assert bytes_of(wrapped(NOON, here)) == bytes_of(wrapped(local, there))


@pytest.mark.parametrize("place", range(6))
def test_zeros_and_nans_are_one_each(place: int) -> None:
    """All zeros have the same bytes, and all NaNs, as in Spark's grouping, also within structs, lists and maps."""
    type_ = nested(pa.float64())[place]
    assert bytes_of(wrapped(0.0, type_)) == bytes_of(wrapped(-0.0, type_))
    assert bytes_of(wrapped(NAN, type_)) == bytes_of(wrapped(-NAN, type_))
    assert len({bytes_of(wrapped(value, type_))[0] for value in (0.0, NAN, None, 1.0)}) == 4


def test_different_values_have_different_bytes() -> None:
    """Different values have different bytes: borders between elements, NULL and empty values are distinguished."""
    lists = [None, [], [None], [""], ["a", "b"], ["ab"], ["", "ab"], ["ab", ""]]
    assert len(set(bytes_of(pa.array(lists, pa.list_(pa.string()))))) == len(lists)
    structs = [None, {"a": None, "b": None}, {"a": "x", "b": None}, {"a": None, "b": "x"}]
    type_ = pa.struct([("a", pa.string()), ("b", pa.string())])
    assert len(set(bytes_of(pa.array(structs, type_)))) == len(structs)


def test_slices_have_the_bytes_of_their_rows() -> None:
    """A slice of a column gives the same bytes as the whole column, including NULLs within fixed-size lists."""
    rows = [[1, 2], None, [3, None], [1, 2]]
    for type_ in (pa.list_(pa.int64()), pa.list_(pa.int64(), 2), pa.large_list(pa.int64())):
        column = pa.array(rows, type_)
        whole = bytes_of(column)
        assert whole[0] == whole[3] != whole[2]
        assert bytes_of(column.slice(1, 2)) == whole[1:3]


def test_dictionaries_and_intervals() -> None:
    """Dictionary-encoded values count as the values themselves; types that only Arrow has work, too."""
    assert bytes_of(pa.array(["a", None]).dictionary_encode()) == bytes_of(pa.array(["a", None]))
    months = pa.array([(1, 2, 3), None, (1, 2, 4)], pa.month_day_nano_interval())
    assert len(set(bytes_of(months))) == 3


@pytest.mark.spark
def test_rows_from_spark(spark: SparkSession) -> None:
    """Rows that Spark delivers have the same bytes as equal rows in other Arrow types."""
    here = pa.table(
        {
            "s": pa.array(
                [{"t": NOON, "x": [-0.0, NAN]}, None],
                pa.struct([("t", pa.timestamp("ms", "Europe/Berlin")), ("x", pa.large_list(pa.float64()))]),
            ),
            "m": pa.array([[("a", NOON)], None], pa.map_(pa.string(), pa.timestamp("us", "Asia/Kolkata"))),
        }
    )
    frame = spark.sql(
        "SELECT named_struct('t', TIMESTAMP '2024-06-01 12:00:00Z', 'x', array(0.0D, double('NaN'))) AS s, "
        "map('a', TIMESTAMP '2024-06-01 12:00:00Z') AS m"
    )
    there = frame.toArrow()
    parts = [[column.combine_chunks() for column in table.columns] for table in (here.slice(0, 1), there)]
    assert bytes_of(*parts[0]) == bytes_of(*parts[1])
