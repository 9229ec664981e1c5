"""Values as JSON text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.events.order import MAX_TIME
from cepheid.hosts.duckdb.json_text import iso_texts, json_texts

NOON = datetime(2024, 3, 4, 12, tzinfo=UTC)
INNER = pa.struct([("at", pa.timestamp("us", "UTC")), ("price", pa.decimal128(6, 2)), ("raw", pa.binary())])


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (NOON, pa.timestamp("us", "UTC"), "2024-03-04T12:00:00.000000Z"),
        (NOON.replace(tzinfo=None), pa.timestamp("ms"), "2024-03-04T12:00:00.000000"),
        (datetime(1, 1, 1), pa.timestamp("us"), "0001-01-01T00:00:00.000000"),  # noqa: DTZ001
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
@pytest.mark.parametrize("copies", [1, 200], ids=["few", "many"])
def test_value(value: object, type_: pa.DataType, expected: object, copies: int) -> None:
    """A value within a struct; a part of an array; NULL stays NULL."""
    rows = pa.array([{"v": value}, None, {"v": None}, *[{"v": value}] * copies], pa.struct([("v", type_)]))
    texts = json_texts(rows.slice(1)).to_pylist()
    assert texts[0] is None
    assert [json.loads(text) for text in texts[1:]] == [{"v": None}, *[{"v": expected}] * copies]


@pytest.mark.parametrize("columns", [[("price", pa.float64()), ("what", pa.string())], [("n", pa.int8())]])
def test_same_text(columns: list[tuple[str, pa.DataType]]) -> None:
    """A map of lists of structs, as stages are, has the same text among few values and among many."""
    row: dict[str, object] = {"price": 0.1, "what": 'é"\\/\n\t\0', "n": -3}
    type_ = pa.map_(pa.string(), pa.list_(pa.struct(columns)))
    values = pa.array([[("a", [row, None]), ("b", [])], [], None, [("b", None)]] * 50, type_)
    assert json_texts(values.slice(1, 4)).to_pylist() == json_texts(values).slice(1, 4).to_pylist()


@given(st.lists(st.none() | st.integers(-MAX_TIME, MAX_TIME), max_size=5), st.sampled_from(["UTC", "Asia/Tokyo", None]))
def test_times(times: list[int | None], zone: str | None) -> None:
    """Times have the text that Arrow's `strftime` gives them."""
    found = iso_texts(pa.array(times, pa.int64()).cast(pa.timestamp("us", zone)))
    plain = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert found.to_pylist() == pc.strftime(plain, "%Y-%m-%dT%H:%M:%S" + ("Z" if zone else "")).to_pylist()
