"""The rows on which the engine in process is compared with Spark: the special values of every type."""

# ruff: noqa: DTZ001 - local times have no zone

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 60
_NAN, _INF = float("nan"), float("inf")
_DOUBLES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.49999999999999994,
    1e-300,
    1.7976931348623157e308,
    5e-324,
    -7.25,
    3.7,
    2147483647.9,
    2147483648.0,
    -2147483648.5,
    9223372036854775807.0,
    -9223372036854775808.0,
    1e19,
    4503599627370497.5,
    100.0,
    _NAN,
    _INF,
    -_INF,
]
_TEXTS = [
    "",
    "a",
    "abc",
    "ABC",
    "aBc",
    "  abc ",
    "\ta ",
    "a_c",
    "a%c",
    "a\\c",
    "äöü",
    "Straße"[:4],
    "日本語",
    "👩‍👩‍👧x",
    "e\u0301",
    "a,b,c",
    ",a,,b,",
    "x\ny",
    "abc\n",
    "ab\r\n",
    "a\u0085",
    "i1",
    "a b",
    "%",
    "_",
    "zz",
    "aab",
    "Ab1-x_9",
]
_NUMBERS = [
    "1",
    " 12 ",
    "-7",
    "+5",
    "1.5",
    "abc",
    "",
    "2147483648",
    "9223372036854775808",
    "\t3\n",
    "1e3",
    "-.5",
    "5.",
    "NaN",
    "inf",
    "1 2",
    "0x1",
    "127",
    "-128",
    "128",
    "99999.995",
    "1e-3",
    "0.005",
    "\u00a01",
    "007",
    "1_0",
    "--1",
]
_TRUTHS = ["t", "TRUE", "y", "Yes", "1", "f", "false", "N", "no", "0", "2", "", " true ", "on", "T\n"]
_DAYS = [
    "2020-02-29",
    " 2021-3-4",
    "2021-02-30",
    "2020-01-01T12",
    "2020-01-01 x",
    "20200101",
    "x",
    "",
    "0001-01-01",
    "9999-12-31",
    "2020-1-1\n",
    "2020-13-01",
    "1582-10-10",
]
_WRITTEN_CLOCKS = [
    "29.02.2020 12:30",
    "2020-02-29 12:30:45",
    "2020-02-29T12:30:45.123",
    "2020-02-29t12:30:45.123",
    "2021-03-28 02:30:00",
    "2021-10-31 02:30:00",
    "2021-02-29 00:00:00",
    "2020-02-29 24:00:00",
    "2020-02-29 23:59:60",
    "0000-01-01 00:00:00",
    "1.1.2020 1:1",
    "31.12.9999 23:59",
    "2020-02-29",
    "2020-02-29 12:30",
    " 2020-02-29 1:2:3 ",
    "2020-02-29 12:30:45.1234567",
    "2020-02-29T12:30:45Z",
    "2020-02-29 12:30:45 UTC",
    "2020-02-29 12:30:45+01:00",
    "2020-02-29 12:30:45-0530",
    "2020-02-29 12:30:45.5+1",
    "2020-02-29T",
    "2020-02-29 12:3",
    "2020-02-29 12:30:",
    "2020-02-29 12:30:45.",
    "2020-02-29 12:30:45 Europe/Berlin",
    "2020-02-29 12:30:45+1:3",
    "2020-02-29 12:30:45+18:30",
    "2020-02-29 12:30Z",
    "12:30:45",
    "12020-01-01",
    "2020-02-30 00:00:00",
    "2020-2-9 1",
    "2020-02",
    "2020",
    "x",
    "",
]
_JSON = [
    '{"a": 1, "b": {"c": "x"}}',
    '{"a": "text", "b": [1, 2, {"c": 3}]}',
    '{"a": null, "b": ""}',
    '{"a": true, "a b": 5, "b": [[]]}',
    '{"a": 12345678901234567890, "d": 0.5}',
    '{"a": 123456789012345678901234567890}',
    '{"a": "\\u00e9\\n\\"x", "b": "日本"}',
    '{"a": 1.50, "d": 1e2}',
    '{"a": -12.25, "d": 100.0}',
    '{"d": 0.0001, "a": -0}',
    '{"a": 1, "a": 2}',
    ' [1, "x", {"a": 2}]',
    '[{"a": 1}]',
    "{}",
    '{"a"',
    "abc",
    "5",
    "",
    "{'a': 1}",
]
_DATES = [
    date(1970, 1, 1),
    date(1969, 12, 31),
    date(2020, 2, 29),
    date(2020, 1, 31),
    date(2019, 12, 30),
    date(2021, 1, 3),
    date(1582, 10, 15),
    date(1582, 10, 4),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1900, 2, 28),
    date(2000, 2, 29),
    date(2024, 12, 30),
    date(1800, 6, 15),
]
_MOMENTS = [
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2020, 2, 29, 12, 30, 45, 123456),
    datetime(2021, 3, 28, 0, 59, 59),
    datetime(2021, 3, 28, 1, 0),
    datetime(2021, 10, 31, 0, 30),
    datetime(2021, 10, 31, 1, 30),
    datetime(2021, 3, 14, 7, 30),
    datetime(2021, 11, 7, 5, 30),
    datetime(2021, 11, 7, 6, 30),
    datetime(2021, 4, 3, 15, 10),
    datetime(2021, 4, 3, 14, 45),
    datetime(2021, 10, 2, 15, 40),
    datetime(1800, 1, 1, 3, 4, 5),
    datetime(1, 1, 2),
    datetime(9999, 12, 30, 23, 59, 59, 999999),
    datetime(2000, 1, 1, 0, 0, 0, 1),
    datetime(1945, 5, 24, 1, 2, 3),
]
_CLOCKS = [
    *_MOMENTS,
    datetime(2021, 3, 28, 2, 30),
    datetime(2021, 10, 31, 2, 30),
    datetime(2021, 3, 14, 2, 30),
    datetime(2021, 11, 7, 1, 30),
    datetime(2021, 4, 4, 1, 45),
    datetime(2021, 10, 3, 2, 15),
]


