"""Values as JSON text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cepheid.hosts.duckdb.json_text import json_texts

NOON = datetime(2024, 3, 4, 12, tzinfo=UTC)
INNER = pa.struct([("at", pa.timestamp("us", "UTC")), ("price", pa.decimal128(6, 2)), ("raw", pa.binary())])


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (NOON, pa.timestamp("us", "UTC"), "2024-03-04T12:00:00.000000Z"),
        (NOON.replace(tzinfo=None), pa.timestamp("ms"), "2024-03-04T12:00:00.000000"),
        (date(2024, 3, 4), pa.date32(), "2024-03-04"),
        (Decimal("1.20"), pa.decimal128(6, 2), "1.20"),
        (b"\x00\xff", pa.binary(), "00ff"),
        (float("nan"), pa.float64(), None),
        (float("-inf"), pa.float64(), None),
        (2**53 + 1, pa.int64(), 2**53 + 1),
        ('é"\n', pa.string(), 'é"\n'),
        ([("x", 1)], pa.map_(pa.string(), pa.int64()), {"x": 1}),
        (
            [(1, [NOON])],
            pa.map_(pa.int64(), pa.list_(pa.timestamp("us", "UTC"))),
            {"1": ["2024-03-04T12:00:00.000000Z"]},
        ),
        (
            [{"at": NOON, "price": Decimal("0.50"), "raw": b"\x01"}, None, {"at": None, "price": None, "raw": None}],
            pa.list_(INNER),
            [
                {"at": "2024-03-04T12:00:00.000000Z", "price": "0.50", "raw": "01"},
                None,
                {"at": None, "price": None, "raw": None},
            ],
        ),
    ],
)
def test_value(value: object, type_: pa.DataType, expected: object) -> None:
    """A value within a struct; a part of an array; NULL stays NULL."""
    rows = pa.array([{"v": value}, None, {"v": None}, {"v": value}], pa.struct([("v", type_)]))
    texts = json_texts(rows.slice(1)).to_pylist()
    assert texts[0] is None
    assert [json.loads(text) for text in texts[1:]] == [{"v": None}, {"v": expected}]
