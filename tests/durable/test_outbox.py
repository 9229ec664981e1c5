"""The order of the outbox."""

from __future__ import annotations

import json

import pyarrow as pa
from tests.durable.killed import CARTS, REGIONS, end_of, feed_of, prepare

from cepheid.host import open_host


def test_order(url: str) -> None:
    """What a step finds is in the order of its detection, over all keys, matches among timeouts: so another host can
    take it as events.
    """
    with open_host(url) as host:
        prepare(host)
        for first in (0, 5):
            host.feed(pa.concat_tables(feed_of(number) for number in range(first, first + 5)), input="clicks")
        host.advance_time(end_of(12))
        for pattern in (CARTS, REGIONS):
            query = f"SELECT content FROM outbox WHERE pattern = '{pattern.name}' ORDER BY number"
            contents = host.sql(query).column("content").to_pylist()
            times = [json.loads(content)["detected_at"] for content in contents]
            assert times == sorted(times)
            assert len({*times}) > 10
