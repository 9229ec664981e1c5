"""Ids in durable hosts: those of every other host. The store says how ids are made, for all of its patterns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.test_ids import GOLDEN, OPEN, PAID, PAY, SCHEMA, table

from cepheid.errors import StoreError
from cepheid.host import Host, open_host

BLAKE2B = "a8c4a1dfbc8ca4b0e90b67f94a1b90bd"
"""The id of the match in versions with ids 1."""


def prepared(url: str) -> Host:
    host = open_host(url)
    host.input("events", SCHEMA, time="at", sequence="id", keep="1 day")
    host.deploy(PAID, input="events", key="account")
    return host


def found_ids(host: Host) -> list[str]:
    name = host.sql("SELECT matches_table FROM patterns").column("matches_table")[0]
    ids: list[str] = host.sql(f"SELECT match_id FROM {name}").column("match_id").to_pylist()
    return ids


@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "restarted"])
def test_golden_ids(new_store: Callable[[], str], *, restarts: bool) -> None:
    """A match has the id that it has on every host, also if the host is opened anew in the middle of it."""
    url = new_store()
    host = prepared(url)
    host.feed(table(OPEN), input="events")
    if restarts:
        host.close()
        host = open_host(url)
    host.feed(table(PAY), input="events")
    assert found_ids(host) == GOLDEN["paid match"][1]
    host.close()


def with_ids(path: Path, ids: int) -> str:
    """The URL of a store with a deployed pattern, which says that its ids are of this kind."""
    url = f"sqlite:///{path}"
    prepared(url).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE cepheid_host SET ids = ?", (ids,))
    return url


def test_a_store_goes_on_with_its_ids(tmp_path: Path) -> None:
    """In a store with ids 1 every pattern makes such ids. So a new version that finds a match again gives it the id
    that it has, and it is stored and sent once.
    """
    with open_host(with_ids(tmp_path / "store.db", 1)) as host:
        host.feed(table(OPEN, PAY), input="events")
        assert found_ids(host) == [BLAKE2B]
        again = PAID.named("paid", version="2")
        host.deploy(again, input="events", key="account", since="2026-03-02T08:00:00Z", old="drop")
        assert host.sql("SELECT match_id FROM outbox").column("match_id").to_pylist() == [BLAKE2B]
        assert found_ids(host) == [BLAKE2B]


def test_ids_of_a_newer_version(tmp_path: Path) -> None:
    """A store with ids that this version cannot make is refused."""
    url = with_ids(tmp_path / "store.db", 3)
    message = "a newer version of Cepheid wrote this store: it has format 2 and ids 3, and this version reads formats "
    with pytest.raises(StoreError, match=message + "up to 2 and ids up to 2. Upgrade Cepheid"):
        open_host(url)
