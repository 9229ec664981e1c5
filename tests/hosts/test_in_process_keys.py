"""Keys of any type in process: distinguished as Spark groups them, in sorted and unsorted events."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid import EventError, Pattern, SchemaError, detect

T = datetime(2024, 1, 1, tzinfo=UTC)
PAIR = Pattern.begin("one").where("x = 1").next("two").where("x = 2")
NAN = math.nan
OTHER_NAN = float(np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64)[0])

FLOATS = pa.struct([("x", pa.float64()), ("inner", pa.struct([("y", pa.float32())]))])
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [1, -1]),
    "unsigned": (pa.uint64(), [2**64 - 1, 2**64 - 2]),
    "bigint": (pa.int64(), [2**53, 2**53 + 1]),
    "half float": (pa.float16(), [0.5, 1.5]),
    "float": (pa.float32(), [0.5, NAN]),
    "double": (pa.float64(), [0.0, NAN, math.inf]),
    "small decimal": (pa.decimal32(5, 2), [Decimal("1.10"), Decimal("-2.00")]),
    "decimal": (pa.decimal128(38, 2), [Decimal("1.10"), Decimal("-2.00")]),
    "wide decimal": (pa.decimal256(38, 2), [Decimal("1.10"), Decimal("-2.00")]),
    "string": (pa.string(), ["", "a"]),
    "large string": (pa.large_string(), ["", "a"]),
    "string view": (pa.string_view(), ["", "a longer string than fits"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["", "a"]),
    "polars categorical": (pa.dictionary(pa.uint32(), pa.string_view()), ["", "a longer string than fits"]),
    "polars enum": (pa.dictionary(pa.uint8(), pa.string_view(), ordered=True), ["b", "a"]),
    "binary": (pa.binary(), [b"", b"\x00"]),
    "fixed binary": (pa.binary(2), [b"ab", b"\x00a"]),
    "date": (pa.date32(), [date(1969, 1, 1), date(2024, 2, 29)]),
    "date64": (pa.date64(), [date(1969, 1, 1), date(2024, 2, 29)]),
    "time of seconds": (pa.time32("s"), [time(1), time(2)]),
    "time of nanoseconds": (pa.time64("ns"), [time(1), time(2)]),
    "timestamp": (pa.timestamp("us", "UTC"), [T, T + timedelta(microseconds=1)]),
    "local timestamp": (pa.timestamp("ns"), [T.replace(tzinfo=None), datetime(1969, 1, 1)]),  # noqa: DTZ001
    "duration": (pa.duration("ns"), [timedelta(1), timedelta(-1)]),
    "extension": (pa.bool8(), [0, 1]),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": None, "b": "x"}],
    ),
    "struct of floats": (FLOATS, [{"x": 0.0, "inner": None}, {"x": 0.0, "inner": {"y": NAN}}]),
    "struct of odd types": (
        pa.struct(
            [
                ("t", pa.time64("ns")),
                ("h", pa.float16()),
                ("d", pa.dictionary(pa.int8(), pa.string())),
            ]
        ),
        [{"t": time(1), "h": 1.0, "d": "a"}, {"t": time(1), "h": 1.0, "d": "b"}],
    ),
}


def events(type_: pa.DataType, keys: list[Any], numbers: list[int], steps: list[int]) -> pa.Table:
    """Event i has the key `keys[i]`, the column x `numbers[i]` and the second `steps[i]`."""
    at = pa.array([T + timedelta(seconds=step) for step in steps], pa.timestamp("us", "UTC"))
    return pa.table({"k": column_of(type_, keys), "at": at, "x": numbers})


def column_of(type_: pa.DataType, values: list[Any]) -> pa.Array:
    """The column, also for a dictionary of views, which Arrow does not make from Python's values."""
    if not pa.types.is_dictionary(type_):
        return pa.array(values, type_)
    encoded = pa.array(values).dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(type_.index_type), encoded.dictionary.cast(type_.value_type), ordered=type_.ordered
    )