def _integers(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    return [0, 1, -1, 2, 3, -7, 10, 100, top - 1, -top, top - 2, 1 - top, top // 2]


def _decimals(digits: int, scale: int) -> list[Decimal]:
    unscaled = [
        0,
        1,
        -1,
        10**scale,
        10**digits - 1,
        1 - 10**digits,
        5 * 10**scale // 10,
        -25 * 10**scale // 10,
        12345,
    ]
    return [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)) for n in unscaled if abs(n) < 10**digits]


_COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "i8": (_integers(8), pa.int8()),
    "i16": (_integers(16), pa.int16()),
    "i32": (_integers(32), pa.int32()),
    "j32": (_integers(32), pa.int32()),
    "i64": (_integers(64), pa.int64()),
    "j64": ([*_integers(64), 9007199254740993], pa.int64()),
    "n": ([-7, -3, -2, -1, 0, 1, 2, 3, 5, 12], pa.int32()),
    "f32": ([0.0, -0.0, 1.5, -2.5, 3.4028234663852886e38, 1e-45, 16777216.0, _NAN, _INF, -_INF], pa.float32()),
    "f64": (_DOUBLES, pa.float64()),
    "g64": (_DOUBLES, pa.float64()),
    "d9": (_decimals(9, 2), pa.decimal128(9, 2)),
    "d18": (_decimals(18, 4), pa.decimal128(18, 4)),
    "d38": (_decimals(38, 10), pa.decimal128(38, 10)),
    "whole": (_decimals(38, 0), pa.decimal128(38, 0)),
    "tiny": (_decimals(38, 38), pa.decimal128(38, 38)),
    "b": ([True, False], pa.bool_()),
    "c": ([True, False], pa.bool_()),
    "s": (_TEXTS, pa.string()),
    "s2": ([*_TEXTS, "b", "c", "bc"], pa.string()),
    "num": (_NUMBERS, pa.string()),
    "truth": (_TRUTHS, pa.string()),
    "day": (_DAYS, pa.string()),
    "dt": (_DATES, pa.date32()),
    "dt2": (_DATES, pa.date32()),
    "ts": ([m.replace(tzinfo=UTC) for m in _MOMENTS], pa.timestamp("us", "UTC")),
    "ts2": ([m.replace(tzinfo=UTC) for m in _MOMENTS], pa.timestamp("us", "UTC")),
    "ntz": (_CLOCKS, pa.timestamp("us")),
    "dur": (
        [timedelta(microseconds=n) for n in (0, 1, -1, 3_600_000_000, -5_400_000_000, 90_061_000_001, 2**62, -(2**62))],
        pa.duration("us"),
    ),
    "bin": ([b"", b"a", b"abc", b"\x00\xff", "äöü".encode()], pa.binary()),
    "arr": ([[], [1], [1, None, 3], [3, 2, 1, 2], [-(2**31), 2**31 - 1]], pa.list_(pa.int32())),
    "floats": ([[], [1.5, None], [_NAN, 0.0, -0.0], [_INF, -1.0, _NAN, None]], pa.list_(pa.float64())),
    "js": (_JSON, pa.string()),
    "clock": (_WRITTEN_CLOCKS, pa.string()),
    "pairs": (
        [[{"x": 1, "t": datetime(2020, 1, 1, tzinfo=UTC)}], [{"x": None, "t": None}, None], [None], []],
        pa.list_(pa.struct([("x", pa.int32()), ("t", pa.timestamp("us", "UTC"))])),
    ),
    "texts": ([[], ["a"], ["a", None, ""], ["b", "abc", "a"], [None]], pa.list_(pa.string())),
    "ages": ([[], [("a", 1)], [("a", None), ("", 2), ("b", 3)]], pa.map_(pa.string(), pa.int32())),
    "st": (
        [{"x": 1, "t": datetime(2020, 1, 1, tzinfo=UTC)}, {"x": None, "t": None}],
        pa.struct([("x", pa.int32()), ("t", pa.timestamp("us", "UTC"))]),
    ),
}


def values_table(rows: int = ROWS) -> pa.Table:
    """Rows that combine the special values of every type, including NULL."""
    source = random.Random(7)
    arrays = {name: pa.array(_picked(values, source, rows), type_) for name, (values, type_) in _COLUMNS.items()}
    return pa.table(arrays)


def _picked(values: list[Any], source: random.Random, rows: int) -> list[Any]:
    """All values, then random ones; the order is random, so that each column's values meet those of the others."""
    all_values = [*values, None]
    rest = [source.choice(all_values) for _ in range(rows - len(all_values))]
    picked = all_values + rest
    source.shuffle(picked)
    return picked
