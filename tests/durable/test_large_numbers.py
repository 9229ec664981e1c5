"""Numbers that SQLite has no type for."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.durable.test_stores import START

import cepheid
from cepheid.host import open_host


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.uint64(), 2**64 - 1),
        (pa.uint64(), 2**63 - 1),
        (pa.decimal128(38, 2), Decimal("123456789012345678901234567890.12")),
        (pa.decimal128(38, 2), Decimal("1234567890123.45")),
    ],
)
def test_exact_numbers(url: str, kind: str, type_: pa.DataType, value: Any) -> None:
    """The outbox has each number whole, and so have the tables; those of SQLite have the nearest floating point number
    of what is neither a whole number of 64 bits nor has 15 digits at most, as is documented.
    """
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", type_)])
    with open_host(url) as host:
        host.input("events", schema, time="at")
        host.deploy(cepheid.Pattern.begin("a", name="each"), input="events", key="v", measures={"m": "a.v"})
        host.feed(pa.Table.from_pylist([{"at": START, "v": value}], schema), input="events")
        host.advance_time("2024-03-05T00:00:00Z")
        (row,) = host.sql("SELECT v, m FROM matches_each").to_pylist()
        (sent,) = host.sql("SELECT content FROM outbox").column(0).to_pylist()
    content = json.loads(sent)
    assert {Decimal(content["v"]), Decimal(content["m"])} == {Decimal(value)}
    is_exact = kind != "sqlite" or value in (2**63 - 1, Decimal("1234567890123.45"))
    expected = Decimal(value) if is_exact else Decimal(float(value))
    found = [Decimal(str(each)) if is_exact else Decimal(float(each)) for each in row.values()]
    assert found == [expected, expected]
