"""Backups, and stores made from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.durable.test_stores import count, events, prepared

from cepheid.errors import StoreError
from cepheid.host import open_host, restore_host


def test_backup(new_store: Callable[[], str], tmp_path: Path) -> None:
    """A store made from a backup goes on where the backup was made, beside the one that went on."""
    before, after = new_store(), new_store()
    with prepared(before) as host:
        host.feed(events("a"), input="events", position=1)
        host.backup(tmp_path / "backup")
        host.feed(events("b", after=1), input="events", position=2)
    restore_host(tmp_path / "backup", after)
    with open_host(after) as host:
        assert count(host, "open_pairs") == 1
        assert count(host, "matches_pairs") == 0
        host.feed(events("b", after=1), input="events", position=2)
        assert count(host, "matches_pairs") == 1
        with open_host(before) as other:
            query = "SELECT match_id FROM matches_pairs"
            assert host.sql(query) == other.sql(query)


def test_nothing_is_overwritten(new_store: Callable[[], str], tmp_path: Path) -> None:
    """Neither a backup nor a store is replaced by another one."""
    url = new_store()
    with prepared(url) as host:
        host.backup(tmp_path / "backup")
        with pytest.raises(StoreError, match="is there already"):
            host.backup(tmp_path / "backup")
    with pytest.raises(StoreError, match="already"):
        restore_host(tmp_path / "backup", url)
    assert not [*tmp_path.glob(".*")]


def test_no_backup(new_store: Callable[[], str], tmp_path: Path) -> None:
    """What is no backup is refused, and makes no store."""
    url, notes = new_store(), tmp_path / "notes"
    with pytest.raises(StoreError, match="there is no backup"):
        restore_host(notes, url)
    notes.write_text("These are notes, and no database. " * 100)
    with pytest.raises(StoreError, match=r"no backup|failed|cannot be"):
        restore_host(notes, url)
    with open_host(url) as host:
        assert count(host, "inputs") == 0