@pytest.mark.parametrize("kind", KEYS)
def test_any_type(kind: str) -> None:
    """Each key has its match, in sorted events and in mixed ones, with the same ids."""
    type_, values = KEYS[kind]
    pairs = [(value, x) for value in values for x in (1, 2)]
    sorted_ = events(type_, [value for value, _ in pairs], [x for _, x in pairs], [x for _, x in pairs])
    numbers = [1] * len(values) + [2] * len(values)
    mixed = events(type_, [*values, *values], numbers, numbers)
    found = [detect(table, PAIR, key="k", time="at", columns=["x"]) for table in (sorted_, mixed)]
    assert len(found[0]) == len(values)
    first, second = (sorted(map(repr, matches.to_pylist())) for matches in found)
    assert first == second
    if pa.types.is_dictionary(type_) and pa.types.is_string_view(type_.value_type):  # which Arrow cannot decode
        type_ = pa.dictionary(type_.index_type, pa.string(), ordered=type_.ordered)
    assert found[0].schema.field("k").type == type_
    expected = column_of(type_, values).to_pylist()
    assert sorted(map(str, found[0].column("k").to_pylist())) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("type_", "same"),
    [
        (pa.float64(), [0.0, -0.0]),
        (pa.float64(), [NAN, OTHER_NAN]),
        (pa.float32(), [-0.0, 0.0]),
        (FLOATS, [{"x": -0.0, "inner": {"y": NAN}}, {"x": 0.0, "inner": {"y": OTHER_NAN}}]),
    ],
)
def test_zeros_and_nans_are_one_key(type_: pa.DataType, same: list[Any]) -> None:
    """This also holds if another key's events lie between theirs, and however they are written."""
    other = {"x": 1.0, "inner": None} if pa.types.is_struct(type_) else 1.0
    apart = events(type_, [same[0], other, same[1]], [1, 5, 2], [0, 1, 2])
    assert len(detect(apart, PAIR, key="k", time="at", columns=["x"])) == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([Decimal(10) ** 50], pa.decimal256(60, 0)),
    ],
)
def test_types_that_cannot_be_keys(column: pa.Array) -> None:
    """A type that Spark lacks cannot be a key, and the message says so, with what else is wrong."""
    table = pa.table({"k": column, "at": pa.array([T], pa.timestamp("us", "UTC")), "x": [1]})
    with pytest.raises(SchemaError) as caught:
        detect(table, PAIR, key="k", time="at", columns=["y"])
    assert str(caught.value).splitlines() == [
        f"key: 'k' is of type {column.type}, which cannot be a key in process. Cast it, for example to a string",
        "columns: no column named 'y'. Known here: k, at, x",
    ]
    assert len(detect(table, Pattern.begin("one").where("x = 1"), time="at")) == 1


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.float64(), [5.0, NAN, 3.0, None, 4.0, -0.0]),
        (pa.float16(), [5.0, NAN, 3.0, None, 4.0, -0.0]),
        (pa.string(), ["b", "é", "a", None, "aa", ""]),
        (pa.dictionary(pa.int8(), pa.string()), ["b", "é", "a", None, "aa", ""]),
    ],
)
def test_a_sequence_is_sorted(type_: pa.DataType, values: list[Any]) -> None:
    """Ascending by sequence, NaN after the numbers and NULL last, whatever the order of the events."""
    table = pa.table(
        {"at": pa.array([T] * 6, pa.timestamp("us", "UTC")), "s": pa.array(values, type_), "x": [4, 5, 2, 6, 3, 1]}
    )
    pattern = Pattern.begin("one").where("x = 1")
    for number in range(2, 7):
        pattern = pattern.next(f"s{number}").where(f"x = {number}")
    for events_ in (table, table.take(pa.array([2, 0, 1, 5, 3, 4])), table.take(pa.array([5, 2, 4, 0, 1, 3]))):
        assert len(detect(events_, pattern, time="at", sequence="s", columns=["x"])) == 1


def test_dropped_events_have_no_ordinals() -> None:
    """Of two events that agree in all chosen columns, one is dropped because no condition can be true for it. The other
    one is numbered as the first, here as on Spark (`test_spark_batch`).
    """
    at = pa.array([T, T, T + timedelta(seconds=1)], pa.timestamp("us", "UTC"))
    pattern = Pattern.begin("one").where("x = 1").followed_by("two").where("x = 2")
    ids = set()
    for numbers in ([1, 9, 2], [9, 1, 2]):
        ids.add(
            detect(pa.table({"at": at, "x": numbers}), pattern, time="at", columns=[]).column("match_id")[0].as_py()
        )
    alone = detect(pa.table({"at": at.take(pa.array([0, 2])), "x": [1, 2]}), pattern, time="at", columns=[])
    assert ids == {alone.column("match_id")[0].as_py()}


def test_a_dictionary_with_null() -> None:
    """An event whose key is an entry of the dictionary that is NULL has no key."""
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    events = pa.table({"k": keys, "at": [T, T], "x": [1, 1]})
    with pytest.raises(EventError, match=r"1 with a NULL in the key \(k\) in row 1"):
        detect(events, PAIR, key="k", time="at")
