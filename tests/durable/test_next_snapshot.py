"""Large snapshots are written in pieces, while the log goes on."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from tests.durable.test_stores import SCHEMA, START, count, prepared

from cepheid.host import Host, open_host


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every snapshot but the first counts as large, and comes soon and in many pieces."""
    monkeypatch.setattr("cepheid.hosts.durable.next_snapshot._LARGE", 0)
    monkeypatch.setattr("cepheid.hosts.shards.log.SMALL_LOG", 12000)
    monkeypatch.setattr("cepheid.matchers.snapshot._PIECE", 1000)
    monkeypatch.setattr("cepheid.matchers.snapshot._CHUNK", 8000)


def feed(host: Host, number: int) -> None:
    """Ten users begin; three of those that began in an earlier feed end."""
    users = [(10 * number + i, "a") for i in range(10)] + [(10 * (number - 5) + 3 * i, "b") for i in range(3)]
    first = len(users) * number
    rows = [
        {"id": first + i, "at": START + timedelta(milliseconds=first + i), "user": f"u{user}", "what": what}
        for i, (user, what) in enumerate(users)
    ]
    host.feed(pa.Table.from_pylist(rows, SCHEMA), input="events", position=first + len(rows))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])  # their tables show the parts
@pytest.mark.parametrize("restarts", [0, 1, 40], ids=["at once", "restarted always", "restarted at times"])
def test_in_pieces(url: str, restarts: int) -> None:
    """Whatever part of the next snapshot is written, the store has the whole state; and in the end it has less log."""
    host, replaced, most = prepared(url), set(), 0
    entries = 0
    for number in range(80):
        feed(host, number)
        ((first, parts, entries),) = [
            tuple(row.values()) for row in host.sql("SELECT first_part, parts, entries FROM cepheid_heads").to_pylist()
        ]
        replaced.add(first)
        most = max(most, count(host, "cepheid_snapshots") - parts)
        if restarts and number % restarts == 0:
            host.close()
            host = open_host(url)
    assert count(host, "matches_pairs") == 3 * 75
    assert count(host, "open_pairs") == 800 - 3 * 75
    assert host.figures().patterns["pairs", "1"]["matches"] == 3 * 75
    assert count(host, "cepheid_log") == entries
    assert count(host, "cepheid_heads WHERE log_bytes > 9 * room") == 0
    if restarts != 1:  # a host that is opened anew begins the next snapshot anew, too, until the log is too long
        assert len(replaced) > 1
        assert most > 2
    host.close()
