"""Hosts whose matches are sent to subscribers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from tests.durable.test_stores import PAIRS, SCHEMA, events

import cepheid
from cepheid.host import Host, open_host

LOOPBACK = "127.0.0.0/8"


def opened(url: str, *allow: str, **how: Any) -> Host:
    """A host that finds pairs, each with the measures `id` (of its second event) and `half`."""
    host = open_host(url, allow=allow, **how)
    host.input("events", SCHEMA, time="at", sequence="id")
    if not host.sql("SELECT name FROM patterns").num_rows:
        measures = {"id": "b.id", "half": "CAST(b.id AS DOUBLE) / 2"}
        host.deploy(PAIRS, input="events", key="user", measures=measures)
    return host


TIER = pa.schema([("at", pa.timestamp("us", "UTC")), ("number", pa.int64()), ("id", pa.int64())])
GROWING = (
    cepheid.Pattern.begin("x", name="growing")
    .where("id IS NOT NULL")
    .next("y")
    .where("id > x.id AND number > x.number")
)


def tier_opened(url: str) -> Host:
    """A host with an input for pairs, which finds each one after the other."""
    host = open_host(url)
    host.input("pairs", TIER, time="at", sequence="number")
    if not host.sql("SELECT name FROM patterns").num_rows:
        host.deploy(GROWING, input="pairs", measures={"first": "x.id"})
    return host


def find(host: Host, *numbers: int) -> None:
    """Makes the host find pairs with these ids, which are odd and grow."""
    for number in numbers:
        assert number % 2, "an event a comes before each b"
        host.feed(events("a", "b", after=number - 1), input="events")


def subscriptions(host: Host) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in host.subscriptions.to_pylist()}
