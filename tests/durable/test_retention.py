"""Rows of what was found, and the outbox, are kept for as long as they are asked to be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.durable.test_stores import PAIRS, SCHEMA, START, count, events

from cepheid.errors import SchemaError
from cepheid.host import Host, Letter, open_host


def fed(host: Host, steps: int, *, first: int = 0) -> None:
    """Feeds a match a minute."""
    for step in range(first, first + steps):
        at = START + timedelta(minutes=step)
        rows = [{"id": 2 * step + i, "at": at, "user": "u", "what": what} for i, what in enumerate("ab")]
        host.feed(pa.Table.from_pylist(rows, SCHEMA), input="events", position=2 * step + 2)


def prepared(url: str, **how: Any) -> Host:
    host = open_host(url, **how)
    host.input("events", SCHEMA, time="at", sequence="id")
    host.deploy(PAIRS, input="events", key="user")
    return host


def test_by_age(url: str) -> None:
    """Matches detected more than the age, and a tenth of it, before the pattern's time are removed, the others kept."""
    with prepared(url, retain="30 minutes") as host:
        fed(host, 100)
        assert 31 <= count(host, "matches_pairs") <= 34
        newest = host.sql("SELECT max(match_end) AS last FROM matches_pairs").column(0)[0].as_py()
        assert str(newest).replace("T", " ").startswith("2024-03-04 11:39:00")
        assert 30 <= count(host, "outbox") <= 37
        host.advance_time(START + timedelta(days=1))
        assert (count(host, "matches_pairs"), count(host, "outbox")) == (0, 0)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_by_age_in_local_time(url: str, zone: str) -> None:
    """The age of a row whose time is a local one is the same."""
    with open_host(url, retain="30 minutes") as host:
        host.input("events", SCHEMA.set(1, pa.field("at", pa.timestamp("us"))), time="at", time_zone=zone)
        host.deploy(PAIRS, input="events", key="user")
        for step in range(0, 100, 2):
            table = events(*"ab", after=step)
            host.feed(table.set_column(1, "at", table.column("at").cast(pa.timestamp("us"))), input="events")
        assert 15 <= count(host, "matches_pairs") <= 18


def test_by_rows(url: str) -> None:
    """Each table and the outbox keep so many rows, and at most a tenth more; also after the host is opened anew."""
    host = prepared(url, retain_rows=20)
    fed(host, 50)
    for table in ("matches_pairs", "outbox"):
        assert 20 <= count(host, table) <= 22
    host.close()
    with open_host(url, retain_rows=10) as again:
        fed(again, 3, first=50)
        assert 10 <= count(again, "matches_pairs") <= 11
        assert 10 <= count(again, "outbox") <= 11
        numbers = again.sql("SELECT number FROM outbox ORDER BY number").column(0).to_pylist()
        assert numbers == [*range(numbers[0], 54)]
        assert again.figures().outbox == len(numbers)


def test_what_is_not_delivered_is_kept(url: str) -> None:
    """The outbox keeps all rows that a subscription has not delivered yet."""
    letters: list[Letter] = []
    with prepared(url, retain_rows=10) as host:
        host.subscribe("all", to=letters.append)
        fed(host, 50)
        assert count(host, "outbox") == 50
        assert host.deliver()
        assert [letter.number for letter in letters] == [*range(1, 51)]
        fed(host, 2, first=50)
        assert 10 <= count(host, "outbox") <= 13
        with pytest.raises(SchemaError, match=r"after: the outbox has no rows before number 4\d any more, got 3"):
            host.subscribe("later", to=letters.append, after=3)


def test_wrong_arguments(url: str) -> None:
    """All wrong arguments are named at once."""
    with pytest.raises(SchemaError, match=r"(?s)retain: .*retain_rows is a whole number from 1, got 0"):
        open_host(url, retain="soon", retain_rows=0)
