"""A host in files with a short log, and what it is fed, for tests of crashes and of damage."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import cepheid
from cepheid import detect
from cepheid.host import Host, open_host
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.reach import Reach
from cepheid.hosts.durable.stores.files.disk import Disk
from cepheid.hosts.durable.stores.files.store import FileStore

START = datetime(2024, 3, 4, 10, tzinfo=UTC)
COLUMNS = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("user", pa.string()), ("what", pa.string())]
)
PATTERN = (
    cepheid.Pattern.begin("a", name="pairs")
    .where("what = 'a'")
    .followed_by("b")
    .where("what = 'b'")
    .within("10 minutes")
)
FEEDS = ("aab", "bca", "cab", "bab", "acb", "bba", "abb")
"""What each feed has; users take turns."""
FEED = 3
"""The events of a feed."""
LOG_SIZE = 4000
"""Bytes: a snapshot comes every second or third feed."""


def feed(number: int) -> pa.Table:
    rows = [
        {"id": i, "at": START + timedelta(minutes=i), "user": f"u{i % 2}", "what": what}
        for i, what in enumerate(FEEDS[number], FEED * number)
    ]
    return pa.Table.from_pylist(rows, COLUMNS)


def opened(folder: Path, disk: Disk | None = None, log_size: int = LOG_SIZE) -> Host:
    host = DurableHost(FileStore(folder, disk, log_size))
    try:
        return Host(host, Reach((), {}, open_host))
    except BaseException:
        host.close()
        raise


def fed_from(host: Host) -> int:
    """The number of feeds that are stored."""
    if "events" not in host.inputs:
        return 0
    position = host.inputs["events"].position
    assert position is None or isinstance(position, int)
    return (position or 0) // FEED


def feed_rest(host: Host, until: int = len(FEEDS)) -> Iterator[None]:
    """Does and feeds what is not stored; stops after each call."""
    host.input("events", COLUMNS, time="at", sequence="id", keep="5 minutes")
    yield
    if not host.sql("SELECT name FROM patterns").num_rows:
        host.deploy(PATTERN, input="events", key="user", outputs=("matches", "timeouts"))
        yield
    for number in range(fed_from(host), until):
        host.feed(feed(number), input="events", position=FEED * (number + 1))
        yield


class Shown(NamedTuple):
    """What a host shows of what it has stored."""

    inputs: list[dict[str, Any]]
    patterns: list[dict[str, Any]]
    open: list[dict[str, Any]]
    found: list[dict[str, Any]]
    outbox: list[dict[str, Any]]


def shown(host: Host) -> Shown:
    has_patterns = host.sql("SELECT name FROM patterns").num_rows > 0

    def rows(query: str, *, always: bool = False) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = host.sql(query).to_pylist() if always or has_patterns else []
        return listed

    return Shown(
        rows("SELECT name, position, watermark, events FROM inputs", always=True),
        rows("SELECT number, name, status FROM patterns", always=True),
        rows("SELECT id, stage, wakeup FROM open_pairs ORDER BY id"),
        rows("SELECT match_id FROM matches_pairs ORDER BY match_id")
        + rows("SELECT match_id FROM timeouts_pairs ORDER BY match_id"),
        rows("SELECT number, kind, match_id FROM outbox ORDER BY number", always=True),
    )


@cache
def expected() -> list[str]:
    events = pa.concat_tables(feed(number) for number in range(len(FEEDS)))
    return sorted(detect(events, PATTERN, key="user", time="at", sequence="id").column("match_id").to_pylist())
